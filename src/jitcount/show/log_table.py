"""What `print(log)` shows: each compile with its cause, and the recompiles worth fixing first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.explain.hotspots import Hotspot, hotspots
from jitcount.show.text import render, seconds, table, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount.explain.causes import Cause
    from jitcount.explain.compile import Compile
    from jitcount.show.table import Table

# More rows than a person reads; the cheapest are left out.
_MOST_ROWS = 50

_MOST_HOTSPOTS = 3
_MOST_CAUSES = 4
_MOST_ARRAYS = 6


def log_table(compiles: Sequence[Compile], columns: int | None = None) -> str:
    """A headline with the totals, the compiles in order, and what to fix first."""
    if not compiles:
        return "nothing was compiled"
    parts: list[str | Table] = [_headline(compiles), "", _rows(shown := _costliest(compiles))]
    if left_out := len(compiles) - len(shown):
        rest = sum(c.total_s for c in compiles) - sum(c.total_s for c in shown)
        parts.append(f"… and {left_out} cheaper ones, {seconds(rest)} together")
    if worst := hotspots(compiles)[:_MOST_HOTSPOTS]:
        parts += ["", "Worth fixing first"]
        parts += [line for hotspot in worst for line in _hotspot_lines(hotspot)]
    return render(*parts, columns=columns)


def _rows(compiles: Sequence[Compile]) -> Table:
    rows = table("function", "signature", "time", "call site", "cause", right=("time",))
    for compiled in compiles:
        rows.add_row(
            name_of(compiled),
            signature_of(compiled.signature),
            seconds(compiled.total_s),
            compiled.call_site,
            _causes(compiled.causes),
        )
    return rows


def signature_of(signature: Sequence[str]) -> str:
    """The arrays that a function was given; of many, the first."""
    if len(signature) <= _MOST_ARRAYS:
        return ", ".join(signature) or "no arrays"
    first = ", ".join(signature[: _MOST_ARRAYS - 1])
    return f"{first} and {len(signature) - _MOST_ARRAYS + 1} more"


def _causes(causes: Sequence[Cause]) -> str:
    if len(causes) <= _MOST_CAUSES:
        return "; ".join(map(str, causes))
    first = "; ".join(map(str, causes[: _MOST_CAUSES - 1]))
    return f"{first}; and {len(causes) - _MOST_CAUSES + 1} more"


def _hotspot_lines(hotspot: Hotspot) -> list[str]:
    cost = f"{times(hotspot.count, 'recompile')}, {seconds(hotspot.seconds)}"
    lines = [f"  {hotspot.function} at {hotspot.call_site}: {cost}"]
    lines += [f"    {cause}" for cause in hotspot.causes[:_MOST_CAUSES]]
    if (more := len(hotspot.causes) - _MOST_CAUSES) > 0:
        lines.append(f"    and {times(more, 'other change')}")
    if hotspot.advice:
        lines.append(f"    → {hotspot.advice}")
    return lines


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


def name_of(compiled: Compile) -> str:
    """The function, with what is special about its compile."""
    marks = {"eager": compiled.eager, "disk": compiled.from_disk}
    shown = ", ".join(mark for mark, is_so in marks.items() if is_so)
    return f"{compiled.function} ({shown})" if shown else compiled.function
