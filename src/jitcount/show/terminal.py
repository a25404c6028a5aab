"""Parts as plain text, at the width of the terminal that shows it.

Tables are set by hand where they fit, and folded by rich where they do not: most fit, and rich
takes a tenth of a second to load and a millisecond for each row.
"""

from __future__ import annotations

import io
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, TextIO

from jitcount.show.parts import Column, Heading, Part, Table
from jitcount.show.text import cell_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A pipe, a file and a CI log have no width: there nothing should be folded to fit.
_UNWATCHED = 1000

_GAP = "   "
_INDENT = "  "


def width(stream: TextIO | None = None) -> int:
    """Columns of the terminal that `stream` (stdout) is; a pipe has as many as the text wants.

    COLUMNS in the environment says otherwise, for a terminal and for a pipe.
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or _UNWATCHED
    except (AttributeError, OSError, ValueError):  # no stream, no terminal, closed
        return _UNWATCHED


def render(parts: Iterable[Part], columns: int | None = None, *, dense: bool = False) -> str:
    """Text without colour codes, without trailing blanks, without a final line break.

    A table has a blank line above and below, a heading one above; `dense` text has none.

    >>> from jitcount.show.parts import Count, figures, words
    >>> table = Table(words("name") + figures("count"), [("step", Count(12))])
    >>> print(render([Heading("What was compiled"), table], columns=80))
    What was compiled
    <BLANKLINE>
    name   count
    ────────────
    step      12
    """
    columns = columns or width()
    lines: list[str] = []
    above: Part | None = None
    for part in parts:
        if above is not None and not dense and _are_apart(above, part):
            lines.append("")
        lines += _lines(part, columns)
        above = part
    return "\n".join(line.rstrip() for line in lines)


def _are_apart(above: Part, below: Part) -> bool:
    return isinstance(above, Table) or isinstance(below, Heading | Table)


def _lines(part: Part, columns: int) -> list[str]:
    if isinstance(part, Table):
        return [*_table_lines(part, columns), *part.left_out.splitlines()]
    depth = 0 if isinstance(part, Heading) else part.depth
    return f"{_INDENT * depth}{part.text}".splitlines() or [""]


def _table_lines(table: Table, columns: int) -> list[str]:
    rows = [[cell_text(cell) for cell in row] for row in table.rows]
    every = [[column.name for column in table.columns], *rows]
    widths = [max(map(_width, column)) for column in zip(*every, strict=True)]
    total = sum(widths) + len(_GAP) * (len(widths) - 1)
    if total > columns or any("\n" in cell for row in every for cell in row):
        return _folded(table.columns, rows, columns)
    heading, *below = (_row(table.columns, row, widths) for row in every)
    return [heading, "─" * total, *below]


def _row(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for column, cell, wanted in zip(columns, cells, widths, strict=True):
        blanks = " " * (wanted - _width(cell))
        padded.append(blanks + cell if column.is_figure else cell + blanks)
    return _GAP.join(padded)


def _width(text: str) -> int:
    """Columns that a text takes: characters of East Asia take two."""
    if text.isascii():
        return len(text)
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)


def _folded(columns: Sequence[Column], rows: Sequence[Sequence[str]], most: int) -> list[str]:
    from rich import box  # noqa: PLC0415 (slow to load)
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table as Folded  # noqa: PLC0415

    folded = Folded(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        if column.is_figure:
            folded.add_column(column.name, justify="right", no_wrap=True)
        else:
            folded.add_column(column.name, overflow="fold")
    for row in rows:
        folded.add_row(*row)
    # A test's id or a function's name may look like markup: nothing is.
    console = Console(
        file=io.StringIO(), width=most, color_system=None, highlight=False, markup=False
    )
    with console.capture() as capture:
        console.print(folded)
    return capture.get().splitlines()
