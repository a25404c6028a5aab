"""Parts as plain text, at the width of the terminal that shows it.

Tables are set by hand where they fit, and folded by rich where they do not: most fit, and rich
takes a tenth of a second to load and a millisecond for each row.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, TextIO

from jitcount.observe.visible import encoding_of, spelled
from jitcount.show.parts import Column, Heading, Part, Table
from jitcount.show.text import cell_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# A pipe, a file and a CI log have no width: there nothing should be folded to fit.
_UNWATCHED = 1000

# Where a column of words would be narrower than this, a table is not folded but stacked.
_NARROWEST = 4

_LONGEST_NUMBER = 9

_GAP = "   "
_INDENT = "  "


def width(stream: TextIO | None = None) -> int:
    """Columns of the terminal that `stream` (stdout) is; a pipe has as many as the text wants.

    COLUMNS in the environment says otherwise, for a terminal and for a pipe.
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and len(asked) <= _LONGEST_NUMBER and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or _UNWATCHED
    except (AttributeError, OSError, ValueError):  # no stream, no terminal, closed
        return _UNWATCHED


def render(
    parts: Iterable[Part],
    columns: int | None = None,
    *,
    dense: bool = False,
    stream: TextIO | None = None,
) -> str:
    """Text without colour codes, without trailing blanks, without a final line break.

    A table has a blank line above and below, a heading one above; `dense` text has none. No line of
    a table is longer than there are columns. A heading and a note are one line each, however long:
    a terminal folds them itself, and they can be searched and copied whole.

    What the encoding of `stream` (stdout) lacks is written in ASCII.

    >>> from jitcount.show.parts import Count, figures, words
    >>> table = Table(words("name") + figures("count"), [("step", Count(12))])
    >>> print(render([Heading("What was compiled"), table], columns=80))
    What was compiled
    <BLANKLINE>
    name   count
    ────────────
    step      12
    """
    stream = stream or sys.stdout
    columns = columns or width(stream)
    spell = functools.partial(spelled, encoding=encoding_of(stream))
    lines: list[str] = []
    above: Part | None = None
    for part in parts:
        if above is not None and not dense and _are_apart(above, part):
            lines.append("")
        lines += _lines(part, columns, spell)
        above = part
    return "\n".join(line.rstrip() for line in lines)


def _are_apart(above: Part, below: Part) -> bool:
    return isinstance(above, Table) or isinstance(below, Heading | Table)


def _lines(part: Part, columns: int, spell: Callable[[str], str]) -> list[str]:
    if isinstance(part, Table):
        below = [spell(part.left_out)] if part.left_out else []
        return [*_table_lines(part, columns, spell), *below]
    depth = 0 if isinstance(part, Heading) else part.depth
    return [f"{_INDENT * depth}{spell(part.text)}"]


def _table_lines(table: Table, most: int, spell: Callable[[str], str]) -> list[str]:
    columns = [Column(spell(column.name), column.is_figure) for column in table.columns]
    rows = [[spell(cell_text(cell)) for cell in row] for row in table.rows]
    every = [[column.name for column in columns], *rows]
    widths = [max(map(_width, column)) for column in zip(*every, strict=True)]
    gaps = len(_GAP) * (len(widths) - 1)
    rule = spell("─")
    if sum(widths) + gaps <= most:
        heading, *below = (_row(columns, row, widths) for row in every)
        return [heading, rule * (sum(widths) + gaps), *below]
    pairs = zip(columns, widths, strict=True)
    least = sum(w if column.is_figure else min(w, _NARROWEST) for column, w in pairs)
    if least + gaps <= most:
        return _folded(columns, rows, most, rule)
    return _stacked(columns, rows, most, rule)


def _row(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for column, cell, wanted in zip(columns, cells, widths, strict=True):
        blanks = " " * (wanted - _width(cell))
        padded.append(blanks + cell if column.is_figure else cell + blanks)
    return _GAP.join(padded)


def _width(text: str) -> int:
    """Columns that a text takes: characters of East Asia take two, and marks above others none."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 1 + (unicodedata.east_asian_width(character) in "WF")


def _folded(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], most: int, rule: str
) -> list[str]:
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
    # A test's id or a function's name may look like markup, or like the name of an emoji: none is.
    console = Console(
        file=io.StringIO(),
        width=most,
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        console.print(folded)
    return capture.get().replace("─", rule).splitlines()  # where it is replaced, no cell has one


def _stacked(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], most: int, rule: str
) -> list[str]:
    """Where there is no room for columns side by side: one cell below the other."""
    lines = [] if rows else [*_cut(", ".join(column.name for column in columns), most)]
    for row in rows:
        lines.append(rule * most)
        for column, cell in zip(columns, row, strict=True):
            if cell:
                named = f"{column.name}: {cell}" if column.name else cell
                lines += _cut(named, most)
    return lines


def _cut(text: str, most: int) -> Iterator[str]:
    """A text in pieces that fit, whatever is in it."""
    piece, taken = "", 0
    for character in text:
        wide = _columns_of(character)
        if piece and taken + wide > most:
            yield piece
            piece, taken = "", 0
        piece, taken = piece + character, taken + wide
    yield piece
