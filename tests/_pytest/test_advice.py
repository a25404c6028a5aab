"""What a failed test says to do about a count is done here, and the test passes."""

import re
from pathlib import Path

import pytest

from tests._pytest.reading import whole
from tests.expected import expect
from tests.helpers import Project

MARKED = """
@pytest.mark.compiles(step=1)
def test_other_number():
    step(arr(3)); step(arr(4))

@pytest.mark.compiles(step=1)
def test_nothing():
    pass

@pytest.mark.compiles(step=1)
def test_no_identifier():
    jax.jit(lambda x: 2 * x)(arr(3))

@pytest.mark.max_compiles(1)
def test_more():
    step(arr(3)); step(arr(4))

@pytest.mark.no_compiles
def test_none():
    step(arr(3)); step(arr(4))
"""


def test_the_marker_that_a_failure_says_to_write_accepts_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("test_it.py", MARKED)
    failed = project.run()
    assert "5 failed" in failed.stdout
    advised = re.findall(
        r"^→ to accept it, write (@pytest\S+(?: \d+\}\))?)", failed.stdout, re.MULTILINE
    )
    expect(
        advised,
        [
            "@pytest.mark.compiles(step=2)",
            "@pytest.mark.no_compiles",
            "@pytest.mark.compiles(**{'<lambda>': 1})",
            "@pytest.mark.max_compiles(2)",
            "@pytest.mark.max_compiles(2)",
        ],
    )
    markers = iter(advised)
    project.write("test_it.py", re.sub(r"@pytest.*", lambda _: next(markers), MARKED))
    accepted = project.run()
    assert "5 passed" in accepted.stdout, accepted.stdout


def test_an_update_accepts_what_is_over_its_budget(tmp_path: Path) -> None:
    project = Project(tmp_path)
    budgeted = "--compile-budget=budget.json"
    project.write("test_it.py", "def test_step():\n    step(arr(3))\n")
    assert project.run(budgeted, "--compile-update").returncode == 0
    project.write("test_it.py", "def test_step():\n    step(arr(3)); step(arr(4))\n")
    failed = project.run(budgeted)
    assert "\n→ --compile-update puts what it has now into the budget\n" in failed.stdout
    assert project.run(budgeted, "--compile-update").returncode == 0
    assert project.run(budgeted).returncode == 0


TWO_CAUSES = """
@pytest.mark.compiles(step=1)
def test_it():
    step(arr(3))
    step(np.ones(4, np.int32))
"""


def test_two_causes_have_two_remedies(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("test_it.py", TWO_CAUSES)
    failure = whole(project.run().stdout).partition("step(int32[4]) at")[2]
    expect(
        failure.partition("-- compiles --")[0].splitlines()[1:-1],
        [
            "  because: axis 0 of x: 3 → 4 [JC101]",
            "  because: x: float32 → int32 [JC102]",
            "  → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
            "  → cast it before the call: x.astype('float32')",
            "→ to accept it, write @pytest.mark.compiles(step=2)",
        ],
    )


@pytest.mark.parametrize("options", [(), ("--compiles", "--compile-ledger=ledger.json")])
def test_a_marker_means_the_test_and_no_fixture(tmp_path: Path, options: tuple[str, ...]) -> None:
    project = Project(tmp_path)
    project.write(
        "test_it.py",
        """
step(arr(2))

@pytest.fixture
def warm():
    step(arr(3))
    yield
    step(arr(4))

@pytest.mark.no_compiles
def test_none(warm):
    step(arr(3))

@pytest.mark.compiles(step=1)
def test_one(warm):
    step(arr(5))
""",
    )
    done = project.run(*options)
    assert "2 passed" in done.stdout, done.stdout
