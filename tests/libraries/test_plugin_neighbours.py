"""The plugin beside others: absl's parameterised tests, and reruns."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("absl.testing")
pytest.importorskip("pytest_rerunfailures")

HEAD = """
import jax, numpy as np, pytest

@jax.jit
def step(x):
    return 2 * x

def arr(n):
    return np.ones(n, np.float32)
"""

ABSL = """
from absl.testing import absltest, parameterized

class StepTest(parameterized.TestCase):
    @parameterized.parameters(3, 4)
    @pytest.mark.compiles(step=1)
    def test_step(self, length):
        step(arr(length))

    @parameterized.named_parameters(("short", 3), ("long", 4))
    def test_more(self, length):
        step(arr(length))
"""

RERUN = """
tries = []

@pytest.mark.flaky(reruns=2)
@pytest.mark.compiles(step=1)
def test_step():
    step(arr(3))
    tries.append(1)
    assert len(tries) == 2
"""


def run(directory: Path, text: str, *arguments: str) -> str:
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text(HEAD + text)
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def test_absl_parameterised_tests_are_counted(tmp_path: Path) -> None:
    out = run(tmp_path, ABSL, "--compile-budget=b.json", "--compile-update")
    assert "4 passed" in out, out
    assert "4 passed" in run(tmp_path, ABSL, "--compile-budget=b.json")


def test_a_rerun_is_counted_anew(tmp_path: Path) -> None:
    out = run(tmp_path, RERUN)
    assert "1 passed, 1 rerun" in out, out
