"""A budget keeps what a run did not see: runs of pytest as users have them, one after the other."""

import json
from pathlib import Path
from typing import Any

import jax
import pytest

from jitcount._ledger.budget import read_budget, update_budget, write_budget
from tests.helpers import Project, python, running

# Runs pytest several times in one process, each time on a project that is made anew.
DRIVER = """
import contextlib, io, json, os, pathlib, sys
sys.dont_write_bytecode = True
import pytest
for number, (files, arguments) in enumerate(json.loads(sys.argv[1])):
    folder = pathlib.Path(sys.argv[2], str(number)).resolve()
    folder.mkdir()
    for name, text in files.items():
        folder.joinpath(name).parent.mkdir(exist_ok=True)
        folder.joinpath(name).write_text(text)
    os.chdir(folder)
    printed = io.StringIO()
    for words in arguments.split(" && "):
        with contextlib.redirect_stdout(printed):
            code = int(pytest.main(["-q", *words.split()]))
        os.chdir(folder)
        for name in [n for n in sys.modules if n.startswith(("test_", "conftest"))]:
            del sys.modules[name]
    print(json.dumps([code, printed.getvalue().replace(f"{folder}{os.sep}", "")]))
"""

HEAD = """
import jax, numpy as np, os, pytest
@jax.jit
def step(x):
    return 2 * x
def compiled(times):
    for length in range(times):
        step(np.ones(length + 1, np.float32))
"""
ONE = "def test_one(): compiled(1)\n"
TWO = "def test_two(): compiled(2)\n"
THREE = "def test_three(): compiled(1)\n"
BEFORE = {
    "test_a.py::test_one": {"step": 1},
    "test_a.py::test_two": {"step": 2},
    "test_b.py::test_three": {"step": 1},
}
BUDGET = json.dumps(
    {"kind": "jitcount budget", "schema": 1, "jax": jax.__version__, "tests": BEFORE}
)
LEFT = "budget.json is left as it is: the run did not come to its end"
UPDATE = "--compile-update"
ELSEWHERE = " && ".join(  # the second must not lose the ledger of the first
    [
        f"{UPDATE} --compile-budget=new.json --compile-ledger=ledger.json",
        "--collect-only --compile-ledger=ledger.json",
        UPDATE,
    ]
)
REVIEWED = """
test_a.py::test_new: nothing → step 1
test_a.py::test_one: step 1 → step 2
test_a.py::test_two: step 2 → nothing
would change budget.json: +1 −1 ~1
"""


def files(a: str = ONE + TWO, b: str | None = THREE, **others: str) -> dict[str, str]:
    """A project; without the second file, where that is None."""
    ini = "[pytest]\ncompile_budget = budget.json\naddopts = -p no:cacheprovider\n"
    made = {"pytest.ini": ini, "budget.json": BUDGET, "test_a.py": HEAD + a}
    if b is not None:
        made["test_b.py"] = HEAD + b
    return made | {name.replace("__", "."): text for name, text in others.items()}


def without(*tests: str) -> dict[str, dict[str, int]]:
    return {test: counts for test, counts in BEFORE.items() if test not in tests}


GONE_TWO = without("test_a.py::test_two")
GONE_THREE = without("test_b.py::test_three")

