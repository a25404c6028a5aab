"""`jitcount.compare`: ledgers side by side, of whichever machines and releases.

Are the results equal, as far as they can be, and the compiles the same? Which programs have grown?
And where one ledger is of a real device and another of its emulation: was it foreseen? What is
found is kept as the facts of `comparison`.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from jitcount._ledger import programs
from jitcount._ledger.budget import counts_text
from jitcount._ledger.comparison import (
    KNOWN_WRONG,
    MISSING,
    NEAR,
    OTHER_DTYPE,
    SAME,
    UNJUDGED,
    UNSUPPORTED,
    WRONG,
    Cell,
    Comparison,
    Difference,
    Growth,
    Prediction,
    Row,
    some,
)
from jitcount._ledger.findings import findings, remarks, share_of_bound, verdicts
from jitcount._ledger.ledger import read_ledger
from jitcount._numerics.arrays import decode, parts
from jitcount._numerics.expected import BETWEEN_RUNS, EXACT, OF_OWN_CASES, OF_TOLERANCE
from jitcount._numerics.judging import judge_pair
from jitcount._targets.chips.tpu import TPUS
from jitcount._targets.names import ROUNDING

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._ledger.comparison import Change
    from jitcount._ledger.environment import Environment
    from jitcount._ledger.ledger import CaseEntry, Ledger, Result
    from jitcount._numerics.expected import Expected
    from jitcount._numerics.judging import Verdict

    # One case in each of the ledgers, by their names.
    Entries = Mapping[str, CaseEntry | None]
    Judged = Mapping[str, Sequence[Verdict]]

# References are computed in double precision on each machine: alike, but not to the last bit.
_ALIKE = 1e-6

# The key of the first ledger of all, among the first ones of each kind of device.
_ANY_KIND = None


def compare(*ledgers: str | os.PathLike[str]) -> Comparison:
    """Compare the ledgers in these files, from whichever machines, as ``jitcount compare`` does.

    Printed, it is what the command shows; in a notebook, tables; ``to_dict()`` is plain data.

    >>> import jax, jitcount, numpy as np, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, lengths in ("one.json", [3]), ("two.json", [3, 4]):
    ...     double = jax.jit(lambda x: 2 * x)
    ...     with jitcount.record() as log:
    ...         for length in lengths:
    ...             _ = double(np.zeros(length, np.float32))
    ...     log.save(folder / name)
    >>> compared = jitcount.compare(folder / "one.json", folder / "two.json")
    >>> [(c.kind.value, c.function, c.before, c.after) for c in compared.program_changes]
    [('compiles', '<lambda>', 1, 2)]

    Raises:
        jitcount.LedgerError: a file cannot be read, or is no ledger of this release.
    """
    paths = [Path(ledger) for ledger in ledgers]
    named = zip(_names(paths), paths, strict=True)
    return compare_ledgers({name: read_ledger(path) for name, path in named})


def _names(paths: Sequence[Path]) -> list[str]:
    """Short names that tell the files apart: stems, or paths where stems are alike.

    >>> _names([Path("a/cpu.json"), Path("a/tpu.json")])
    ['cpu', 'tpu']
    >>> _names([Path("a/cpu.json"), Path("b/cpu.json"), Path("a/cpu.json")])
    ['a/cpu.json', 'b/cpu.json', 'a/cpu.json (3)']
    """
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    return [
        name if name not in names[:place] else f"{name} ({place + 1})"
        for place, name in enumerate(names)
    ]


def compare_ledgers(ledgers: Mapping[str, Ledger]) -> Comparison:
    """Compare ledgers by the names of their cases; the first that has a case is its measure.

    Ledgers that kept no results are compared program by program, each with the one before it. So
    are tests, whether they kept results or not: what one compiles depends on those before it.
    """
    if not any(map(programs.has_results, ledgers.values())):
        return _programs_compared(ledgers)
    tests = {name: _tests_of(ledger) for name, ledger in ledgers.items()}
    cases = dict.fromkeys(
        case
        for ledger in ledgers.values()
        for case, entry in ledger.cases.items()
        if entry.results or not entry.shares_caches
    )
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
    of_tests, notes = (
        programs.changes(tests) if any(each.cases for each in tests.values()) else ([], [])
    )
    return Comparison(
        where={name: str(ledger.environment) for name, ledger in ledgers.items()},
        differences=differences + _that_count(of_tests),
        rows=rows,
        changed=_changed(ledgers),
        predictions=predictions(ledgers),
        growths=growths(ledgers),
        program_changes=of_tests,
        notes=notes,
    )


def _tests_of(ledger: Ledger) -> Ledger:
    """A ledger with the tests of a run, and nothing else."""
    tests = {case: entry for case, entry in ledger.cases.items() if entry.shares_caches}
    return msgspec.structs.replace(ledger, cases=tests)


def _that_count(changed: Sequence[Change]) -> list[Difference]:
    """The changes between programs that are differences."""
    return [
        Difference(change.case, change.ledger, str(change))
        for change in changed
        if change.is_difference
    ]


def _programs_compared(ledgers: Mapping[str, Ledger]) -> Comparison:
    changed, notes = programs.changes(ledgers)
    return Comparison(
        where={name: str(ledger.environment) for name, ledger in ledgers.items()},
        differences=_that_count(changed),
        rows=[],
        changed={},
        growths=programs.growths(changed),
        has_results=False,
        totals={name: programs.totals(ledger) for name, ledger in ledgers.items()},
        program_changes=changed,
        notes=notes,
    )


def _missing(ledgers: Mapping[str, Ledger], cases: Collection[str]) -> list[Difference]:
    """The cases that each ledger lacks; several of one ledger in one line."""
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
    """By ledger, the cases with other bits than in the ledger before it: in order of release."""
    return {
        name: [
            case
            for case, entry in ledger.cases.items()
            if (earlier := before.cases.get(case)) is not None
            and not _other_dtype(earlier, entry)
            and [r.value for r in entry.results] != [r.value for r in earlier.results]
        ]
        for (_, before), (name, ledger) in itertools.pairwise(ledgers.items())
    }


def _differences(
    case: str, entries: Entries, judged: Judged, ledgers: Mapping[str, Ledger]
) -> list[Difference]:
    """What is wrong with one case: in a ledger by itself, or else against the first that has it."""
    found: list[Difference] = []
    run = {name: entry for name, entry in entries.items() if entry and not entry.unsupported}
    for name, entry in run.items():
        found += [Difference(case, name, text) for text in findings(entry, judged[name])]
    run = {name: entry for name, entry in run.items() if not entry.known_wrong}
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
        if entry.shares_caches:
            continue
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
    """How the results of a case in two ledgers differ, beyond what both together may."""
    lines = []
    if len(entry.results) != len(measure.results):  # a test that fails has those before that
        lines.append(f"it has {len(entry.results)} results")
    for number, (one, other) in enumerate(zip(measure.results, entry.results, strict=False)):
        name = f"({other.name}) " if other.name else ""
        which = f"result {number} {name}" if len(entry.results) > 1 else "it "
        if one.name != other.name:
            lines.append(f"{which}is called {one.name or 'nothing'}")
        elif not _are_alike(one.expected, other.expected):
            lines.append(f"{which}is declared otherwise")
        else:
            verdict = _pair(one, other, same_kind=same_kind)
            if not verdict.holds:
                lines.append(f"{which}differs: {verdict}")
    return lines


def _pair(one: Result, other: Result, *, same_kind: bool = False) -> Verdict:
    """Grade a result by that of another ledger, which may have a tolerance of its own."""
    return judge_pair(one.value, other.value, one.expected, other.expected, same_kind=same_kind)


def _are_alike(one: Expected, other: Expected) -> bool:
    if one == other:
        return True
    if one.numerics in OF_OWN_CASES:  # each run derives its own, or one of them does for both
        is_derived = [each.numerics in OF_TOLERANCE for each in (one, other)]
        is_declared = (one.numerics, one.within) == (other.numerics, other.within)
        return other.numerics in OF_OWN_CASES and (any(is_derived) or is_declared)
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
    """What two ledgers must have in common; why a backend may be further off is its own matter."""
    reference = expected.reference
    return expected.numerics, expected.dtype, reference.shape, reference.dtype


def _row(case: str, entries: Entries, judged: Judged, wrong: set[str]) -> Row:
    run = {name: entry for name, entry in entries.items() if entry and not entry.known_wrong}
    good = (e for name, e in run.items() if not e.unsupported and name not in wrong)
    measure = next(good, None)
    shares = [share_of_bound(entry, judged[name]) for name, entry in run.items()]
    if measure is not None:
        compared = (e for name, e in run.items() if not e.unsupported and name not in wrong)
        shares += [_declared_share(measure, entry) for entry in compared]
    known = [share for share in shares if share is not None]
    cells = [_cell(entry, measure, is_wrong=name in wrong) for name, entry in entries.items()]
    said = dict.fromkeys(line for entry in run.values() for line in remarks(entry))
    return Row(case, max(known, default=None), cells, list(said))


def _declared_share(measure: CaseEntry, entry: CaseEntry) -> float | None:
    """How much a case uses of the bounds that are declared between two runs; None without one."""
    shares = [
        _pair(one, other).share
        for one, other in zip(measure.results, entry.results, strict=True)
        if one.expected.numerics == BETWEEN_RUNS
    ]
    return max(shares, default=None)


def _cell(entry: CaseEntry | None, measure: CaseEntry | None, *, is_wrong: bool) -> Cell:
    if entry is None:
        return Cell(MISSING)
    if entry.unsupported:
        return Cell(UNSUPPORTED)
    if entry.known_wrong and not is_wrong:
        return Cell(KNOWN_WRONG, reference=entry.known_wrong)
    if is_wrong or measure is None:
        return Cell(WRONG)
    pairs = [_pair(*both) for both in zip(measure.results, entry.results, strict=True)]
    ulps = max((v.worst.ulps or 0 for v in pairs if v.worst), default=0)
    figures = {
        name: ratio
        for name, seconds in entry.figures.items()
        if (ratio := _ratio(seconds, measure.figures.get(name, 0.0))) is not None
    }
    dtype = _other_dtype(measure, entry)
    same = OTHER_DTYPE if dtype else SAME
    state = same if all(pair.share == 0 for pair in pairs) else NEAR
    state = UNJUDGED if any(pair.unjudged for pair in pairs) else state
    return Cell(state, ulps, dtype, _ratio(_seconds(entry), _seconds(measure)), figures)


def _other_dtype(measure: CaseEntry, entry: CaseEntry) -> str:
    """The dtype of the first result whose dtype is not the measure's; empty if there is none."""
    pairs = zip(measure.results, entry.results, strict=False)
    other = (two.value.dtype for one, two in pairs if one.value.dtype != two.value.dtype)
    return next(other, "")


