"""The plugin in real pytest processes, in projects as users have them."""

import json
import os
import re
from pathlib import Path

import jax
import pytest

from jitcount._ledger.budget import write_budget
from jitcount._ledger.ledger import KIND, SCHEMA
from jitcount._targets.names import TARGETS
from tests._pytest.reading import whole
from tests.expected import expect, expect_file
from tests.helpers import WITH_FAKE_COMPILER, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def failure(output: str) -> str:
    """The text of the one failure in an output, with the times taken out."""
    found = re.search(r"^_+ \S+ _+\n(.*?)^=+ short", output, re.MULTILINE | re.DOTALL)
    assert found is not None, output
    return found[1].strip()


def test_markers_that_hold_pass_and_the_fixture_is_a_log_of_the_call_phase(
    project: Project,
) -> None:
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

def test_fixture(warm, compiles):
    step(arr(3))
    assert compiles.counts() == {}
    step(arr(4))
    step(arr(4))
    assert compiles.counts() == {"step": 1}

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
    assert "7 passed" in done.stdout, done.stdout


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

@pytest.mark.no_compiles(3)
def test_no_count():
    step(arr(3))

@pytest.mark.max_compiles()
def test_no_limit():
    raise KeyError("the test's own")

@pytest.mark.max_compiles(3, step=1)
def test_too_much():
    pass

@pytest.mark.compiles(step=1)
def test_own_error():
    raise KeyError("the test's own")
"""


def test_each_failure_shows_expected_against_found_and_the_surplus_with_its_cause(
    project: Project,
) -> None:
    project.write("test_it.py", FAILING)
    done = project.run()
    assert (done.returncode, done.stderr) == (1, "")
    expect_file(whole(done.stdout), "failing.txt")


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
    write_budget(project.root / "budget.json", {"test_it.py::test_step": {"step": 2}})
    (project.root / "pytest.ini").write_text("[pytest]\ncompile_budget = budget.json\n")
    project.write("test_it.py", BUDGETED.replace("pass", "step(arr(5))"))
    over = project.run()
    assert (over.returncode, over.stderr) == (1, "")
    expect_file(whole(over.stdout), "over_budget.txt")
    project.write("test_it.py", BUDGETED.replace("    step(arr(4))\n", ""))
    under = project.run()
    assert (under.returncode, under.stderr) == (0, "")
    expect_file(whole(under.stdout), "under_budget.txt")


@pytest.mark.thorough
def test_a_budget_of_another_release_says_so_where_it_fails(project: Project) -> None:
    project.write("test_it.py", BUDGETED)
    (project.root / "budget.json").write_text(
        '{"kind": "jitcount budget", "schema": 1, "jax": "0.1.0", "tests": {}}'
    )
    shown = failure(project.run("--compile-budget=budget.json").stdout)
    assert shown.splitlines()[:3] == [
        "step ×2, not in the budget: --compile-update puts it there",
        (
            "test_step has no entry in budget.json: it is new, or compiled nothing before; "
            "the budget was made"
        ),
        f"  with JAX 0.1.0, and this is {jax.__version__}",
    ]


LONG = "x" * 256
FOREIGN = '{"name": "web"}'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compile-budget=none.json"], "none.json: is not there; --compile-update makes one"),
        (["--compile-update"], "--compile-update needs --compile-budget=FILE, or compile_budget"),
        (["--compile-budget=foreign.json"], "foreign.json: is not a jitcount budget"),
        (["--compile-budget=/dev/null"], "/dev/null: is a pipe or a device, not a file"),
        ([f"--compile-budget={LONG}"], f"{LONG}: cannot be read: File name too long"),
        (
            [f"--compile-budget={LONG}", "--compile-update"],
            f"{LONG}: cannot be written: File name too long",
        ),
        (
            ["--compile-ledger=/dev/null"],
            "/dev/null: cannot be written: it is a pipe or a device, not a file",
        ),
        (["--compile-review"], "--compile-review needs --compile-budget=FILE, or compile_budget"),
        (
            ["--compile-ledger=new.json", "--compile-budget=./new.json", "--compile-update"],
            "new.json: is the budget's file, and --compile-ledger names it too: give it another",
        ),
        (
            ["--compile-fail-on-refusal"],
            "--compile-fail-on-refusal needs a target that can refuse: --compile-target=tpu:v5e",
        ),
        (
            ["--compile-target=tpu:v9"],
            (
                "unknown target 'tpu:v9'; did you mean tpu:v4, tpu:v6e or tpu:v5p? "
                f"known are {', '.join(t.name for t in TARGETS)}"
            ),
        ),
        (
            ["--compile-budget=foreign.json", "--compile-update"],
            "foreign.json: is not a jitcount budget; it is left as it is",
        ),
        (
            ["--compile-ledger=foreign.json"],
            "foreign.json: is not a jitcount ledger; it is left as it is",
        ),
    ],
)
def test_what_cannot_be_used_ends_the_run_with_one_line(
    project: Project,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(project.root)
    project.write("test_it.py", BUDGETED)
    (project.root / "foreign.json").write_text(FOREIGN)
    code = pytest.main(["-q", "-p", "no:cacheprovider", *arguments])  # it ends before any test
    printed = capfd.readouterr()
    shown = (printed.out + printed.err).replace(f"{project.root}{os.sep}", "")
    assert (code, shown) == (2, f"Exit: {message}\n")
    assert (project.root / "foreign.json").read_text() == FOREIGN
    assert not (project.root / "none.json").exists()


# --- The ledger, the table, and projects that want none of it


RAGGED = """
def test_step():
    for length in 3, 4:
        step(arr(length))

