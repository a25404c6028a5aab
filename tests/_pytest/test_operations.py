"""``compile_budget_operations``: a budget holds the size of programs, too; real runs of pytest."""

import json
import re
from pathlib import Path

import jax
import pytest

from jitcount._ledger.budget import Sizes, read_budget, write_budget
from tests._pytest.reading import whole
from tests.expected import expect_file
from tests.helpers import Finished, Project

MODEL = """\
import os

import jax.numpy as jnp


def attention(x):
    return jnp.tanh(x @ x.T) @ jnp.cos(x @ x)


def net(x):
    for _ in range(int(os.environ.get("LAYERS", "4"))):
        x = x + attention(jnp.sin(x))
    return x
"""
TESTS = """\
import jax
import numpy as np

from model import net


@jax.jit
def step(x):
    return net(x).sum()


def test_other():
    assert net


def test_step():
    step(np.ones((8, 8), np.float32))
"""
INI = "[pytest]\ncompile_budget = budget.json\npythonpath = .\n"
ON = "compile_budget_operations = true\n"
STEP = "test_it.py::test_step"


@pytest.fixture
def budgeted(tmp_path: Path) -> Project:
    """A project with a model, and a budget without operations, as the first test makes it."""
    project = Project(tmp_path)
    project.write("model.py", MODEL, head="")
    project.write("test_it.py", TESTS, head="")
    (project.root / "pytest.ini").write_text(INI)
    write_budget(project.root / "budget.json", {STEP: {"step": 1}})
    return project


def good(done: Finished) -> str:
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def layers(project: Project, count: int, *arguments: str) -> Finished:
    return project.run(*arguments, env={"LAYERS": str(count)})


def switch_on(project: Project) -> int:
    """Put the operations into the budget; returns those of the program."""
    (project.root / "pytest.ini").write_text(INI + ON)
    good(project.run("--compile-update"))
    sizes = read_budget(project.root / "budget.json").sizes
    assert sizes is not None
    return sizes.tests[STEP]["step"]


def without_numbers(text: str) -> str:
    """Lowered by another release, the same program may have some operations more."""
    return re.sub(r"\b\d+(?= operations)|\d+(?= → \d+ operations)", "N", text)


def test_a_budget_without_them_is_written_as_it_was_before(budgeted: Project) -> None:
    expected = (budgeted.root / "budget.json").read_text()
    (budgeted.root / "budget.json").unlink()
    good(budgeted.run("--compile-update"))
    text = (budgeted.root / "budget.json").read_text()
    assert text == expected
    assert json.loads(text) == {
        "kind": "jitcount budget",
        "schema": 1,
        "jax": jax.__version__,
        "tests": {STEP: {"step": 1}},
    }
    assert "operations" not in text


@pytest.mark.thorough
def test_a_budget_holds_them_where_a_project_asks_for_it(budgeted: Project) -> None:
    (budgeted.root / "pytest.ini").write_text(INI + ON)
    assert "1 test: the budget has no operations yet: --compile-update puts them there" in good(
        budgeted.run()
    )
    before = (budgeted.root / "budget.json").read_text()
    reviewed = good(budgeted.run("--compile-review"))
    assert (budgeted.root / "budget.json").read_text() == before
    operations = switch_on(budgeted)
    assert f"{STEP}: step {operations} operations\nwould change" in reviewed
    assert json.loads((budgeted.root / "budget.json").read_text()) == {
        "kind": "jitcount budget",
        "schema": 2,
        "jax": jax.__version__,
        "tests": {STEP: {"step": 1}},
        "operations": {"platform": "cpu", "tests": {STEP: {"step": operations}}},
    }
    assert "budgeted" not in good(budgeted.run())


def test_a_program_that_has_grown_fails_its_test_and_the_line_is_named(budgeted: Project) -> None:
    before = switch_on(budgeted)
    grown = layers(budgeted, 16)
    assert (grown.returncode, grown.stderr) == (1, "")
    expect_file(without_numbers(whole(grown.stdout)), "grown.txt")
    found = re.search(r"step (\d+) → (\d+) operations, at model.py:7 in attention", grown.stdout)
    assert found is not None
    assert int(found[1]) == before
    assert int(found[2]) > 3 * before


