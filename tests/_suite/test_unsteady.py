"""A case that is right at its first call, and not at a later one."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._ledger.findings import findings
from jitcount._suite import case as cases
from jitcount._suite.case import CALLS, Case, exactly_these, run_case


@pytest.fixture(autouse=True)
def as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "_CALLING_S", 600.0)


def case_of(*values: float) -> Case:
    """A case that returns one value after the other, and the last one from then on."""
    later = itertools.chain(values, itertools.repeat(values[-1]))
    return Case(
        id="x",
        claim="x",
        program=lambda: [jnp.asarray(np.float32(next(later)))],
        expected=exactly_these(values[0]),
        compiles={},
    )


def test_a_later_call_must_hold_too() -> None:
    line, *_ = findings(run_case(case_of(2.0, 2.0, 3.0)))
    assert line == (
        "call 3: the value is 3, not 2, 4,194,304 ulps apart; it must be equal to the bit"
    )


def test_only_so_many_calls_are_made() -> None:
    calls = []

    def program() -> list[jax.Array]:
        calls.append(1)
        return [jnp.asarray(np.float32(2))]

    case = Case(id="x", claim="x", program=program, expected=exactly_these(2.0), compiles={})
    assert run_case(case).unsteady == ""
    assert len(calls) == CALLS
    run_case(case, calls=1)
    assert len(calls) == CALLS + 1


def test_a_later_call_that_raises_is_named() -> None:
    calls = itertools.count()

    def program() -> list[jax.Array]:
        if next(calls):
            raise RuntimeError("the device\nis gone")
        return [jnp.asarray(np.float32(2))]

    case = Case(id="x", claim="x", program=program, expected=exactly_these(2.0), compiles={})
    assert run_case(case).unsteady == "call 2 raised RuntimeError: the device is gone"


def test_processes_that_compute_together_call_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert run_case(case_of(2.0, 3.0)).unsteady == ""