def test_quiet():
    pass
"""


def test_the_ledger_has_all_compiles_and_the_report_what_to_fix(project: Project) -> None:
    project.write("test_it.py", RAGGED)
    done = project.run("--compile-ledger=ledger.json", "--compiles=1")
    assert done.returncode == 0
    section = whole(done.stdout).partition(" compiles ")[2].partition("=\n")[2]
    expect(
        section,
        "2 compiles took TIME of the run's TIME; 1 of 2 tests compiles\n"
        "\n"
        "What to fix, by what it saves over the whole suite\n"
        "  1. step at test_it.py:13 in test_step: 1 recompile, TIME [JC101]\n"
        "    axis 0 of x: 3 → 4\n"
        "    → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding\n"
        "    in test_step (TIME)\n"
        "\n"
        "The most expensive tests\n"
        "\n"
        "time   compiles   test   most of it at\n"
        "───\n"
        "TIME   2   test_it.py::test_step   line 13\n"
        "2 passed in TIME\n",
    )
    ledger = json.loads((project.root / "ledger.json").read_text())
    assert (ledger["kind"], ledger["schema"]) == (KIND, SCHEMA)
    assert ledger["environment"]["jax"] == jax.__version__
    compiles = ledger["cases"]["test_it.py::test_step"]["compiles"]
    assert [c["signature"] for c in compiles] == [["float32[3]"], ["float32[4]"]]
    assert compiles[1]["causes"][0]["kind"] == "shape"
    assert ledger["cases"]["test_it.py::test_quiet"] == {"shares_caches": True}


LOADED = """
import sys

def pytest_unconfigure():
    rare = {"jitcount._show", "jitcount._pytest.checks", "jitcount._targets.names"}
    print(sorted(rare & set(sys.modules)))
"""


def test_a_run_that_shows_nothing_loads_no_tables(project: Project) -> None:
    project.write("conftest.py", LOADED, head="")
    project.write("test_it.py", BUDGETED)
    done = project.run("--compile-ledger=ledger.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


MOCKED = """
import os
from pathlib import Path

def test_first(compiles):
    step(arr(2))

@pytest.fixture
def mocks(monkeypatch):
    monkeypatch.setattr(Path, "read_bytes", lambda self: b"weights = 1")
    monkeypatch.setattr(os, "getpid", None)
    monkeypatch.setattr("sys.path", [])

