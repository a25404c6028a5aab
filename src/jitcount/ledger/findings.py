"""What is wrong with one entry of a ledger, looked at alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.ledger.numerics import ALMOST_NOTHING, EXACT, judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jitcount.ledger.ledger import CaseEntry


def findings(entry: CaseEntry) -> list[str]:
    """What is not as the case says, a line each; empty when all is."""
    if entry.error:
        return [f"it raised {entry.error}"]
    lines = []
    for number, result in enumerate(entry.results):
        verdict = judge(result.value, result.expected)
        if not verdict.holds:
            which = f"result {number}: " if len(entry.results) > 1 else ""
            lines.append(f"{which}{verdict}")
    if entry.expected_compiles is not None:
        wanted = {name: count for name, count in entry.expected_compiles.items() if count}
        if entry.counts() != wanted:
            lines.append(f"compiled {counts_text(entry.counts())}, not {counts_text(wanted)}")
    return lines


def counts_text(counts: Mapping[str, int]) -> str:
    """Compile counts in a line.

    >>> counts_text({"sum": 2, "add": 1}), counts_text({})
    ('sum 2, add 1', 'nothing')
    """
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing"


def share_of_bound(entry: CaseEntry) -> float | None:
    """How much of its bounds an entry uses; None where all is exact, or nothing is there."""
    bounded = [r for r in entry.results if r.expected.numerics != EXACT]
    return max((judge(r.value, r.expected).share for r in bounded), default=None)


def share_text(share: float | None) -> str:
    """The share of a bound that is used, and whether that says anything.

    >>> share_text(None), share_text(0.25), share_text(0.00001), share_text(0.0)
    ('exact', '0.25', '1e-05 almost nothing', '0 almost nothing')
    """
    if share is None:
        return "exact"
    if share >= ALMOST_NOTHING:
        return f"{share:.2g}"
    return f"{share:.0e} almost nothing" if share else "0 almost nothing"
