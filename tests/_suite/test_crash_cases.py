"""Programs that may crash run in processes of their own, and the suite goes on."""

from __future__ import annotations

from typing import Any

import pytest

from jitcount._emulate.active_target import activate_target
from jitcount._suite import crash_cases
from jitcount._suite.case import run_case
from jitcount._suite.crash_cases import CRASH_CASES, in_its_own_process


@pytest.fixture(autouse=True)
def _without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs here need no JAX, which takes seconds to import."""
    monkeypatch.setattr(crash_cases, "_BEGIN", "")


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("import os; os.kill(os.getpid(), 11)", "it was ended by SIGSEGV"),
        ("import os; os.abort()", "it was ended by SIGABRT"),
        ("assert 1 == 2, 'axis 3'", "AssertionError: axis 3"),
    ],
)
def test_a_program_that_does_not_end_well_is_an_error(program: str, error: str) -> None:
    assert run_case(in_its_own_process("a", "", program)).error == f"RuntimeError: {error}"


def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash_cases, "_PATIENCE_S", 0.5)
    case = in_its_own_process("a", "", "while True: pass")
    assert run_case(case).error == "RuntimeError: it did not end within 0.5 s"


def test_a_program_that_ends_well_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    process: Any = vars(crash_cases)["subprocess"]
    run = process.run

    def counted(*arguments: Any, **options: Any) -> Any:
        started.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(process, "run", counted)
    entry = run_case(in_its_own_process("a", "", "x = 'runs once'"))
    assert (entry.error, len(entry.results), len(started)) == ("", 1, 1)


def test_it_does_not_run_where_another_compiler_is_meant() -> None:
    with activate_target("tpu:v5e"):
        reasons = {case.unsupported() for case in CRASH_CASES}
    assert reasons == {"it needs a second process, which is not tpu:v5e's"}