MOCKED = """

@pytest.fixture(autouse=True)
def mocks(request, monkeypatch):
    if request.node.name == "test_step":
        monkeypatch.setattr("sys.meta_path", [])
"""


def test_one_that_has_grown_fails_the_same_where_nothing_can_be_imported(
    budgeted: Project,
) -> None:
    switch_on(budgeted)
    warm = TESTS.replace("assert net", "jax.jit(jnp.tanh)(np.ones(4, np.float32))")
    budgeted.write("test_it.py", f"import pytest, jax.numpy as jnp\n{warm}{MOCKED}", head="")
    good(layers(budgeted, 4, "--compile-update"))
    done = layers(budgeted, 16)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("compiles a larger program than budget.json has of it") == 1


@pytest.mark.thorough
def test_one_that_has_grown_is_the_same_with_workers_and_where_it_is_only_looked_at(
    budgeted: Project,
) -> None:
    before = switch_on(budgeted)
    found = re.search(r"step (\d+) → (\d+) operations, at", layers(budgeted, 16, "-n1").stdout)
    assert found is not None
    assert int(found[1]) == before
    reviewed = good(layers(budgeted, 16, "--compile-review"))
    assert f"{STEP}: step {found[1]} → {found[2]} operations\nwould change" in reviewed
    assert "+0 −0 ~1" in " ".join(reviewed.split())
    good(layers(budgeted, 16, "--compile-update"))
    good(layers(budgeted, 16))


def test_a_program_that_has_become_smaller_is_said_at_the_end(budgeted: Project) -> None:
    before = switch_on(budgeted)
    shown = good(layers(budgeted, 3))
    found = re.search(rf"{STEP}: step (\d+) → (\d+) operations\n--compile-update puts", shown)
    assert found is not None
    assert int(found[1]) == before > int(found[2])


@pytest.mark.thorough
def test_switched_off_they_stay_in_the_file_and_are_not_held(budgeted: Project) -> None:
    switch_on(budgeted)
    (budgeted.root / "pytest.ini").write_text(INI)
    before = (budgeted.root / "budget.json").read_text()
    good(layers(budgeted, 16))
    assert "+0 −0 ~0" in good(layers(budgeted, 16, "--compile-update"))
    assert (budgeted.root / "budget.json").read_text() == before


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "platform"), [("0.1.2", "cpu"), (jax.__version__, "tpu")])
def test_those_of_another_release_or_platform_are_not_held_and_not_mixed(
    budgeted: Project, release: str, platform: str
) -> None:
    (budgeted.root / "pytest.ini").write_text(INI + ON)
    other = "test_elsewhere.py::test_it"
    sizes = Sizes(platform=platform, tests={STEP: {"step": 1}, other: {"f": 3}})
    counts = {STEP: {"step": 1}, other: {"f": 1}}
    write_budget(budgeted.root / "budget.json", counts, release, sizes)
    is_here = f"and this is {jax.__version__} on cpu"
    of = f"they are of JAX {release} on {platform}, {is_here}"
    assert f"1 test: operations are not held: {of}\n" in good(budgeted.run())
    shown = good(budgeted.run("--compile-update", "-k", "step"))
    stay = f"the budget is of JAX {release} on {platform}: its operations stay as they are"
    assert stay in shown
    assert read_budget(budgeted.root / "budget.json").sizes == sizes


def test_what_is_neither_true_nor_false_is_refused(budgeted: Project) -> None:
    (budgeted.root / "pytest.ini").write_text(INI + "compile_budget_operations = some\n")
    refused = budgeted.run()
    assert refused.returncode == 4
    assert "compile_budget_operations: " in refused.stderr
    assert refused.stderr.rstrip().endswith("; it can be true or false")