# By name: the project, the options, pytest's exit code, what the budget holds then, and the end of
# what is said of it.
RUNS: dict[str, tuple[dict[str, str], str, int, dict[str, Any], str]] = {
    "all is as before": (files(), UPDATE, 0, BEFORE, "wrote budget.json: +0 −0 ~0"),
    "one comes, one changes, one no longer compiles": (
        files(a="def test_new(): compiled(1)\ndef test_one(): compiled(2)\ndef test_two(): pass\n"),
        UPDATE,
        0,
        {
            "test_a.py::test_new": {"step": 1},
            "test_a.py::test_one": {"step": 2},
            "test_b.py::test_three": {"step": 1},
        },
        "wrote budget.json: +1 −1 ~1",
    ),
    "a test is no longer there": (files(a=ONE), UPDATE, 0, GONE_TWO, "+0 −1 ~0"),
    "a file is no longer there": (files(b=None), UPDATE, 0, GONE_THREE, "+0 −1 ~0"),
    "no test is left in a file": (files(b=""), UPDATE, 0, GONE_THREE, "+0 −1 ~0"),
    "testpaths": (
        files(
            a=ONE,
            pytest__ini="[pytest]\ncompile_budget = budget.json\ntestpaths = test_a.py test_b.py\n",
        ),
        UPDATE,
        0,
        GONE_TWO,
        "+0 −1 ~0",
    ),
    # What is only not looked at stays.
    "-k": (files(a=ONE), f"-k one {UPDATE}", 0, BEFORE, "+0 −0 ~0"),
    "-m": (files(a=ONE), f"-m xfail {UPDATE}", 5, BEFORE, LEFT),
    "--deselect": (
        files(a=ONE), f"--deselect test_b.py::test_three {UPDATE}", 0, BEFORE, "+0 −0 ~0",
    ),
    "--ignore": (files(), f"--ignore test_b.py {UPDATE}", 0, BEFORE, "+0 −0 ~0"),
    "one test": (files(a=ONE), f"test_a.py::test_one {UPDATE}", 0, BEFORE, "+0 −0 ~0"),
    "one file": (files(a=ONE), f"test_a.py {UPDATE}", 0, GONE_TWO, "+0 −1 ~0"),
    "one file, and another is gone": (
        files(b=None), f"test_a.py {UPDATE}", 0, BEFORE, "+0 −0 ~0",
    ),
    "a test is skipped": (
        files(a=ONE + "@pytest.mark.skip\n" + TWO), UPDATE, 0, BEFORE,
        "1 test that did not pass: as before\nwrote budget.json: +0 −0 ~0",
    ),
    "a test skips itself midway": (
        files(a=ONE + "def test_two(): compiled(1); pytest.skip()\n"), UPDATE, 0, BEFORE,
        "+0 −0 ~0",
    ),
    "a file is skipped": (
        files(a=ONE, b="pytest.importorskip('nothing_of_that_name')"), UPDATE, 0, GONE_TWO,
        "+0 −1 ~0",
    ),
    "a conftest leaves out a file": (
        files(conftest__py="collect_ignore = ['test_b.py']"), UPDATE, 0, BEFORE, "+0 −0 ~0",
    ),
    "a plugin leaves out tests in silence": (
        files(a=ONE, conftest__py="def pytest_collection_modifyitems(items): del items[0]"),
        UPDATE, 0, BEFORE, "+0 −0 ~0",
    ),
    "--lf": (
        files(
            a="def test_one(): assert os.environ.get('AGAIN')\n",
            pytest__ini="[pytest]\ncompile_budget = budget.json\n",
            conftest__py="import os\ndef pytest_unconfigure(): os.environ['AGAIN'] = '1'\n",
        ),
        f"--compile-review && --lf {UPDATE}", 0, without("test_a.py::test_one"), "+0 −1 ~0",
    ),
    "workers": (
        files(
            a=ONE + "def test_new(): compiled(1)\n", b="pytest.importorskip('nothing_of_that_name')"
        ),
        f"-n2 {UPDATE}", 0, GONE_TWO | {"test_a.py::test_new": {"step": 1}}, "+1 −1 ~0",
    ),
    # What does not pass stays.
    "a test fails midway": (
        files(a=ONE + "def test_two(): compiled(1); assert 0\n"), UPDATE, 1, BEFORE, "+0 −0 ~0",
    ),
    "its fixture fails at its end": (
        files(a=ONE + "@pytest.fixture\ndef late():\n  yield\n  assert 0\n"
                      "def test_two(late): compiled(1)\n"),
        UPDATE, 1, BEFORE, "+0 −0 ~0",
    ),
    "it fails as expected": (
        files(a=ONE + "@pytest.mark.xfail\ndef test_two(): compiled(1); assert 0\n"), UPDATE, 0,
        BEFORE, "+0 −0 ~0",
    ),
    "-x": (files(a="def test_one(): assert 0\n"), f"-x {UPDATE}", 1, BEFORE, "+0 −0 ~0"),
    # What does not come to its end changes nothing.
    "--collect-only": (files(a=ONE), f"--collect-only {UPDATE}", 0, BEFORE, LEFT),
    "a file cannot be imported": (files(a=ONE, b="import nothing_here"), UPDATE, 2, BEFORE, LEFT),
    "it cannot, and the others go on": (
        files(a=ONE, b="import nothing_here"), f"--continue-on-collection-errors {UPDATE}", 1,
        GONE_TWO, "+0 −1 ~0",
    ),
    "a path is mistyped": (files(), f"test_c.py {UPDATE}", 4, BEFORE, LEFT),
    "no test is left": (files(), f"-k nothing {UPDATE}", 5, BEFORE, LEFT),
    "Ctrl-C": (
        files(a=ONE, b="def test_three(): raise KeyboardInterrupt"), UPDATE, 2, BEFORE, LEFT,
    ),
    "it is only shown": (
        files(a="def test_new(): compiled(1)\ndef test_one(): compiled(2)\n"),
        "--compile-review", 0, BEFORE,
        REVIEWED,
    ),
    "the tests go elsewhere": (
        files(a=ONE + "def test_two(tmp_path): compiled(1); os.chdir(tmp_path)\n"),
        ELSEWHERE, 0,
        BEFORE | {"test_a.py::test_two": {"step": 1}}, "wrote new.json: +3 −0 ~0",
    ),
    "both": (files(), f"{UPDATE} --compile-review", 2, BEFORE, ""),
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, tuple[int, str, Any]]:
    """Of each run: the exit code, what was printed, and the budget."""
    runs = json.dumps([[made, words] for made, words, *_ in RUNS.values()])
    done = python("-c", DRIVER, runs, str(folder))
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(printed) == len(RUNS), done.stderr
    return {
        name: (code, text, json.loads((folder / str(number) / "budget.json").read_text())["tests"])
        for number, (name, (code, text)) in enumerate(zip(RUNS, printed, strict=True))
    }