@pytest.mark.max_compiles(3)
def test_marked(mocks):
    step(arr(3))

@pytest.mark.max_compiles(0)
def test_refused(mocks):
    step(arr(5))

def test_asserts(mocks, compiles):
    step(arr(4))
    assert compiles.count() == 5
"""


def test_what_a_test_mocks_does_not_reach_how_it_is_judged(project: Project) -> None:
    """pytest itself rewrites what is imported, and reads it by `Path.read_bytes`."""
    project.write("test_it.py", MOCKED)
    done = project.run("--compile-ledger=ledger.json")
    assert (done.returncode, done.stderr) == (1, "")
    refused, asserts = done.stdout.splitlines()[-3:-1]
    assert refused.endswith("test_refused - Failed: 1 compile, at most 0: step, first call of step")
    assert asserts.endswith("assert 1 == 5")
    assert done.stdout.count(" compiles ----") == 2  # the sections
    cases = json.loads((project.root / "ledger.json").read_text())["cases"]
    assert [len(case["compiles"]) for case in cases.values()] == [1, 1, 1, 1]


FORKS = """
import json, os
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    hook, config = item.config.hook, item.config
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            kept = hook.pytest_report_to_serializable(config=config, report=report)
            os.write(writer, json.dumps(kept).encode() + b"\\n")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as sent:
        for line in sent:
            report = hook.pytest_report_from_serializable(config=config, data=json.loads(line))
            hook.pytest_runtest_logreport(report=report)
    os.waitpid(child, 0)
    return True
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_what_a_fork_has_compiled_comes_with_its_report(project: Project) -> None:
    """As pytest-forked does it: plain values travel."""
    project.write("conftest.py", FORKS, head="")
    project.write("test_it.py", BUDGETED)
    done = project.run("--compile-ledger=ledger.json", "-W", "ignore:os.fork")
    assert (done.returncode, done.stderr) == (0, "")
    cases = json.loads((project.root / "ledger.json").read_text())["cases"]
    assert [each["function"] for each in cases["test_it.py::test_step"]["compiles"]] == ["step"] * 2


