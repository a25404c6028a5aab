"""What a run of the suite found, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.ledger.findings import counts_text, share_of_bound, share_text
from jitcount.show.text import render, seconds, table, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount.ledger.ledger import CaseEntry, Ledger


def suite_text(ledger: Ledger, wrong: Mapping[str, Sequence[str]], took: float) -> str:
    """The cases as a table, then what is wrong, then a closing line."""
    targets = list(dict.fromkeys(t for entry in ledger.cases.values() for t in entry.targets))
    cached = ["cached"] if any(entry.figures for entry in ledger.cases.values()) else []
    right = ("compile time", *cached, *targets)
    rows = table("case", "class", "bound used", "compiles", *right, "", right=right)
    for case, entry in ledger.cases.items():
        verdict = "unsupported" if entry.unsupported else "WRONG" if case in wrong else "holds"
        rows.add_row(
            case,
            _classes(entry),
            share_text(share_of_bound(entry)),
            counts_text(entry.counts()),
            seconds(sum(compiled.total_s for compiled in entry.compiles)),
            *(seconds(entry.figures.get("cached_s", 0.0)) for _ in cached),
            *(seconds(_seconds_on(entry, target)) for target in targets),
            verdict,
        )
    lines = [f"  {case}: {line}" for case, found in wrong.items() for line in found]
    left_out = sum(bool(entry.unsupported) for entry in ledger.cases.values())
    held = len(ledger.cases) - len(wrong) - left_out
    closing = f"{times(held, 'case')} held, {len(wrong)} did not, {left_out} unsupported"
    return render(rows, "", *lines, f"{closing}, in {seconds(took)}")


def _seconds_on(entry: CaseEntry, target: str) -> float:
    """What a target's compiler took for all of a case; a program that came twice counts once."""
    results = [compiled.on[target] for compiled in entry.compiles if target in compiled.on]
    return sum({id(result): result.compile_s for result in results}.values())


def _classes(entry: CaseEntry) -> str:
    return ", ".join(dict.fromkeys(result.expected.numerics for result in entry.results))
