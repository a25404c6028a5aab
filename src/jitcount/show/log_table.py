"""What `print(log)` shows: each compile with its cause, and the recompiles worth fixing first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.explain.hotspots import Hotspot, hotspots
from jitcount.show.parts import Heading, Note, Part, Seconds, Table, figures, words
from jitcount.show.text import name_of, seconds, signature_of, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount.explain.causes import Cause
    from jitcount.explain.compile import Compile

# More rows than a person reads; the cheapest are left out.
_MOST_ROWS = 50

_MOST_HOTSPOTS = 3
_MOST_CAUSES = 4


def log_table(compiles: Sequence[Compile]) -> list[Part]:
    """A headline with the totals, the compiles in order, and what to fix first."""
    if not compiles:
        return [Note("nothing was compiled")]
    parts: list[Part] = [Heading(_headline(compiles)), _table(compiles)]
    if worst := hotspots(compiles)[:_MOST_HOTSPOTS]:
        parts.append(Heading("Worth fixing first"))
        parts += [note for hotspot in worst for note in _notes(hotspot)]
    return parts


def _table(compiles: Sequence[Compile]) -> Table:
    shown = _costliest(compiles)
    rows = [
        (
            name_of(compiled),
            signature_of(compiled.signature),
            Seconds(compiled.total_s),
            compiled.call_site,
            _causes(compiled.causes),
        )
        for compiled in shown
    ]
    left_out = ""
    if more := len(compiles) - len(shown):
        rest = sum(c.total_s for c in compiles) - sum(c.total_s for c in shown)
        left_out = f"… and {more} cheaper ones, {seconds(rest)} together"
    columns = words("function", "signature") + figures("time") + words("call site", "cause")
    return Table(columns, rows, left_out)


def _causes(causes: Sequence[Cause]) -> str:
    if len(causes) <= _MOST_CAUSES:
        return "; ".join(map(str, causes))
    first = "; ".join(map(str, causes[: _MOST_CAUSES - 1]))
    return f"{first}; and {len(causes) - _MOST_CAUSES + 1} more"


def _notes(hotspot: Hotspot) -> list[Note]:
    cost = f"{times(hotspot.count, 'recompile')}, {seconds(hotspot.seconds)}"
    below = list(hotspot.causes[:_MOST_CAUSES])
    if (more := len(hotspot.causes) - _MOST_CAUSES) > 0:
        below.append(f"and {times(more, 'other change')}")
    if hotspot.advice:
        below.append(f"→ {hotspot.advice}")
    first = Note(f"{hotspot.function} at {hotspot.call_site}: {cost}", depth=1)
    return [first, *(Note(text, depth=2) for text in below)]


def _costliest(compiles: Sequence[Compile]) -> Sequence[Compile]:
    if len(compiles) <= _MOST_ROWS:
        return compiles
    ranked = sorted(range(len(compiles)), key=lambda index: -compiles[index].total_s)
    return [compiles[index] for index in sorted(ranked[:_MOST_ROWS])]


def _headline(compiles: Sequence[Compile]) -> str:
    made = [c for c in compiles if not c.from_disk]
    hits = len(compiles) - len(made)
    phases = ", ".join(
        f"{name} {seconds(sum(figures))}"
        for name, figures in (
            ("trace", [c.trace_s for c in compiles]),
            ("lower", [c.lower_s for c in compiles]),
            ("compile", [c.compile_s for c in compiles]),
        )
    )
    also = f" and {times(hits, 'disk hit')}" if hits else ""
    total = seconds(sum(c.total_s for c in compiles))
    return f"{times(len(made), 'compile')}{also} in {total} ({phases})"
