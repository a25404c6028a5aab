"""What `print(log)` shows: each compile a row, in the order in which they happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.text import render, seconds, table, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from jitcount.observe.compile import Compile

# More rows than a person reads; the cheapest are left out.
_MOST_ROWS = 50


def log_table(compiles: Sequence[Compile]) -> str:
    """A headline with the totals, and under it the compiles."""
    if not compiles:
        return "nothing was compiled"
    rows = table(
        "function", "signature", "trace", "lower", "compile", "call site",
        right=("trace", "lower", "compile"),
    )  # fmt: skip
    shown = _costliest(compiles)
    for compiled in shown:
        rows.add_row(
            _name(compiled),
            ", ".join(compiled.signature) or "no arrays",
            seconds(compiled.trace_s),
            seconds(compiled.lower_s),
            seconds(compiled.compile_s),
            compiled.call_site,
        )
    parts: list[str | Table] = [_headline(compiles), "", rows]
    if left_out := len(compiles) - len(shown):
        rest = sum(c.total_s for c in compiles) - sum(c.total_s for c in shown)
        parts.append(f"… and {left_out} cheaper ones, {seconds(rest)} together")
    return render(*parts)


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


def _name(compiled: Compile) -> str:
    marks = [
        mark for mark, is_so in (("eager", compiled.eager), ("disk", compiled.from_disk)) if is_so
    ]
    return f"{compiled.function} ({', '.join(marks)})" if marks else compiled.function
