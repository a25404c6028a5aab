"""What the pytest plugin costs: whole runs of pytest, in projects like those of users."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ratios import Ratio, keep_ratios

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
    """Processor time of a run, in all its threads and all processes that it starts."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    begin = os.times()
    subprocess.run(command, cwd=project, env=os.environ, capture_output=True, check=True)  # noqa: S603
    end = os.times()
    return end.children_user + end.children_system - begin.children_user - begin.children_system


@pytest.mark.benchmark(group="ratio")
def test_counting_a_suite(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    counting = ("--compile-ledger=ledger.json", "--compile-isolation=none")
    sides = {
        "counted": lambda: seconds_of_run(tmp_path, *counting),
        "without": lambda: seconds_of_run(tmp_path, "-p", "no:jitcount"),
    }
    ratio = Ratio("200 tests, counted / without the plugin", "counted", "without", 1.05)
    keep_ratios(benchmark, sides, [ratio], most=30, fewest=8)


@pytest.mark.benchmark(group="ratio")
def test_starting_without_jax(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_empty.py").write_text("def test(): pass\n")
    sides = {
        "with": lambda: seconds_of_run(tmp_path),
        "without": lambda: seconds_of_run(tmp_path, "-p", "no:jitcount"),
    }
    # A run takes a third of a second, and the system measures hundredths: that is precise enough
    # for a limit so far from the measured ratio.
    ratio = Ratio("a project without JAX / without the plugin", "with", "without", 1.05, 0.01)
    keep_ratios(benchmark, sides, [ratio], most=300)
