"""The workflows call sessions that exist, and never run a stranger's code on one's own hardware."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers import ROOT, nox

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load(path: Path) -> dict[Any, Any]:
    loaded = yaml.safe_load(path.read_text())
    assert isinstance(loaded, dict)
    return loaded


def triggers(workflow: dict[Any, Any]) -> set[str]:
    return set(workflow[True])  # YAML 1.1 takes the word "on" for a truth value


def sessions_named_in(workflow: dict[Any, Any]) -> set[str]:
    named = set()
    for job in workflow["jobs"].values():
        session = job.get("with", {}).get("session", "")
        if "matrix.session" in session:
            named |= set(job["strategy"]["matrix"]["session"])
        elif session:
            named.add(session)
    return named


def existing_sessions() -> set[str]:
    return set(re.findall(r"^[*-] (\S+) ->", nox("-l").stdout, re.MULTILINE))


def test_there_are_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["accelerators", "cpu", "session"]


def test_every_session_that_they_name_exists() -> None:
    named = set().union(*(sessions_named_in(load(path)) for path in WORKFLOWS))
    assert {"tests-cpu", "tests-gpu", "tests-tpu", "aot-gpu", "aot-tpu", "lint", "types"} <= named
    assert named <= existing_sessions()


def test_strangers_code_never_runs_on_ones_own_hardware() -> None:
    for path in WORKFLOWS:
        workflow = load(path)
        if "vars." in path.read_text():
            assert triggers(workflow) <= {"push", "schedule", "workflow_dispatch"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_can_do_more_than_read(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_one_failure_does_not_hide_the_others(path: Path) -> None:
    for job in load(path)["jobs"].values():
        assert "strategy" not in job or job["strategy"]["fail-fast"] is False