def _seconds(entry: CaseEntry) -> float:
    return math.fsum(compiled.total_s for compiled in entry.compiles)


def _ratio(seconds: float, measure: float) -> float | None:
    return seconds / measure if seconds > 0 and measure > 0 else None


# --- Programs that have grown ---------------------------------------------------------------------


def growths(ledgers: Mapping[str, Ledger]) -> list[Growth]:
    """The programs with other operations than in the ledger before, the largest change first.

    Operations are the same in every run. Programs are compared that have the same platform, case,
    function and signature; several such in their order.
    """
    found = []
    for (_, before), (name, after) in itertools.pairwise(ledgers.items()):
        one, other = before.environment, after.environment
        if (one.kind, one.jax) != (other.kind, other.jax):  # which lower to other operations
            continue
        for case, entry in after.cases.items():
            earlier = before.cases.get(case)
            if earlier is None or entry.shares_caches:
                continue
            known: dict[str, list[Compile]] = {}
            for compiled in earlier.compiles:
                known.setdefault(compiled.call, []).append(compiled)
            for compiled in entry.compiles:
                same = known.get(compiled.call)
                was = same.pop(0) if same else None
                if was and was.operations and was.operations != compiled.operations:
                    found.append(_growth(case, name, was, compiled))
    return sorted(found, key=lambda each: -abs(each.after - each.before))


