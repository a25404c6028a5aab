"""A case: a small program, the values it must return and the compiles it must make."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount._ledger.findings import which_result
from jitcount._ledger.ledger import CaseEntry, Result
from jitcount._numerics.arrays import encode
from jitcount._numerics.expected import between_runs, exactly
from jitcount._numerics.judging import judge
from jitcount._record.record import record
from jitcount._registry import registry
from jitcount._text import one_line
from jitcount._tolerance.tracing import NotTraceableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._numerics.expected import Expected

# How many cached calls are timed; the median counts.
_TIMED_CALLS = 5

# How often a case is run at most, including its first run, and for how many seconds.
CALLS = 10
_CALLING_S = 0.2


def _anywhere() -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One claim about what JAX computes and compiles, with the program that shows it."""

    id: str
    claim: str
    program: Callable[[], Sequence[jax.Array] | Mapping[str, np.ndarray]]
    """Returns arrays; those of a user's function by their places in its result."""

    expected: Callable[[], Sequence[Expected]]
    """What each array that the program returns must be; computed only when it is needed."""

    compiles: Mapping[str, int] | None
    """How often each function, or eager operation, is compiled from empty caches; None: as often as
    in other ledgers."""

    unsupported: Callable[[], str] = _anywhere
    """Why the current backend cannot run the case; empty if it can."""

    names: Sequence[str] = ()
    """What each array is, in words, where a number would not tell; empty if there are few."""

    is_own: bool = False
    """Whether it is a user's: no known miscompile is meant by its id."""

    within: float | None = None
    """What is declared of a user's function of which nothing can be derived."""


def exactly_these(*values: float) -> Callable[[], Sequence[Expected]]:
    """The expectation of scalars that are the same on every backend: float32, or int32 for ints."""
    dtypes = {float: np.float32, int: np.int32}
    return lambda: [exactly(np.array(value, dtypes[type(value)])) for value in values]


def run_case(
    case: Case, *, timed: bool = False, targets: Sequence[str] = (), calls: int = CALLS
) -> CaseEntry:
    """Run a case from empty caches, so that nothing depends on what ran before.

    With `targets`, everything that it compiles is also compiled for those, by their own compilers.
    Then it runs up to `calls` times as it was compiled: a race does not go wrong at every call.
    """
    if why := case.unsupported():
        return CaseEntry(unsupported=why)
    jax.clear_caches()
    with registry.own_history(), record(targets) as log:
        try:
            names, values = _arrays(case)
        except Exception as error:  # noqa: BLE001 (a backend that fails one case runs the others)
            return CaseEntry(compiles=tuple(log.compiles), error=one_line(error))
    try:
        expected, is_traced = _expected(case, values)
    except Exception as error:
        if not case.is_own:
            raise
        why = f"{one_line(error)}, when what it must return was derived"
        return CaseEntry(compiles=tuple(log.compiles), error=why)
    results = tuple(
        Result(encode(value), each, name)
        for value, each, name in zip(values, expected, names, strict=True)
    )
    is_counted = case.compiles is not None and not jax.config.values["jax_disable_jit"]
    # What looks at values may do more than compute: it is called once.
    unsteady = _unsteady(case, results, calls) if is_traced else ""
    return CaseEntry(
        compiles=tuple(log.compiles),
        expected_compiles=dict(case.compiles or {}) if is_counted else None,
        results=results,
        unsteady=unsteady,
        targets=tuple(targets),
        figures={"cached_s": _cached_seconds(case)} if timed and not unsteady else {},
    )


def _expected(case: Case, values: Sequence[np.ndarray]) -> tuple[Sequence[Expected], bool]:
    """What a case must return, and whether that could be derived, or stands in the case.

    If not, another run's results are all that it can be held against.
    """
    if not values:
        return [], True
    try:
        return case.expected(), True
    except NotTraceableError as error:
        why = one_line(error.why)
    except Exception as error:
        if not (case.is_own and jax.process_count() > 1):
            raise
        # Each process has only its part of the arrays.
        why = f"nothing is derived in {jax.process_count()} processes: {one_line(error)}"
    return [between_runs(value, case.within, why) for value in values], False


def _arrays(case: Case) -> tuple[Sequence[str], list[np.ndarray]]:
    """The names and the values of what a case's program returns."""
    returned = case.program()
    if isinstance(returned, Mapping):
        return list(returned), list(returned.values())
    values = [_on_host(value) for value in returned]
    return case.names or [""] * len(values), values


def _on_host(value: jax.Array) -> np.ndarray:
    """The values of an array as NumPy has them; a sharded array must be whole on each process."""
    return np.asarray(value)


def _unsteady(case: Case, results: Sequence[Result], calls: int) -> str:
    """What is wrong with the results of a later call of the same program; empty if nothing is.

    They need not have the bits of the first call: a GPU may add in another order each time. Several
    processes that compute together would all have to call equally often, so they call only once.
    """
    if jax.process_count() > 1:
        return ""
    end = time.perf_counter() + _CALLING_S
    for call in range(2, calls + 1):
        try:
            again = [encode(value) for value in _arrays(case)[1]]
        except Exception as error:  # noqa: BLE001 (as at the first call)
            return f"call {call} raised {one_line(error)}"
        for number, (value, first) in enumerate(zip(again, results, strict=True)):
            if (
                value.data != first.value.data
                and not (verdict := judge(value, first.expected)).holds
            ):
                which = which_result(results, number)
                return f"call {call}: {which}{verdict}"
        if time.perf_counter() > end:
            break
    return ""


def _cached_seconds(case: Case) -> float:
    seconds = []
    for _ in range(_TIMED_CALLS):
        begin = time.perf_counter()
        jax.block_until_ready(case.program())
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)
