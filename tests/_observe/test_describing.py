"""What cannot be described is counted all the same, with what could be read."""

import sys
from typing import NoReturn

import jax
import numpy as np
import pytest

from jitcount._jax import frames
from jitcount._observe import in_flight
from jitcount._observe.call_site import UNKNOWN_SITES
from jitcount._observe.in_flight import (
    InFlightCompile,
    describe_from_frames,
    program_traced_ahead_of_time,
)
from jitcount._observe.values import signature_of
from tests.helpers import observed

X = np.ones(3, np.float32)


def fail(*_: object) -> NoReturn:
    raise RuntimeError("JAX has changed")


def call() -> None:
    jax.jit(lambda x: 2 * x)(X)


def test_a_call_whose_program_cannot_be_described_keeps_its_avals_and_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "describe", fail)
    (seen,) = observed(call)
    assert seen.program is None
    assert signature_of(seen.avals or ()) == ("float32[3]",)
    assert seen.sites.user.function == "call"


def test_frames_that_cannot_be_read_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "read_call", fail)
    compiling = InFlightCompile(function="step")
    describe_from_frames(compiling, sys._getframe())
    assert (compiling.avals, compiling.program) == (None, None)
    assert compiling.sites is UNKNOWN_SITES


def test_what_is_traced_ahead_of_time_is_described_by_its_arguments() -> None:
    def ahead() -> None:
        jax.jit(lambda x: 2 * x).lower(X).compile()

    (seen,) = observed(ahead)
    assert seen.program is not None
    assert seen.program.places == ("x",)


def test_a_trace_that_cannot_be_read_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program_traced_ahead_of_time("step", sys._getframe()) is None
    monkeypatch.setattr(frames, "read_tracing", fail)
    assert program_traced_ahead_of_time("step", sys._getframe()) is None
