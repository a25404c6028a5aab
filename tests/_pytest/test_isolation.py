"""When the plugin clears JAX's caches, what survives it, and what a failure says then."""

import json
from pathlib import Path

import pytest

from tests._pytest.reading import whole
from tests.expected import expect_file
from tests.helpers import Project

pytestmark = pytest.mark.thorough


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def compiles_in(project: Project, ledger: str = "ledger.json") -> dict[str, list[str]]:
    """By test, what XLA compiled in it and why, as the ledger has it."""
    cases = json.loads((project.root / ledger).read_text())["cases"]
    return {
        test.rpartition("::")[2]: [
            f"{c['function']}({', '.join(c['signature'])}): {c['causes'][0]['kind']}"
            for c in case.get("compiles", [])
        ]
        for test, case in cases.items()
    }


# --- Runs that hold no count ---------------------------------------------------------------------

SHARED = """
def test_one():
    step(arr(3))

def test_two():
    step(arr(3))
"""


def test_what_only_looks_clears_nothing(project: Project) -> None:
    project.write("test_it.py", SHARED)
    done = project.run("--compiles", "--compile-ledger=ledger.json", "--compile-target=cpu")
    assert "\n1 compile took " in done.stdout
    assert "\nOn cpu: 1 compile in " in done.stdout
    assert compiles_in(project) == {"test_one": ["step(float32[3]): first-call"], "test_two": []}


def test_a_budget_holds_counts_of_all_tests(project: Project) -> None:
    project.write("test_it.py", SHARED)
    project.run("--compiles", "--compile-budget=budget.json", "--compile-update")
    budget = json.loads((project.root / "budget.json").read_text())
    alone = {"step": 1}
    assert budget["tests"] == {"test_it.py::test_one": alone, "test_it.py::test_two": alone}
    assert "2 passed" in project.run("--compile-budget=budget.json").stdout


def test_another_isolation_than_there_is_ends_the_run_with_one_line(project: Project) -> None:
    (project.root / "pytest.ini").write_text("[pytest]\ncompile_isolation = some\n")
    done = project.run()
    assert (done.returncode, done.stderr) == (
        4,
        "ERROR: compile_isolation is 'some'; it can be clear or none\n\n",
    )


# --- Warm-ups of every scope ---------------------------------------------------------------------

WARM = """
@pytest.fixture(scope="SCOPE")
def warm():
    step(arr(3))

class TestStep:
    def test_before(self):
        step(arr(3)); step(arr(4))

    def test_plain(self, warm):  # it sets up the fixture, while the caches hold what that needs
        step(arr(3))

    @pytest.mark.no_compiles
    def test_one(self, warm):
        step(arr(3))

    @pytest.mark.compiles(step=1)
    def test_between(self):
        step(arr(3))

    @pytest.mark.no_compiles
    def test_two(self, warm):
        step(arr(3))

    @pytest.mark.compiles(step=1)
    def test_beyond(self, warm):
        step(arr(3)); step(arr(4))

    @pytest.mark.no_compiles
    def test_three(self, warm):
        step(arr(3))

    @pytest.mark.max_compiles(0)
    def test_at_most(self, warm):
        step(arr(3))

    def test_log(self, warm, compiles):
        step(arr(3))
        assert compiles.counts() == {}
"""

REVERSED = """
def pytest_collection_modifyitems(items):
    items.reverse()
"""


@pytest.mark.parametrize("how", ["in order", "in reverse", "in two workers"])
def test_a_warm_up_of_any_scope_counts_for_the_tests_that_ask_for_it(
    project: Project, how: str
) -> None:
    for scope in "function", "class", "module", "package", "session":
        project.write(f"test_{scope}.py", WARM.replace("SCOPE", scope))
    if how == "in reverse":
        project.write("conftest.py", REVERSED, head="")
    if how == "in two workers":
        pytest.importorskip("xdist")
        done = project.run("-n2")
    else:
        done = project.run()
    assert "45 passed" in done.stdout, done.stdout


