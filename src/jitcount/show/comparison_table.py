"""A comparison of ledgers as text: the differences first, then ledgers by cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.ledger import comparison as states
from jitcount.ledger.findings import share_text
from jitcount.show.text import render, table, times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jitcount.ledger.comparison import Cell, Comparison
    from jitcount.ledger.ledger import Ledger
    from jitcount.show.table import Table

# Names of cases in one line.
_MOST_NAMES = 8

_LEGEND = (
    "= the first ledger's bits   ≈ within the bounds, so many ulps away   ✗ a difference",
    "– unsupported there   × seconds of compiles against the first ledger's, never judged",
)


def comparison_text(compared: Comparison, ledgers: Mapping[str, Ledger]) -> str:
    """All that a comparison found."""
    parts: list[str | Table] = [_headline(compared)]
    parts += [f"  {difference}" for difference in compared.differences]
    parts += ["", _ledgers(compared, ledgers), "", *_changed(compared), ""]
    if any(cell.figures for row in compared.rows for cell in row.cells):
        parts += [_figures(compared), ""]
    parts += [_matrix(compared), "", *_LEGEND]
    return render(*parts)


def _headline(compared: Comparison) -> str:
    what = f"{times(len(compared.rows), 'case')} in {times(len(compared.names), 'ledger')}"
    return f"{times(len(compared.differences), 'difference')} in {what}"


def _ledgers(compared: Comparison, ledgers: Mapping[str, Ledger]) -> Table:
    right = ("same bits", "within bounds", "compile time")
    rows = table("ledger", "where", *right, right=right)
    for number, (name, ledger) in enumerate(ledgers.items()):
        same, near, median = compared.changes(number)
        ratio = "" if median is None else f"{median:.2f}×"
        rows.add_row(name, str(ledger.environment), str(same), str(near), ratio)
    return rows


def _changed(compared: Comparison) -> list[str]:
    lines = ["Results with other bits than in the ledger before:"]
    for name, cases in compared.changed.items():
        shown = ", ".join(cases[:_MOST_NAMES])
        more = len(cases) - _MOST_NAMES
        lines.append(f"  {name}: {shown or 'none'}{f' and {more} more' if more > 0 else ''}")
    return lines


def _matrix(compared: Comparison) -> Table:
    rows = table("case", "bound used", *compared.names)
    for row in compared.rows:
        rows.add_row(row.case, share_text(row.share), *map(_cell_text, row.cells))
    return rows


def _figures(compared: Comparison) -> Table:
    """Timings of calls that compile nothing, as ratios."""
    rows = table("cached call of", *compared.names)
    for row in compared.rows:
        ratios = [(cell.figures or {}).get("cached_s") for cell in row.cells]
        if any(ratios):
            rows.add_row(row.case, *("" if r is None else f"{r:.2f}×" for r in ratios))
    return rows


_MARKS = {states.SAME: "=", states.NEAR: "≈", states.WRONG: "✗", states.UNSUPPORTED: "–"}


def _cell_text(cell: Cell) -> str:
    mark = _MARKS.get(cell.state, cell.state)
    if cell.state == states.NEAR:
        mark += f" {cell.ulps:,}" if cell.ulps < 10_000 else " far"
    return mark if cell.compile_ratio is None else f"{mark} {cell.compile_ratio:.1f}×"
