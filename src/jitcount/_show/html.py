"""Parts as HTML, for notebooks: no scripts, no style sheets, readable on light and on dark."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from jitcount._show.parts import Cell, Column, Heading, Note, Part, Table, Tone, tone_of
from jitcount._show.text import cell_text

if TYPE_CHECKING:
    from collections.abc import Iterable

# Written at each element: many notebooks leave style sheets out. The text keeps the notebook's own
# colour, which fits its background; this orange and this red are legible on white and on black.
_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "font-weight:600",
    Tone.FAINT: "opacity:.6",
    Tone.AVOIDABLE: "color:#c8650b",
    Tone.DIFFERENT: "color:#d9434e",
}
_TABLE = "border-collapse:collapse;margin:.4em 0;color:inherit;font-size:inherit"
_HEAD = "border-bottom:1px solid currentColor;font-weight:600"
_CELL = "padding:.15em .8em .15em 0;vertical-align:top;background:none"


def render(parts: Iterable[Part]) -> str:
    """Parts as one HTML element, with all texts escaped.

    >>> print(render([Heading("2 compiles"), Note("<lambda>", depth=1)]))
    <div class="jitcount">
    <div style="font-weight:600;margin-top:.4em">2 compiles</div>
    <div style="padding-left:1.5em">&lt;lambda&gt;</div>
    </div>
    """
    lines = [line for part in parts for line in _lines(part)]
    return "\n".join(['<div class="jitcount">', *lines, "</div>"])


def _lines(part: Part) -> list[str]:
    match part:
        case Heading(text, tone):
            return [_element("div", text, _STYLES[tone], "margin-top:.4em")]
        case Note(text, depth, tone):
            indent = f"padding-left:{1.5 * depth:g}em" if depth else ""
            return [_element("div", text, _STYLES[tone], indent)]
        case Table():
            below = [_element("div", part.left_out)] if part.left_out else []
            return [*_table(part), *below]


def _table(table: Table) -> list[str]:
    heads = [_element("th", column.name, _CELL, _side(column), _HEAD) for column in table.columns]
    rows = [
        [_cell(column, cell) for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    return [
        f'<table style="{_TABLE}">',
        f"<thead><tr>{''.join(heads)}</tr></thead>",
        "<tbody>",
        *(f"<tr>{''.join(cells)}</tr>" for cells in rows),
        "</tbody></table>",
    ]


def _cell(column: Column, cell: Cell) -> str:
    # What is long may be folded: a signature, a cause. The rest is names, paths and figures.
    folding = "" if column.is_below else "white-space:nowrap"
    return _element("td", cell_text(cell), _CELL, _side(column), folding, _STYLES[tone_of(cell)])


def _side(column: Column) -> str:
    return "text-align:right" if column.is_figure else "text-align:left"


def _element(name: str, text: str, *styles: str) -> str:
    style = ";".join(filter(None, styles))
    attribute = f' style="{style}"' if style else ""
    return f"<{name}{attribute}>{html.escape(text)}</{name}>"
