"""Ledgers side by side: are the results equal, as far as they can be, and the compiles the same?"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from jitcount.ledger.compared import (
    MISSING,
    NEAR,
    OTHER_DTYPE,
    SAME,
    UNSUPPORTED,
    WRONG,
    Cell,
    Comparison,
    Difference,
    Row,
    some,
)
from jitcount.ledger.counts import counts_text
from jitcount.ledger.findings import findings, share_of_bound, verdicts
from jitcount.ledger.growth import growths
from jitcount.ledger.predictions import predictions
from jitcount.numerics.arrays import decode, parts
from jitcount.numerics.expected import EXACT
from jitcount.numerics.judging import judge_pair

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from jitcount.ledger.ledger import CaseEntry, Ledger
    from jitcount.numerics.expected import Expected
    from jitcount.numerics.judging import Verdict

    # Of one case, by ledger.
    Entries = Mapping[str, CaseEntry | None]
    Judged = Mapping[str, Sequence[Verdict]]

# References are computed in double precision on each machine: alike, but not to the last bit.
_ALIKE = 1e-6

# Where the first ledger of all is kept among the first of each kind.
_ANY_KIND = None


def compare(ledgers: Mapping[str, Ledger]) -> Comparison:
    """Pair up the cases of some ledgers by id; the first ledger that has one is the measure."""
    cases = dict.fromkeys(case for ledger in ledgers.values() for case in ledger.cases)
    differences: list[Difference] = []
    rows = []
    for case in cases:
        entries = {name: ledger.cases.get(case) for name, ledger in ledgers.items()}
        judged = {name: verdicts(entry) for name, entry in entries.items() if entry}
        found = _differences(case, entries, judged, ledgers)
        differences += found
        wrong = {difference.ledger for difference in found}
        rows.append(_row(case, entries, judged, wrong))
    differences += _missing(ledgers, cases)
    where = {name: str(ledger.environment) for name, ledger in ledgers.items()}
    changed = _changed(ledgers)
    return Comparison(where, differences, rows, changed, predictions(ledgers), growths(ledgers))


def _missing(ledgers: Mapping[str, Ledger], cases: Collection[str]) -> list[Difference]:
    """What each ledger lacks; of one that holds a part of the cases only, in one line."""
    found = []
    for name, ledger in ledgers.items():
        lacking = [case for case in cases if case not in ledger.cases]
        if len(lacking) == 1:
            found.append(Difference(lacking[0], name, "is missing"))
        elif lacking:
            text = f"{len(lacking)} of {len(cases)} cases are missing: {some(lacking)}"
            found.append(Difference("", name, text))
    return found


def _changed(ledgers: Mapping[str, Ledger]) -> dict[str, list[str]]:
    """Which ledger brought other bits: what a reader of releases in their order wants to know."""
    names = list(ledgers)
    return {
        name: [
            case
            for case, entry in ledgers[name].cases.items()
            if (earlier := ledgers[before].cases.get(case)) is not None
            and not _other_dtype(earlier, entry)
            and [r.value for r in entry.results] != [r.value for r in earlier.results]
        ]
        for before, name in itertools.pairwise(names)
    }


def _differences(
    case: str, entries: Entries, judged: Judged, ledgers: Mapping[str, Ledger]
) -> list[Difference]:
    """What is wrong with one case: in a ledger alone, or else against the first that has it."""
    found: list[Difference] = []
    run = {name: entry for name, entry in entries.items() if entry and not entry.unsupported}
    for name, entry in run.items():
        found += [Difference(case, name, text) for text in findings(entry, judged[name])]
    first_results: dict[object, tuple[str, CaseEntry]] = {}
    first_counts: dict[bool, tuple[str, CaseEntry]] = {}
    alone = {difference.ledger for difference in found}
    for name, entry in run.items():
        if name in alone:
            continue
        # Against the first ledger of the same kind of device, which has no other arithmetic, and
        # against the first of all.
        kind = ledgers[name].environment.kind
        kin = first_results.setdefault(kind, (name, entry))
        first = first_results.setdefault(_ANY_KIND, (name, entry))
        for measure_name, measure in dict([kin, first]).items():
            found += [
                Difference(case, name, f"{text}, unlike in {measure_name}")
                for text in _unlike(entry, measure, same_kind=measure_name == kin[0])
            ]
        # Without jit everything is compiled, operation by operation: that is another program.
        has_jit = ledgers[name].environment.has_jit
        counts_name, counted = first_counts.setdefault(has_jit, (name, entry))
        if entry.counts() != counted.counts():
            text = f"compiled {counts_text(entry.counts())}"
            other = f"{counts_text(counted.counts())} in {counts_name}"
            found.append(Difference(case, name, f"{text}, against {other}"))
        elif entry.expected_compiles != counted.expected_compiles:
            text = f"expects other compiles than in {counts_name}"
            found.append(Difference(case, name, text))
    return found


def _unlike(entry: CaseEntry, measure: CaseEntry, *, same_kind: bool) -> list[str]:
    """How the results of two ledgers differ, beyond what both together may."""
    if len(entry.results) != len(measure.results):
        return [f"it has {len(entry.results)} results"]
    lines = []
    for number, (one, other) in enumerate(zip(measure.results, entry.results, strict=True)):
        which = f"result {number} " if len(entry.results) > 1 else "it "
        if not _are_alike(one.expected, other.expected):
            lines.append(f"{which}is declared otherwise")
        else:  # of one shape, since each has that of its reference
            verdict = judge_pair(one.value, other.value, one.expected, same_kind=same_kind)
            if not verdict.holds:
                lines.append(f"{which}differs: {verdict}")
    return lines


def _are_alike(one: Expected, other: Expected) -> bool:
    if one == other:
        return True
    if _kind(one) != _kind(other):
        return False
    if one.numerics == EXACT:
        return False
    reference, other_reference = parts(decode(one.reference)), parts(decode(other.reference))
    same = (reference == other_reference) | (np.isnan(reference) & np.isnan(other_reference))
    with np.errstate(invalid="ignore", over="ignore"):  # infinite ones and NaNs
        off = np.abs(reference - other_reference)
    return all(
        np.all(np.abs(bound - other_bound) <= _ALIKE * bound)
        and np.all(same | (off <= _ALIKE * bound))
        for bound, other_bound in zip(one.bounds(), other.bounds(), strict=True)
    )


def _kind(expected: Expected) -> tuple[object, ...]:
    reference = expected.reference
    return expected.numerics, expected.dtype, expected.may, reference.shape, reference.dtype


def _row(case: str, entries: Entries, judged: Judged, wrong: set[str]) -> Row:
    good = (e for name, e in entries.items() if e and not e.unsupported and name not in wrong)
    measure = next(good, None)
    shares = [share_of_bound(entry, judged[name]) for name, entry in entries.items() if entry]
    known = [share for share in shares if share is not None]
    cells = [_cell(entry, measure, is_wrong=name in wrong) for name, entry in entries.items()]
    return Row(case, max(known, default=None), cells)


def _cell(entry: CaseEntry | None, measure: CaseEntry | None, *, is_wrong: bool) -> Cell:
    if entry is None:
        return Cell(MISSING)
    if entry.unsupported:
        return Cell(UNSUPPORTED)
    if is_wrong or measure is None:
        return Cell(WRONG)
    pairs = [
        judge_pair(one.value, other.value, one.expected)
        for one, other in zip(measure.results, entry.results, strict=True)
    ]
    ulps = max((v.worst.ulps or 0 for v in pairs if v.worst), default=0)
    figures = {
        name: ratio
        for name, seconds in entry.figures.items()
        if (ratio := _ratio(seconds, measure.figures.get(name, 0.0))) is not None
    }
    dtype = _other_dtype(measure, entry)
    same = OTHER_DTYPE if dtype else SAME
    state = same if all(pair.share == 0 for pair in pairs) else NEAR
    return Cell(state, ulps, dtype, _ratio(_seconds(entry), _seconds(measure)), figures)


def _other_dtype(measure: CaseEntry, entry: CaseEntry) -> str:
    """The dtype of the first result that has another one than in the measure; empty if none has."""
    pairs = zip(measure.results, entry.results, strict=False)
    other = (two.value.dtype for one, two in pairs if one.value.dtype != two.value.dtype)
    return next(other, "")


def _seconds(entry: CaseEntry) -> float:
    return math.fsum(compiled.total_s for compiled in entry.compiles)


def _ratio(seconds: float, measure: float) -> float | None:
    return seconds / measure if seconds > 0 and measure > 0 else None
