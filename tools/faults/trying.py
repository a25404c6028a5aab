"""Runs a case with each fault: what it changes, by how much, and whether the suite notices."""

from __future__ import annotations

import dataclasses
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from jitcount._ledger.findings import verdicts
from jitcount._numerics.judging import judge
from jitcount._suite.case import CALLS, Case, run_case
from jitcount._suite.running import known_here
from tools.faults.races import CLOCK, ONCE_IN, TIME
from tools.faulty import Operation, operations_heard, primitives_replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jitcount._ledger.ledger import CaseEntry, Result
    from tools.faults.fault import Fault


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one fault does in one case."""

    fault: str
    case: str
    changed: bool
    """Whether any bit of a result differs from the result without the fault."""

    is_beyond: bool
    """Whether a result differs from the one without the fault by more than its bound."""

    noticed: bool
    """Whether the suite says that the case does not hold."""

    share: float = 0.0
    """How much of its expected bound the worst result uses: 1 is all of it."""

    error: str = ""
    """What the case raised, if it did: then the fault itself is broken."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What all faults do in one case."""

    case: str
    outcomes: tuple[Outcome, ...] = ()
    unsupported: str = ""
    false_alarm: str = ""
    """What the suite says about the case without any fault; empty if it holds."""


def try_case(case: Case, faults: Iterable[Fault]) -> Tried:
    """Run a case without a fault, then with each fault that changes a primitive that it uses."""
    with operations_heard() as operations:
        clean = run_case(case, calls=1)
    if clean.unsupported:
        return Tried(case.id, unsupported=clean.unsupported)
    for miscompile in known_here():
        if miscompile.makes_wrong(case.id):
            return Tried(case.id, unsupported=f"wrong without a fault: {miscompile.reference}")
    if alarm := _alarm(clean):
        return Tried(case.id, false_alarm=alarm)
    # The expected values are the same each time, and those of a long sum take time.
    expected = [result.expected for result in clean.results]
    known = dataclasses.replace(case, expected=lambda: expected)
    concerned = (fault for fault in faults if concerns(fault, operations))
    return Tried(case.id, tuple(_outcome(known, fault, clean) for fault in concerned))


def concerns(fault: Fault, operations: Iterable[Operation]) -> bool:
    """Whether a fault changes anything in a program with these operations."""
    return any(
        operation.primitive.name in fault.primitives
        and not operation.is_left_alone_by(fault.wrongly)
        for operation in operations
    )


def _outcome(case: Case, fault: Fault, clean: CaseEntry) -> Outcome:
    # A race strikes each case at a different call; a fault of every call needs no second call.
    CLOCK.start(zlib.crc32(case.id.encode()) % ONCE_IN)
    calls = CALLS if fault.family == TIME.name else 1
    with primitives_replaced(dict.fromkeys(fault.primitives, fault.wrongly)):
        found = run_case(case, calls=calls)
    if found.error:
        none = {"changed": False, "is_beyond": False, "noticed": False}
        return Outcome(fault.id, case.id, **none, error=found.error)
    judged = verdicts(found)
    pairs = list(zip(found.results, clean.results, strict=True))
    return Outcome(
        fault=fault.id,
        case=case.id,
        changed=bool(found.unsteady) or any(one.value != other.value for one, other in pairs),
        is_beyond=bool(found.unsteady) or any(_is_beyond(*pair) for pair in pairs),
        noticed=bool(_alarm(found)),
        share=max((verdict.share for verdict in judged), default=0.0),
    )


def _alarm(entry: CaseEntry) -> str:
    """What the suite says about the results; compile counts are not considered."""
    return next(_alarms(entry), "")


def _alarms(entry: CaseEntry) -> Iterator[str]:
    if entry.error:
        yield entry.error
    yield from (str(verdict) for verdict in verdicts(entry) if not verdict.holds)
    if entry.unsteady:
        yield entry.unsteady


def _is_beyond(found: Result, clean: Result) -> bool:
    """Whether a result fails if the one without the fault is taken as the reference."""
    strict = msgspec.structs.replace(found.expected, reference=clean.value, may="")
    return not judge(found.value, strict).holds
