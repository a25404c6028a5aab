"""What a run of the suite shows: a row for each case, then what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._ledger.budget import counts_text
from jitcount._ledger.findings import is_unjudged, remarks, share_of_bound, verdicts
from jitcount._miscompiles.known import warning
from jitcount._numerics.expected import BETWEEN_RUNS
from jitcount._numerics.judging import POSSIBLE
from jitcount._show.emulation_table import is_rounding, title_of
from jitcount._show.parts import (
    Cell,
    Note,
    Part,
    Row,
    Seconds,
    Share,
    Table,
    Tone,
    Toned,
    figures,
    optional_words,
    words,
)
from jitcount._show.target_table import distinct
from jitcount._show.text import plural, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount._ledger.ledger import CaseEntry, Ledger
    from jitcount._miscompiles.known import Miscompile


def suite_table(ledger: Ledger, wrong: Mapping[str, Sequence[str]], took: float) -> list[Part]:
    """The cases as a table, then what is wrong, then a closing line."""
    targets = list(dict.fromkeys(t for entry in ledger.cases.values() for t in entry.targets))
    cached = ["cached"] if any(entry.figures for entry in ledger.cases.values()) else []
    rows: list[Row] = []
    for case, entry in ledger.cases.items():
        rows.append(
            (
                case,
                _standing(entry, wrong.get(case, ())),
                Seconds(sum(compiled.total_s for compiled in entry.compiles)),
                *(Seconds(entry.figures.get("cached_s", 0.0)) for _ in cached),
                *(Seconds(_seconds_on(entry, target)) for target in targets),
                ", ".join(dict.fromkeys(result.expected.numerics for result in entry.results)),
                _bound_used(entry),
                counts_text(entry.counts()),
            )
        )
    columns = words("case", "") + figures("compile time", *cached, *targets)
    columns += optional_words("numerics", "bound used", "compiles")
    lines = [f"{case}: {line}" for case, found in wrong.items() for line in found]
    return [
        Table(columns, rows),
        *(Note(line, depth=1, tone=Tone.DIFFERENT) for line in lines),
        *(
            Note(f"{case}: {remark}", depth=1)
            for case, entry in ledger.cases.items()
            for remark in remarks(entry)
        ),
        *_unsupported(ledger),
        *_emulated(ledger),
        Note(f"{_closing(ledger, wrong)}, in {seconds(took)}", tone=Tone.STRONG),
    ]


def _bound_used(entry: CaseEntry) -> Cell:
    """How much of its bounds a case uses; nothing, where only another run's result is one."""
    share = share_of_bound(entry)
    is_declared = any(r.expected.numerics == BETWEEN_RUNS for r in entry.results)
    return "–" if entry.known_wrong or (share is None and is_declared) else Share(share)


def warnings(ledger: Ledger, known: Sequence[Miscompile]) -> list[Part]:
    """What this release is known to miscompile, by the cases that were run: a line each."""
    seen = [case for case, entry in ledger.cases.items() if entry.known_wrong]
    return [Note(warning(each)) for each in known if any(map(each.makes_wrong, seen))]


def _unsupported(ledger: Ledger) -> list[Part]:
    """Why some cases cannot run here: a line for each reason."""
    cases: dict[str, list[str]] = {}
    for case, entry in ledger.cases.items():
        if entry.unsupported:
            cases.setdefault(entry.unsupported, []).append(case)
    return [Note(f"unsupported, {why}: {', '.join(names)}", 1) for why, names in cases.items()]


def _closing(ledger: Ledger, wrong: Mapping[str, Sequence[str]]) -> str:
    """How many cases held, did not, are wrong as is known, and cannot run."""
    entries = ledger.cases
    left_out = sum(bool(entry.unsupported) for entry in entries.values())
    known = sum(bool(e.known_wrong) and case not in wrong for case, e in entries.items())
    unjudged = sum(is_unjudged(e) and case not in wrong for case, e in entries.items())
    held = len(entries) - len(wrong) - left_out - known - unjudged
    also = f", {known} wrong as known of this JAX" if known else ""
    also += f", {unjudged} not judged here" if unjudged else ""
    return f"{plural(held, 'case')} held, {len(wrong)} did not{also}, {left_out} unsupported"


def _emulated(ledger: Ledger) -> list[Part]:
    """With an emulated target: how many programs were emulated, and which ran as on the CPU."""
    target = ledger.environment.as_if
    if not target:
        return []
    every = sum(len(entry.compiles) for entry in ledger.cases.values())
    left = [(case, line) for case, entry in ledger.cases.items() for line in entry.as_on_cpu]
    notes = [Note(f"{case}, as on the CPU: {line}", depth=1) for case, line in left]
    there = "" if is_rounding(target) else " computed as there"
    return [
        *notes,
        Note(f"{title_of(target)}: {every - len(left)} of {every} programs{there}"),
    ]


def _standing(entry: CaseEntry, lines: Sequence[str]) -> Cell:
    if entry.unsupported:
        return "unsupported"
    if not lines:
        if is_unjudged(entry):
            return "not judged"
        return f"wrong, {entry.known_wrong}" if entry.known_wrong else "holds"
    failed = [verdict.grade for verdict in verdicts(entry) if not verdict.holds]
    is_possible = len(failed) == len(lines) and set(failed) == {POSSIBLE}
    return Toned("SUSPICIOUS" if is_possible else "WRONG", Tone.DIFFERENT)


def _seconds_on(entry: CaseEntry, target: str) -> float:
    """The seconds that a target's compiler took for all programs of a case."""
    results = [compiled.on[target] for compiled in entry.compiles if target in compiled.on]
    return sum(result.compile_s for result in distinct(results))
