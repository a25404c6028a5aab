"""Scores what the suite notices, fault by fault, and whether that is enough."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._show.parts import Count, Note, Part, Row, Table, figures, words
from jitcount._show.text import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.faults.fault import Fault
    from tools.faults.trying import Outcome, Tried

# The part of the cases changed beyond their bounds that must notice a fault.
ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class Score:
    """One fault, and its outcomes in all cases that use its primitives."""

    fault: Fault
    outcomes: tuple[Outcome, ...]

    @property
    def noticed(self) -> list[Outcome]:
        """The outcomes in which the suite notices the fault."""
        return [outcome for outcome in self.outcomes if outcome.noticed]

    @property
    def changed(self) -> list[Outcome]:
        """The outcomes in which any bit of a result changes."""
        return [outcome for outcome in self.outcomes if outcome.changed]

    @property
    def beyond(self) -> list[Outcome]:
        """The outcomes in which a result changes by more than its bound."""
        return [outcome for outcome in self.outcomes if outcome.is_beyond]

    @property
    def missed(self) -> list[Outcome]:
        """The outcomes beyond a bound that the suite does not notice."""
        return [outcome for outcome in self.beyond if not outcome.noticed]

    @property
    def wrong(self) -> str:
        """Why the score is not good enough; empty if it is."""
        if any(outcome.error for outcome in self.outcomes):
            return "FAILED"
        if not self.outcomes:
            return "NO CASE"
        if not self.changed:
            return "CHANGES NOTHING"
        if not self.noticed:
            return "UNNOTICED"
        if len(self.beyond) - len(self.missed) < ENOUGH * len(self.beyond):
            return "MISSED"
        return ""


def scores(faults: Iterable[Fault], tried: Iterable[Tried]) -> list[Score]:
    """Return the score of each fault."""
    outcomes = [outcome for case in tried for outcome in case.outcomes]
    return [
        Score(fault, tuple(outcome for outcome in outcomes if outcome.fault == fault.id))
        for fault in faults
    ]


def faults_table(found: Sequence[Score], tried: Sequence[Tried], took: float) -> list[Part]:
    """The table of faults with their counts, then the cases that missed them, then the totals."""
    rows: list[Row] = [
        (
            score.fault.id,
            score.fault.family,
            *(Count(len(part)) for part in (score.outcomes, score.changed, score.beyond)),
            Count(len(score.noticed)),
            score.wrong or "noticed",
        )
        for score in found
    ]
    columns = words("fault", "family") + figures("cases", "changed", "beyond bound", "noticed")
    alarms = [f"{case.case}: {case.false_alarm}" for case in tried if case.false_alarm]
    left_out = [f"{case.case}: {case.unsupported}" for case in tried if case.unsupported]
    return [
        Table(columns + words(""), rows),
        *(note for score in found for note in _notes(score)),
        *_list("cases that do not hold without a fault, and were not tried", alarms),
        *_list("cases that cannot run here", left_out),
        Note(_closing(found, took)),
    ]


def _notes(score: Score) -> list[Note]:
    """The cases that did not notice, and how much of its bound the change uses in each."""
    failed = [
        f"{one.case}: {textwrap.shorten(one.error, 100)}" for one in score.outcomes if one.error
    ]
    within = [one for one in score.changed if not one.noticed and not one.is_beyond]
    return [
        *_list(f"{score.fault.id} raised", failed),
        *_list(f"{score.fault.id} was missed", [one.case for one in score.missed]),
        *_list(
            f"{score.fault.id} stays within the bound",
            [f"{one.case} ({one.share:.2g} of it)" for one in within],
        ),
    ]


def _list(what: str, names: Sequence[str]) -> list[Note]:
    return [Note(f"{what}: {', '.join(names)}", depth=1)] if names else []


def _closing(found: Sequence[Score], took: float) -> str:
    noticed = sum(bool(score.noticed) for score in found)
    beyond = sum(len(score.beyond) for score in found)
    missed = sum(len(score.missed) for score in found)
    share = f" ({(beyond - missed) / beyond:.1%})" if beyond else ""
    return (
        f"{noticed} of {len(found)} faults noticed; of {beyond:,} results beyond their bound "
        f"{beyond - missed:,}{share}; in {seconds(took)}"
    )