@pytest.mark.thorough
@pytest.mark.parametrize("name", RUNS)
def test_only_what_a_run_saw_to_its_end_changes(
    name: str, results: dict[str, tuple[int, str, Any]]
) -> None:
    _, _, wanted_code, wanted, said = RUNS[name]
    code, printed, tests = results[name]
    assert (code, tests) == (wanted_code, wanted), printed
    assert said in printed, printed


@pytest.mark.thorough
def test_the_ledger_is_where_pytest_was_started_and_is_not_lost_where_no_test_runs(
    results: dict[str, tuple[int, str, Any]], folder: Path
) -> None:
    assert results
    number = list(RUNS).index("the tests go elsewhere")
    ledger = json.loads((folder / str(number) / "ledger.json").read_text())
    assert sorted(ledger["cases"]) == sorted(BEFORE)


@pytest.mark.thorough
def test_two_runs_at_once_lose_nothing(project: Project) -> None:
    for name in "ab":
        project.write(f"test_{name}.py", "def test_it(): step(arr(3))\n")
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--compile-budget=b.json", UPDATE)
    with (
        running(*command, "test_a.py", cwd=project.root) as one,
        running(*command, "test_b.py", cwd=project.root) as other,
    ):
        for process in one, other:
            process.communicate(timeout=300)
            assert process.returncode == 0
    tests = json.loads((project.root / "b.json").read_text())["tests"]
    assert tests == {f"test_{name}.py::test_it": {"step": 1} for name in "ab"}


def test_a_budget_is_of_the_release_that_all_of_it_was_made_with(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    write_budget(path, {"test_a": {"f": 1}, "test_b": {"f": 1}}, "0.1.0")
    update_budget(path, {"test_a": {"f": 2}}, lambda _: False)
    assert read_budget(path).jax == "0.1.0"  # test_b is as it was
    update_budget(path, {"test_a": {"f": 2}}, lambda test: test == "test_b")
    assert read_budget(path).jax == jax.__version__
    assert read_budget(path).tests == {"test_a": {"f": 2}}
