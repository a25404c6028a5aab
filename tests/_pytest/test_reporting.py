"""What a run of pytest hands on: sections, junit's properties, benchmarks, GitHub, what came again.

One project is run a few times; each test looks at what it left.
"""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from jitcount._pytest.github import Github, _command, _Failure
from tests._pytest.reading import whole
from tests.expected import expect
from tests.helpers import Finished, Project

TESTS = """
@pytest.mark.compiles(step=1)
def test_marked():
    step(arr(3)); step(arr(4))

def test_asserts(compiles):
    for length in 3, 5:
        step(arr(length))
    assert compiles.count() == 1

@pytest.mark.no_compiles
def test_in_a_loop():
    for length in range(3, 11):
        step(arr(length)); np.add(jax.numpy.sin(arr(length)), 1)

def test_of_nothing(compiles):
    assert compiles.count() == 1

def test_fails_for_another_reason():
    step(arr(3))
    assert False

def test_timed(benchmark, compiles):
    benchmark.pedantic(step, (arr(3),), rounds=2)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("project"))
    project.write("test_it.py", TESTS)
    return project


@pytest.fixture(scope="module")
def on_github(project: Project) -> Finished:
    return project.run(
        "--compiles=1", "--junitxml=junit.xml", "--benchmark-json=times.json",
        env={
            "PYTEST_XDIST_WORKER": None,  # in one, there would be no benchmarks
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(project.root.resolve()),
            "GITHUB_STEP_SUMMARY": str(project.root / "summary.md"),
        },
    )  # fmt: skip


def section_of(output: str, test: str) -> list[str]:
    """The section "compiles" of a failed test."""
    failure = whole(output).partition(f" {test} __")[2].partition("\n____")[0]
    return failure.partition("-- compiles --")[2].partition("\n==")[0].splitlines()[1:]


def test_a_failed_test_shows_what_it_compiled_and_why(on_github: Finished) -> None:
    assert on_github.returncode == 1
    expect(
        section_of(on_github.stdout, "test_marked"),
        [
            "2 compiles took TIME",
            "function   arguments   compiles   time   call site   cause",
            "───",
            "step   x f32[3]   2   TIME   test_it.py:13 in test_marked   axis 0 of x: 3 → 4",
            "in all: trace TIME, lower TIME, XLA TIME",
        ],
    )


def test_a_plain_assert_shows_it_too_and_what_to_do(on_github: Finished) -> None:
    expect(
        section_of(on_github.stdout, "test_asserts"),
        [
            "2 compiles took TIME; what is listed below would save TIME",
            "What to fix",
            "  1. step at test_it.py:17 in test_asserts: 1 recompile, TIME [JC101]",
            "    axis 0 of x: 3 → 5",
            "    → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
            "function   arguments   compiles   time   call site   cause",
            "───",
            "step   x f32[3]   2   TIME   test_it.py:17 in test_asserts   axis 0 of x: 3 → 5",
            "in all: trace TIME, lower TIME, XLA TIME",
        ],
    )
    assert section_of(on_github.stdout, "test_of_nothing") == ["nothing was compiled"]


def test_a_test_that_holds_no_count_has_no_section(on_github: Finished) -> None:
    assert section_of(on_github.stdout, "test_fails_for_another_reason") == []


def test_junit_has_counts_and_seconds(project: Project, on_github: Finished) -> None:
    cases = ET.parse(project.root / "junit.xml").iter("testcase")  # noqa: S314 (ours)
    found = {
        case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
        for case in cases
    }
    assert {name: properties["compiles"] for name, properties in found.items()} == {
        "test_marked": "2",
        "test_asserts": "2",
        "test_in_a_loop": "16",
        "test_of_nothing": "0",
        "test_fails_for_another_reason": "1",
        "test_timed": "1",
    }
    assert float(found["test_marked"]["compile_s"] or 0) > 0
    assert float(found["test_of_nothing"]["compile_s"] or 1) == 0


def test_a_benchmark_has_them_too(project: Project, on_github: Finished) -> None:
    (benchmark,) = json.loads((project.root / "times.json").read_text())["benchmarks"]
    assert benchmark["extra_info"]["compiles"] == {"step": 1}
    assert benchmark["extra_info"]["compile_s"] > 0


def annotations(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("::")]


ANNOTATED = [
    (
        "::error file=test_it.py,line=13,title=step(float32[4])::"
        "step ×2, expected 1: axis 0 of x 3 → 4 [JC101]"
    ),
    "::error file=test_it.py,line=17,title=step(float32[5])::step: axis 0 of x 3 → 5 [JC101]",
]


IN_A_LOOP = (
    "::error file=test_it.py,line=23,title=16 compiles%3A step ×8%2C sin ×8::step ×8, expected 0: "
    "axis 0 of x: 3 … 10, 8 of them [JC101]; sin ×8, expected 0: axis 0 of x: 3 … 10, 8 of them "
    "[JC101]"
)


def test_github_is_shown_each_line_once(on_github: Finished) -> None:
    assert annotations(on_github.stdout) == [*ANNOTATED, IN_A_LOOP]


def test_what_came_at_one_line_for_one_reason_is_said_once(on_github: Finished) -> None:
    failure = whole(on_github.stdout).partition(" test_in_a_loop __")[2]
    expect(
        failure.partition("\n")[2].partition("-- compiles --")[0].splitlines()[:-1],
        [
            (
                "step ×8, expected 0: axis 0 of x: 3 … 10, 8 of them [JC101]; sin ×8, expected 0: "
                "axis 0 of x: 3 … 10, 8 of them [JC101]"
            ),
            "test_in_a_loop must compile nothing, and compiled 16",
            "function   expected   found",
            "───",
            "step   0   8",
            "sin   0   8",
            "step(float32[3]) at test_it.py:23 in test_in_a_loop",
            "  because: first call of step",
            "  → call it once in a fixture, before the test",
            "sin(float32[3]) at test_it.py:23 in test_in_a_loop",
            "  because: first call of sin",
            "  → call it once in a fixture, before the test",
            "step ×7 at test_it.py:23 in test_in_a_loop",
            "  because: axis 0 of x: 3 … 10, 8 of them [JC101]",
            "  → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
            "sin ×7 at test_it.py:23 in test_in_a_loop",
            "  because: axis 0 of x: 3 … 10, 8 of them [JC101]",
            "  → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
            "→ to accept it, write @pytest.mark.max_compiles(16) instead of no_compiles",
        ],
    )


def test_github_is_given_a_summary(project: Project, on_github: Finished) -> None:
    lines = whole((project.root / "summary.md").read_text()).splitlines()
    expect(
        lines[:7],
        [
            "### 3 tests did not compile as expected",
            "",
            "| test | compiles |",
            "| :--- | :--- |",
            "| test\\_it.py::test\\_marked | step ×2, expected 1: axis 0 of x 3 → 4 \\[JC101] |",
            "| test\\_it.py::test\\_asserts | step: axis 0 of x 3 → 5 \\[JC101] |",
            (
                "| test\\_it.py::test\\_in\\_a\\_loop | step ×8, expected 0: axis 0 of x: 3 … 10, "
                "8 of them \\[JC101]; sin ×8, expected 0: axis 0 of x: 3 … 10, 8 of them "
                "\\[JC101] |"
            ),
        ],
    )
    expect(lines[8], "### 22 compiles took TIME of the run's TIME; 5 of 6 tests compile")


@pytest.mark.thorough
def test_elsewhere_nothing_is_said_to_github(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    env = {"GITHUB_ACTIONS": None, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = project.run("-n2", "--compiles", "-k", "marked or asserts", env=env)
    assert annotations(done.stdout) == []
    assert not (tmp_path / "summary.md").exists()
    # test_marked and test_asserts are in two processes, or in one with cleared caches.
    lines = whole(done.stdout).splitlines()
    place = lines.index("1 of 4 compiles is of a program that this run had compiled before: TIME")
    expect(
        lines[place + 1 : place + 5],
        [
            "  a persistent cache would have served TIME of it: JAX_COMPILATION_CACHE_DIR=FOLDER",
            "    JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0",
            "  without the second, what compiles in less than TIME is not kept: 0 of it",
            (
                "  tests that hold a count begin with cleared caches: "
                "--compile-isolation=none leaves them"
            ),
        ],
    )


@pytest.mark.thorough
def test_workers_tell_github_through_the_one_above(project: Project) -> None:
    pytest.importorskip("xdist")
    env = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(project.root.resolve()),
        "GITHUB_STEP_SUMMARY": "/no/such/folder/summary.md",
    }
    done = project.run("-n2", "-k", "marked or asserts", env=env)
    assert (done.returncode, sorted(annotations(done.stdout))) == (1, ANNOTATED), done.stdout


def test_the_cases_of_a_test_are_one_annotation_at_a_line() -> None:
    github = Github(config=None)  # type: ignore[arg-type]  # it is not asked
    for number in range(3):
        failure = _Failure(
            f"step ×1, expected 0 ({number})", (("a.py", 3, f"step(f32[{number}])"),)
        )
        github._failed[f"a.py::test_step[{number}]"] = failure
    github._failed["a.py::test_other"] = _Failure("step ×2", (("a.py", 3, "step ×2"),))
    assert github._annotations() == [
        (
            "::error file=a.py,line=3,title=step(f32[0])::step ×1, expected 0 (0); "
            "the same line in 2 more cases"
        ),
        "::error file=a.py,line=3,title=step ×2::step ×2",
    ]


def test_what_has_a_meaning_to_github_is_escaped() -> None:
    shown = _command(file="a,b:c.py", line="3", title="f(x): 100%", text="50%\n::error::forged")
    assert shown == (
        "::error file=a%2Cb%3Ac.py,line=3,title=f(x)%3A 100%25::50%25\\n::error::forged"
    )


def test_what_the_settings_promise_is_so(project: Project, tmp_path: Path) -> None:
    """With both settings, what came again comes from the disk."""
    env = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    done = project.run("--compiles", "--compile-ledger=l.json", "-k", "marked or asserts", env=env)
    assert "had compiled before" not in done.stdout
    cases = json.loads((project.root / "l.json").read_text())["cases"]
    compiles = cases["test_it.py::test_asserts"]["compiles"]
    assert [compiled["from_disk"] for compiled in compiles] == [True, False]