def _growth(case: str, ledger: str, before: Compile, after: Compile) -> Growth:
    counts = {(line.file, line.line): line.operations for line in before.lines}
    changes = [
        (abs(line.operations - counts.get((line.file, line.line), 0)), str(line.call_site))
        for line in after.lines
        if line.is_attributed
    ]
    place = max(changes)[1] if changes and before.lines else str(after.call_site)
    return Growth(case, after.function, ledger, before.operations, after.operations, place)


# --- A real device beside its emulation -----------------------------------------------------------


_TPU_KINDS = {tpu.name: tpu.device_kinds for tpu in TPUS}


def predictions(ledgers: Mapping[str, Ledger]) -> list[Prediction]:
    """What was foreseen of each ledger of a real device, by each ledger that emulates it."""
    return [
        _prediction(name, ledger, other_name, other)
        for name, ledger in ledgers.items()
        for other_name, other in ledgers.items()
        if _emulates(other.environment, ledger.environment)
    ]


def _emulates(one: Environment, other: Environment) -> bool:
    """Whether the first environment emulates the device that the second one is."""
    platform, _, chip = one.as_if.partition(":")
    if not chip or platform == ROUNDING or other.as_if:
        return False
    if platform == "tpu":
        return other.platform == "tpu" and other.device_kind in _TPU_KINDS.get(chip, ())
    # A GPU has its target's name in its own: "NVIDIA H100 80GB HBM3".
    return other.platform in {"gpu", "cuda"} and chip.lower() in other.device_kind.lower().split()


def _prediction(name: str, ledger: Ledger, other_name: str, other: Ledger) -> Prediction:
    same, near, missed = 0, 0, []
    for case, entry in ledger.cases.items():
        foreseen = other.cases.get(case)
        if foreseen is None or entry.unsupported or foreseen.unsupported or entry.error:
            continue
        if entry.shares_caches and not entry.results:  # a test that keeps none
            continue
        share = _share(foreseen, entry)
        if share is None:
            missed.append(case)
        else:
            same, near = (same + 1, near) if share == 0 else (same, near + 1)
    return Prediction(name, other_name, same, near, tuple(missed))


def _share(foreseen: CaseEntry, entry: CaseEntry) -> float | None:
    """The share that is used of what both may be off together; None where it is exceeded."""
    if len(foreseen.results) != len(entry.results):
        return None
    pairs = [_pair(*both) for both in zip(foreseen.results, entry.results, strict=True)]
    return max((pair.share for pair in pairs), default=0.0) if all(p.holds for p in pairs) else None