WAYS = """
import unittest
from jax import lax
import jitcount

def double(carry, x):
    return 2 * carry, x

def looped():
    return lax.scan(double, np.float32(1), arr(3))

def setup_module():
    looped()

@pytest.mark.no_compiles
def test_a_loop_outside_of_jit():
    looped()

@pytest.mark.compiles(step=1)
def test_between():
    step(arr(3))

@pytest.mark.no_compiles
def test_a_loop_outside_of_jit_again():
    looped()

class StepTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        step(arr(3))

    @pytest.mark.no_compiles
    def test_one(self):
        step(arr(3))

    @pytest.mark.compiles(step=1)
    def test_two(self):
        step(arr(4))

    @pytest.mark.no_compiles
    def test_three(self):
        step(arr(3))

@pytest.fixture(scope="module")
def deep():
    step(arr(5))

@pytest.fixture(scope="module")
def warm(deep):
    step(arr(5)); step(arr(6))

@pytest.fixture
def by_name(request):
    return request.getfixturevalue("warm")

@pytest.mark.no_compiles
@pytest.mark.parametrize("time", [1, 2])
def test_that_asks_by_name(by_name, time):
    step(arr(5)); step(arr(6))

@pytest.mark.compiles(step=2)
def test_that_does_not_ask():
    step(arr(5)); step(arr(6))

def test_clears(compiles):
    pass

def test_without_a_count(warm):
    with pytest.raises(jitcount.RecompileError, match="axis 0 of x: 6"), jitcount.freeze():
        step(arr(7))
    with jitcount.freeze():
        step(arr(5)); step(arr(6))

def test_clears_again(compiles):
    pass

@pytest.mark.no_compiles
def test_with_a_guard_of_its_own(warm):
    with jitcount.freeze():
        step(arr(5))
"""


def test_a_warm_up_counts_in_whichever_way_it_is_written(project: Project) -> None:
    project.write("test_it.py", WAYS)
    done = project.run()
    assert "13 passed" in done.stdout, done.stdout


ROW = """
@pytest.fixture(scope="module")
def warm():
    step(arr(3))

@pytest.mark.no_compiles
def test_one(warm):
    step(arr(3))

@pytest.mark.no_compiles
def test_two(warm):
    step(arr(3))

def test_clears(compiles):
    pass

@pytest.mark.no_compiles
def test_three(warm):
    step(arr(3))
"""


def test_what_is_compiled_again_is_in_the_ledger_and_in_no_count(project: Project) -> None:
    project.write("test_it.py", ROW)
    done = project.run("--compile-ledger=l.json", "--compile-budget=b.json", "--compile-update")
    assert "4 passed" in done.stdout, done.stdout
    assert json.loads((project.root / "b.json").read_text())["tests"] == {}
    assert compiles_in(project, "l.json") == {
        "in fixture warm (module)": ["step(float32[3]): first-call"],
        "test_one": [],
        "test_two": [],
        "test_clears": [],
        "test_three": ["step(float32[3]): caches-cleared"],
    }


# --- What is no warm-up, and what the failure says -----------------------------------------------

NOT_WARM = """
def made():
    return jax.jit(lambda x: x + 1)

@pytest.fixture(scope="module")
def warm():
    step(arr(3))
    made()(arr(3))

@pytest.mark.no_compiles
def test_warm(warm):
    step(arr(3))

@pytest.mark.compiles(step=2)
def test_clears():
    step(arr(3)); step(arr(4))

@pytest.mark.no_compiles
def test_other_shape(warm):
    step(arr(3)); step(arr(4))

@pytest.mark.compiles(step=2)
def test_clears_again():
    step(arr(3)); step(arr(4))

@pytest.mark.no_compiles
def test_other_lambda(warm):
    made()(arr(3))

@pytest.mark.no_compiles
def test_that_does_not_ask():
    step(arr(3))

@pytest.mark.no_compiles
def test_clears_itself(warm):
    step(arr(3))
    jax.clear_caches()
    step(arr(3))
"""


def test_a_failure_after_a_clear_says_what_differs_from_the_warm_up(project: Project) -> None:
    project.write("test_it.py", NOT_WARM)
    done = project.run()
    assert (done.returncode, done.stderr) == (1, "")
    expect_file(whole(done.stdout), "not_warm.txt")
