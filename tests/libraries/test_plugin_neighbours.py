"""The plugin beside others: absl's parameterised tests, and reruns."""

from pathlib import Path

import pytest

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


def run(directory: Path, text: str, *arguments: str) -> str:
    project = Project(directory)
    project.write("test_it.py", text)
    return project.run(*arguments).stdout


def test_absl_parameterised_tests_are_counted(tmp_path: Path) -> None:
    out = run(tmp_path, ABSL, "--compile-budget=b.json", "--compile-update")
    assert "4 passed" in out, out
    assert "4 passed" in run(tmp_path, ABSL, "--compile-budget=b.json")


def test_a_rerun_is_counted_anew(tmp_path: Path) -> None:
    out = run(tmp_path, RERUN)
    assert "1 passed, 1 rerun" in out, out
