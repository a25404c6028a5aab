"""The plugin in real pytest processes, in projects as users have them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

STEP = """
import jax, numpy as np, pytest

@jax.jit
def step(x):
    return 2 * x

def arr(n):
    return np.ones(n, np.float32)
"""


class Project:
    """A folder with tests, in which pytest is run as a user would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pytest.ini").write_text("[pytest]\n")

    def write(self, name: str, text: str, *, head: str = STEP) -> None:
        (self.root / name).write_text(head + text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=self.root,
            env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def failure(output: str) -> str:
    """The text of the one failure in an output, with the times taken out."""
    found = re.search(r"^_+ \S+ _+\n(.*?)^=+ short", output, re.MULTILINE | re.DOTALL)
    assert found is not None, output
    return found[1].strip()


def test_the_fixture_is_a_log_of_the_call_phase(project: Project) -> None:
    project.write(
        "test_it.py",
        """
@pytest.fixture
def warm():
    step(arr(3))

def test_step(warm, compiles):
    step(arr(3))
    assert compiles.counts() == {}
    step(arr(4))
    step(arr(4))
    assert compiles.counts() == {"step": 1}
""",
    )
    done = project.run()
    assert done.returncode == 0, done.stdout


def test_markers_that_hold_pass(project: Project) -> None:
    project.write(
        "test_it.py",
        """
@pytest.mark.compiles(step=2)
def test_exactly():
    step(arr(3)); step(arr(4)); step(arr(3))

@pytest.mark.max_compiles(2)
def test_at_most():
    step(arr(3))

@pytest.mark.no_compiles
def test_none(warm):
    step(arr(3))

@pytest.fixture
def warm():
    step(arr(3))

@pytest.mark.compiles(step=1)
class TestClass:
    def test_one(self):
        step(arr(3))

    @pytest.mark.parametrize("length", [3, 4])
    def test_two(self, length):
        step(arr(length))
""",
    )
    done = project.run()
    assert "6 passed" in done.stdout, done.stdout


FAILING = """
@pytest.mark.compiles(step=1)
def test_surplus():
    step(arr(3))
    step(arr(5))

@pytest.mark.compiles(stpe=1)
def test_misspelt():
    step(arr(3))

@pytest.mark.max_compiles(1)
def test_at_most():
    step(arr(3)); step(arr(4))

@pytest.mark.no_compiles
def test_none():
    step(arr(3)); step(arr(4))

@pytest.mark.compiles(step=-1)
def test_negative():
    pass

@pytest.mark.compiles(2)
def test_nameless():
    pass

@pytest.mark.max_compiles(1.5)
def test_fraction():
    pass

@pytest.mark.compiles(step=1)
def test_own_error():
    raise KeyError("the test's own")
"""


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each failing test of one run shows."""
    project = Project(tmp_path_factory.mktemp("failing"))
    project.write("test_it.py", FAILING)
    done = project.run()
    assert done.returncode == 1
    report = done.stdout.partition("short test summary")[0]
    parts = re.split(r"^_+ (test_\w+) _+$", report, flags=re.MULTILINE)
    return {
        name: text.strip().rstrip("= ") for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_a_failure_shows_expected_against_found_and_the_surplus_with_its_cause(
    failures: dict[str, str],
) -> None:
    assert failures["test_surplus"] == (
        "test_surplus must compile exactly what its marker names\n"
        "function   expected   found\n"
        "───────────────────────────\n"
        "step              1       2\n"
        "step(float32[5]) at test_it.py:14 in test_surplus\n"
        "  because: axis 0 of x went from 3 to 5: float32[3] became float32[5]\n"
        "  → pad axis 0 of x to one length, or to a few (buckets)"
    )


def test_a_marker_that_names_a_function_that_never_compiles_lists_what_did(
    failures: dict[str, str],
) -> None:
    assert failures["test_misspelt"].splitlines()[3:5] == [
        "stpe              1       0",
        "step              0       1",
    ]


BY_FUNCTION = "takes counts by function, as in compiles(step=2, add=1)"


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("test_at_most", "test_at_most may compile 1 at most, and compiled 2"),
        ("test_none", "test_none must compile nothing, and compiled 2"),
        ("test_negative", f"@pytest.mark.compiles {BY_FUNCTION}; it was given (step=-1)"),
        ("test_nameless", f"@pytest.mark.compiles {BY_FUNCTION}; it was given (2)"),
        (
            "test_fraction",
            "@pytest.mark.max_compiles takes one count, as in max_compiles(3); it was given (1.5)",
        ),
    ],
)
def test_a_failure_says_first_what_is_wrong(
    failures: dict[str, str], test: str, message: str
) -> None:
    assert failures[test].splitlines()[0] == message


def test_a_tests_own_error_comes_first(failures: dict[str, str]) -> None:
    assert 'KeyError: "the test\'s own"' in failures["test_own_error"]


def test_a_count_does_not_depend_on_earlier_tests_unless_one_wants_it(project: Project) -> None:
    project.write(
        "test_it.py",
        """
def test_before():
    step(arr(3))

@pytest.mark.compiles(step=1)
def test_step():
    step(arr(3))
""",
    )
    assert "2 passed" in project.run().stdout
    assert "1 failed, 1 passed" in project.run("--compile-isolation=none").stdout


def test_unittest_and_absl_style_tests_are_counted(project: Project) -> None:
    project.write(
        "test_it.py",
        """
import unittest

class StepTest(unittest.TestCase):
    @pytest.mark.compiles(step=1)
    def test_step(self):
        step(arr(3))

    @pytest.mark.no_compiles
    def test_more(self):
        step(arr(3))
""",
    )
    assert "1 failed, 1 passed" in project.run().stdout


# --- The budget ----------------------------------------------------------------------------------

BUDGETED = """
def test_step():
    step(arr(3))
    step(arr(4))

def test_quiet():
    pass
"""


def test_a_budget_is_written_sorted_and_small(project: Project) -> None:
    project.write("test_it.py", BUDGETED)
    done = project.run("--compile-budget=budget.json", "--compile-update")
    assert done.returncode == 0, done.stdout
    assert (project.root / "budget.json").read_text() == (
        "{\n"
        '  "kind": "jitcount budget",\n'
        '  "schema": 1,\n'
        f'  "jax": "{jax.__version__}",\n'
        '  "tests": {\n'
        '    "test_it.py::test_step": {\n'
        '      "step": 2\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_a_budget_fails_more_and_reminds_of_fewer(project: Project) -> None:
    project.write("test_it.py", BUDGETED)
    project.run("--compile-budget=budget.json", "--compile-update")
    (project.root / "pytest.ini").write_text("[pytest]\ncompile_budget = budget.json\n")
    project.write("test_it.py", BUDGETED.replace("pass", "step(arr(5))"))
    done = project.run()
    assert done.returncode == 1
    assert failure(done.stdout).splitlines()[0] == (
        "test_quiet compiles more than its budget (over by step 1)"
    )
    project.write("test_it.py", BUDGETED.replace("    step(arr(4))\n", ""))
    done = project.run()
    assert done.returncode == 0
    assert "test_it.py::test_step: step 1 fewer" in done.stdout


def test_a_budget_that_is_not_there_ends_the_run_with_one_line(project: Project) -> None:
    project.write("test_it.py", BUDGETED)
    done = project.run("--compile-budget=budget.json")
    assert done.returncode == 2
    assert (done.stdout + done.stderr).count("\n") == 1
    assert "budget.json: cannot be read: No such file or directory; --compile-update makes one" in (
        done.stdout + done.stderr
    )
    assert not (project.root / "budget.json").exists()


# --- The ledger, the table, and projects that want none of it


def test_the_ledger_has_all_compiles_of_all_tests(project: Project) -> None:
    project.write("test_it.py", BUDGETED)
    assert project.run("--compile-ledger=ledger.json").returncode == 0
    ledger = json.loads((project.root / "ledger.json").read_text())
    assert (ledger["kind"], ledger["schema"]) == ("jitcount ledger", 1)
    assert ledger["environment"]["jax"] == jax.__version__
    compiles = ledger["cases"]["test_it.py::test_step"]["compiles"]
    assert [c["signature"] for c in compiles] == [["float32[3]"], ["float32[4]"]]
    assert compiles[1]["causes"][0]["kind"] == "shape"
    assert ledger["cases"]["test_it.py::test_quiet"]["compiles"] == []


def test_one_ledger_comes_from_all_workers(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write("test_it.py", BUDGETED)
    arguments = ("-n2", "--compile-ledger=ledger.json", "--compile-budget=b.json")
    assert project.run(*arguments, "--compile-update").returncode == 0
    cases = json.loads((project.root / "ledger.json").read_text())["cases"]
    assert sorted(cases) == ["test_it.py::test_quiet", "test_it.py::test_step"]
    budget = json.loads((project.root / "b.json").read_text())
    assert budget["tests"] == {"test_it.py::test_step": {"step": 2}}


def test_the_costliest_compiles_are_shown_at_the_end(project: Project) -> None:
    project.write("test_it.py", BUDGETED)
    out = project.run("--compiles=1").stdout
    section = out.partition(" compiles ")[2]
    assert re.search(r"^2 compiles in 2 tests, [\d.]+ ms$", section, re.MULTILINE), out
    assert section.count("test_it.py::test_step") == 1


def test_a_project_without_jax_pays_nothing(project: Project) -> None:
    project.write(
        "test_it.py", "import sys\ndef test(): assert 'jax' not in sys.modules\n", head=""
    )
    assert project.run().returncode == 0


def test_the_plugin_can_be_turned_off(project: Project) -> None:
    project.write("test_it.py", "def test(compiles): pass\n", head="")
    done = project.run("-p", "no:jitcount")
    assert "fixture 'compiles' not found" in done.stdout
