"""What the pytest plugin costs: whole runs of pytest, in projects as users have them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from ratios import keep_ratio_of_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

SUITE = """
import jax, numpy as np, pytest

@pytest.mark.parametrize("number", range(200))
def test_step(number):
    step = jax.jit(lambda x: 2 * x + number)
    for length in range(number % 4):
        step(np.ones(length + 1, np.float32))
"""


def seconds_of_run(project: Path, *arguments: str) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    begin = time.perf_counter()
    subprocess.run(command, cwd=project, env=os.environ, capture_output=True, check=True)  # noqa: S603
    return time.perf_counter() - begin


@pytest.mark.benchmark(group="ratio")
def test_counting_a_suite(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    counting = ("--compile-ledger=ledger.json", "--compile-isolation=none")
    keep_ratio_of_seconds(
        benchmark,
        "200 tests, counted / without the plugin",
        1.02,
        lambda: seconds_of_run(tmp_path, *counting),
        lambda: seconds_of_run(tmp_path, "-p", "no:jitcount"),
        pairs=5,
        warmups=1,
    )


@pytest.mark.benchmark(group="ratio")
def test_starting_without_jax(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_empty.py").write_text("def test(): pass\n")
    keep_ratio_of_seconds(
        benchmark,
        "a project without JAX / without the plugin",
        1.05,
        lambda: seconds_of_run(tmp_path),
        lambda: seconds_of_run(tmp_path, "-p", "no:jitcount"),
        pairs=30,
        warmups=1,
    )
