"""What a program compiles under other releases of JAX, beside what it compiles here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount._ledger.comparison import OUTSIDE_JIT
from jitcount._show.comparison_table import changes_of
from jitcount._show.parts import (
    Bytes,
    Cell,
    Count,
    Heading,
    Note,
    Part,
    Ratio,
    Row,
    Seconds,
    Table,
    Tone,
    figures,
    words,
)
from jitcount._show.text import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._ledger.comparison import Change
    from jitcount._ledger.releases import Figures, FunctionInReleases

_MOST_FUNCTIONS = 10


@dataclass(frozen=True, slots=True)
class UnderRelease:
    """What came of a run under one release."""

    name: str
    about: Sequence[str] = ()
    """What is other there than here, besides JAX, in a line each."""

    problems: Sequence[str] = ()
    """What is wrong with it: it failed, or left nothing to compare."""

    changes: Sequence[Change] = field(default=())

    @property
    def differences(self) -> int:
        """How much differs, and counts."""
        return bool(self.problems) + sum(change.is_difference for change in self.changes)


def releases_parts(
    here: str, found: Sequence[UnderRelease], functions: Sequence[FunctionInReleases]
) -> list[Part]:
    """Release by release what differs from here, then all figures side by side."""
    parts: list[Part] = []
    for under in found:
        count = plural(under.differences, "difference") if under.differences else "no difference"
        parts += heading_of(under, f" against {here}: {count}")
        parts += changes_of(under.changes)
    shown = [row for row in functions if len(row.figures) > 1 or here not in row.figures]
    names = [here, *(under.name for under in found)]
    if shown and any(name in row.figures for row in shown for name in names[1:]):
        parts.append(_table(here, names, shown))
        parts.append(Note("time: of all its compiles here; below × against that, never judged"))
    return parts


def heading_of(under: UnderRelease, says: str = "") -> list[Part]:
    """What else is other under a release than here, and what went wrong."""
    tone = Tone.DIFFERENT if under.differences else Tone.STRONG
    return [
        Heading(f"{under.name}{says}", tone),
        *(Note(text, depth=1) for text in under.about),
        *(Note(text, depth=1, tone=Tone.DIFFERENT) for text in under.problems),
    ]


def _table(here: str, names: Sequence[str], rows: Sequence[FunctionInReleases]) -> Table:
    kept = rows[:_MOST_FUNCTIONS]
    if rows[-1].function == OUTSIDE_JIT and rows[-1] not in kept:
        kept = [*kept, rows[-1]]
    every = [figures for row in kept for figures in row.figures.values()]
    targets = sorted({target for figures in every for target in figures.memory})
    lines: list[Row] = []
    for row in kept:
        measure = row.figures.get(here)
        title: tuple[Cell, Cell] = (row.function, row.call_site)
        for name in names:
            if (each := row.figures.get(name)) is not None:
                lines.append((*title, name, *_cells(each, measure, targets)))
                title = ("", "")
            elif name == here or measure is not None:
                lines.append((*title, name, "none", "", "", *[""] * len(targets)))
                title = ("", "")
    left = len(rows) - len(kept)
    left_out = f"… and {plural(left, 'function')} that take less time" if left else ""
    heads = figures("compiles", "operations", "time", *(f"on {target}" for target in targets))
    return Table(words("function", "call site", "under") + heads, lines, left_out)


def _cells(each: Figures, measure: Figures | None, targets: Sequence[str]) -> tuple[Cell, ...]:
    time: Cell = Seconds(each.seconds)
    if measure is not None and each is not measure and measure.seconds > 0:
        time = Ratio(each.seconds / measure.seconds)
    memory = (Bytes(each.memory.get(target)) for target in targets)
    return (Count(each.compiles), Count(each.operations), time, *memory)
