"""The plugin beside others: absl's parameterised tests, and reruns."""

from pathlib import Path

import pytest

from jitcount._ledger.budget import read_budget
from tests.helpers import Project

pytest.importorskip("absl.testing")
pytest.importorskip("pytest_rerunfailures")

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

RERUN_AFTER_A_WARM_UP = """
tries = []

@pytest.fixture(scope="module")
def warm():
    step(arr(3))

@pytest.mark.flaky(reruns=1)
@pytest.mark.no_compiles
def test_step(warm):
    step(arr(3))
    tries.append(1)
    if len(tries) == 1:
        step(arr(4))
"""


def run(directory: Path, text: str, *arguments: str) -> str:
    project = Project(directory)
    project.write("test_it.py", text)
    return project.run(*arguments).stdout


def test_absl_parameterised_tests_are_counted(tmp_path: Path) -> None:
    out = run(tmp_path, ABSL, "--compile-budget=b.json", "--compile-update")
    assert "4 passed" in out, out
    assert "4 passed" in run(tmp_path, ABSL, "--compile-budget=b.json")


def test_a_rerun_is_counted_anew(tmp_path: Path) -> None:
    out = run(tmp_path, RERUN, "--compile-budget=b.json", "--compile-update")
    assert "1 passed, 1 rerun" in out, out
    assert read_budget(tmp_path / "b.json").tests == {"test_it.py::test_step": {"step": 1}}


def test_a_rerun_after_a_warm_up_that_is_still_there_is_counted_anew(tmp_path: Path) -> None:
    out = run(tmp_path, RERUN_AFTER_A_WARM_UP)
    assert "1 passed, 1 rerun" in out, out
