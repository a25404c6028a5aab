"""Cases that a known miscompile makes wrong: they must be wrong there, or may be elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount._ledger.findings import findings
from jitcount._miscompiles.known import Miscompile
from jitcount._suite import running
from jitcount._suite.case import Case, exactly_these

if TYPE_CHECKING:
    import pytest

    from jitcount._ledger.ledger import CaseEntry


def _case(value: int) -> Case:
    return Case(
        id="a",
        claim="it is 1",
        program=lambda: [jax.device_put(np.int32(value))],
        expected=exactly_these(1),
        compiles={},
    )


def _miscompile(*, shared: bool = False, without_jit: bool = False) -> Miscompile:
    return Miscompile(
        reference="jax #1",
        about="ones",
        platform="cpu",
        releases=("0.7.1", "0.12.0.1"),
        cases=("a",),
        in_shared_pass=shared,
        without_jit=without_jit,
    )


def _run(value: int) -> CaseEntry:
    return running.run_suite([_case(value)], after=lambda *_: None).cases["a"]


def test_where_it_is_known_the_case_must_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "known_on", lambda *_: [_miscompile()])
    assert findings(_run(2)) == []
    assert findings(_run(1)) == ["right, and jax #1 should make it wrong here"]


def test_on_another_platform_the_case_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "known_here", lambda _: [])
    monkeypatch.setattr(running, "_perhaps_wrong_here", lambda _: [_miscompile()])
    assert (findings(_run(2)), _run(2).known_wrong) == ([], "jax #1")
    assert (findings(_run(1)), _run(1).known_wrong) == ([], "")


def test_what_is_emulated_may_have_all_faults_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [_miscompile(), _miscompile(shared=True)]
    monkeypatch.setattr(running, "known_on", lambda *_: known)
    assert running._perhaps_wrong_here("tpu:v5e") == known
    platform = jax.devices()[0].platform
    assert running._perhaps_wrong_here("") == ([] if platform == "cpu" else known[1:])


def test_without_jit_only_faults_of_single_operations_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [_miscompile(), _miscompile(without_jit=True)]
    monkeypatch.setattr(running, "known_on", lambda *_: known)
    assert running.known_here() == known
    with jax.disable_jit():
        assert running.known_here() == known[1:]