@pytest.mark.thorough
def test_one_ledger_comes_from_all_workers(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write("test_it.py", BUDGETED)
    arguments = ("-n2", "--compile-ledger=ledger.json", "--compile-budget=b.json")
    assert project.run(*arguments, "--compile-update").returncode == 0
    cases = json.loads((project.root / "ledger.json").read_text())["cases"]
    assert sorted(cases) == ["test_it.py::test_quiet", "test_it.py::test_step"]
    budget = json.loads((project.root / "b.json").read_text())
    assert budget["tests"] == {"test_it.py::test_step": {"step": 2}}


def test_what_a_targets_compiler_says_is_shown_and_kept(project: Project) -> None:
    """The target "cpu" stands in for one whose compiler need not be installed."""
    callback = "jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(arr(3))"
    project.write("test_it.py", BUDGETED.replace("pass", callback))
    done = project.run("--compile-target=cpu", "--compile-ledger=ledger.json")
    assert (done.returncode, done.stderr) == (0, "")
    expect(
        whole(done.stdout),
        "..                                                              "
        "                             [100%]\n"
        "======================================= compiles on targets "
        "========================================\n"
        "On cpu: 3 compiles in TIME\n"
        "  cpu, test_it.py::test_quiet: <lambda>(float32[3]): "
        "host's part left out: pure_callback at\n"
        "    test_it.py:16 in test_quiet.<lambda>\n"
        "2 passed in TIME\n",
    )
    cases = json.loads((project.root / "ledger.json").read_text())["cases"]
    on = [c["on"]["cpu"] for c in cases["test_it.py::test_step"]["compiles"]]
    assert [result["error"] for result in on] == [None, None]


def test_a_test_whose_program_a_target_refuses_fails_where_it_is_asked_for(
    project: Project,
) -> None:
    tests = """
@jax.jit
def refused(x):
    return 2 * x

def test_refused():
    refused(arr(3)); refused(arr(4))

def test_taken():
    step(arr(3))
"""
    project.write("conftest.py", WITH_FAKE_COMPILER, head="")
    project.write("test_it.py", tests)
    assert project.run("--compile-target=cpu").returncode == 0
    done = project.run("--compile-target=cpu", "--compile-fail-on-refusal")
    assert (done.returncode, done.stderr) == (1, "")
    expect(
        failure(done.stdout),
        "refused not compiled for cpu, and 1 more: UNIMPLEMENTED: not so\n"
        "test_refused must compile for all targets, by --compile-fail-on-refusal\n"
        "  cpu: refused(float32[3]) at test_it.py:16 in test_refused: UNIMPLEMENTED: not "
        "so\n"
        "  cpu: refused(float32[4]) at test_it.py:16 in test_refused: UNIMPLEMENTED: not "
        "so\n"
        "======================================= compiles on targets "
        "========================================\n"
        "On cpu: 1 compile in 500 ms, 2 not compiled\n"
        "  cpu, test_it.py::test_refused: refused(float32[3]): UNIMPLEMENTED: not so\n"
        "  cpu, test_it.py::test_refused: refused(float32[4]): UNIMPLEMENTED: not so",
    )
    assert "1 failed, 1 passed" in done.stdout


def test_a_project_without_jax_pays_nothing(project: Project) -> None:
    project.write(
        "test_it.py", "import sys\ndef test(): assert 'jax' not in sys.modules\n", head=""
    )
    assert project.run().returncode == 0


@pytest.mark.thorough
def test_the_number_of_compiles_to_show_is_not_the_next_word(project: Project) -> None:
    project.write("test_a.py", "def test_it(): step(arr(3))\n")
    project.write("test_b.py", "def test_it(own): step(arr(3))\n")
    (project.root / "sub").mkdir()
    project.write("sub/test_c.py", "def test_it(request): assert request.config.option.own\n")
    conftest = "def pytest_addoption(parser): parser.addoption('--own', action='store_true')\n"
    project.write("sub/conftest.py", conftest, head="")
    project.write("conftest.py", "import pytest\n@pytest.fixture\ndef own(): pass\n", head="")
    one = project.run("--compiles", "test_b.py")
    assert (one.returncode, "1 passed" in one.stdout) == (0, True), one.stdout + one.stderr
    assert "test_b.py::test_it" in one.stdout.partition(" compiles ")[2]
    both = project.run("--compiles", "sub/test_c.py", "test_a.py", "--own")
    assert "2 passed" in both.stdout, both.stdout + both.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--compiles=-3"],
            "--compiles takes a count of 0 or more, as in --compiles=3; it was given '-3'",
        ),
        (
            ["--compiles="],
            "--compiles takes a count of 0 or more, as in --compiles=3; it was given ''",
        ),
        (
            ["--compiles=x"],
            "--compiles takes a count of 0 or more, as in --compiles=3; it was given 'x'",
        ),
        (
            ["--compiles", "-o", "compile_isolation=some"],
            "compile_isolation is 'some'; it can be clear or none",
        ),
        (
            ["-o", "compile_budget_eager=some"],
            "compile_budget_eager: invalid truth value 'some'; it can be true or false",
        ),
    ],
)
def test_a_bad_value_ends_the_run_with_one_line(
    project: Project,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(project.root)
    code = pytest.main(["-q", "-p", "no:cacheprovider", *arguments])  # it ends before any test
    assert (code, capfd.readouterr().err.strip()) == (4, f"ERROR: {message}")


def test_the_plugin_can_be_turned_off(project: Project) -> None:
    project.write("test_it.py", "def test(compiles): pass\n", head="")
    done = project.run("-p", "no:jitcount")
    assert "fixture 'compiles' not found" in done.stdout
