"""The workflows call sessions that exist, and never run a stranger's code on one's own hardware."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers import ROOT, sessions

READ = {"contents": "read"}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load(path: Path) -> dict[Any, Any]:
    loaded = yaml.safe_load(path.read_text())
    assert isinstance(loaded, dict)
    return loaded


def triggers(workflow: dict[Any, Any]) -> set[str]:
    return set(workflow[True])  # YAML 1.1 takes the word "on" for a truth value


def sessions_named_in(workflow: dict[Any, Any]) -> set[str]:
    """Those that a job names itself; what a matrix is made of at run time is no list."""
    named: set[str] = set()
    for job in workflow["jobs"].values():
        session = job.get("with", {}).get("session", "")
        if "matrix.session" in session:
            listed = job["strategy"]["matrix"]["session"]
            named |= set(listed) if isinstance(listed, list) else set()
        elif session:
            named.add(session)
    return named


NAMED = set().union(*(sessions_named_in(load(path)) for path in WORKFLOWS))


@pytest.fixture(scope="module")
def tags() -> dict[str, set[str]]:
    return sessions()


def test_there_are_workflows() -> None:
    stems = [path.stem for path in WORKFLOWS]
    assert stems == ["accelerators", "compare", "cpu", "release", "session"]


def test_every_session_that_they_name_exists(tags: dict[str, set[str]]) -> None:
    assert {"tests-cpu", "tests-gpu", "tests-tpu", "core", "libraries"} <= NAMED
    assert set(tags) >= NAMED


def test_ci_and_the_workflow_read_the_same_list(tags: dict[str, set[str]]) -> None:
    change = {name for name, its in tags.items() if "change" in its}
    aot = {"aot-gpu", "aot-tpu"}
    assert {"thorough", "libraries", "docs", "package", "lint", "types"} | aot == change
    assert "\npython -m nox -t change\n" in (ROOT / ".ci" / "run").read_text()
    assert "$(tagged change more)" in (ROOT / ".github" / "workflows" / "cpu.yml").read_text()


# Sessions that no workflow starts, and why.
BY_HAND = {
    "compare": "compare.yml calls the command itself",
    "versions-table": "versions starts it",
}


def test_no_session_is_forgotten(tags: dict[str, set[str]]) -> None:
    of_a_release = {name for name in tags if re.fullmatch(r"(suite|score)-[\d.]+(-[\d.]+)?", name)}
    started = {name for name, its in tags.items() if its} | NAMED | of_a_release
    assert set(tags) - started == set(BY_HAND)
    assert set().union(*tags.values()) == {"change", "more", "weekly"}


def test_jaxs_own_tests_are_those_of_the_release_that_the_session_installs() -> None:
    release = re.findall(
        r'^JAX_OF_TESTS = "(.*)"$', (ROOT / "noxfile.py").read_text(), re.MULTILINE
    )
    steps = load(ROOT / ".github" / "workflows" / "session.yml")["jobs"]["run"]["steps"]
    assert [f"jax-v{each}" for each in release] == [
        step["with"]["ref"] for step in steps if "ref" in step.get("with", {})
    ]


def test_strangers_code_never_runs_on_ones_own_hardware() -> None:
    for path in WORKFLOWS:
        workflow = load(path)
        if "_RUNNER" in path.read_text():
            assert triggers(workflow) <= {"push", "schedule", "workflow_dispatch"}


def test_an_action_is_one_commit_everywhere() -> None:
    lines = [line for path in WORKFLOWS for line in path.read_text().splitlines()]
    used = {line.partition("uses: ")[2] for line in lines if "uses: " in line}
    actions = sorted(use for use in used if not use.startswith("./"))
    assert all(re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", use) for use in actions), actions
    names = [use.partition("@")[0] for use in actions]
    assert len(names) == len(set(names))


def test_only_news_may_fail() -> None:
    jobs = {name: job for path in WORKFLOWS for name, job in load(path)["jobs"].items()}
    lenient = {name for name, job in jobs.items() if job.get("with", {}).get("may-fail")}
    assert lenient == {"newest", "nightly"}
    for name in lenient:
        assert "github.event_name == 'schedule'" in jobs[name]["if"]


def test_the_last_job_compares_what_the_others_have_kept() -> None:
    for stem, before in ("cpu", {"tests", "checks"}), ("accelerators", {"cpu", "gpu", "tpu"}):
        jobs = load(ROOT / ".github" / "workflows" / f"{stem}.yml")["jobs"]
        name, last = list(jobs.items())[-1]
        assert (name, last["uses"]) == ("compare", "./.github/workflows/compare.yml")
        assert set(last["needs"]) == before


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_can_do_more_than_read_and_say_who_it_is(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        may = {"id-token": "write"} if (path.stem, name) == ("release", "publish") else READ
        assert job["permissions"] == may


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_one_failure_does_not_hide_the_others(path: Path) -> None:
    for job in load(path)["jobs"].values():
        assert "strategy" not in job or job["strategy"]["fail-fast"] is False
