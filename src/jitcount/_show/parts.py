"""What is shown, before it is text: headings, notes, and tables with typed cells.

The tables of this room are made of these, and a renderer makes a medium's text of them: `terminal`,
`markdown`, `html`. A figure stays a figure until then, so that a page can sort by it, and what is
bold, faint or red is a `Tone`, never a code. A text is one line, whatever is in it: here, and
nowhere else, the names and texts of others are made fit to be shown.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._text import escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tone(enum.Enum):
    """How a text is meant; each medium has its own way to show it, or none."""

    PLAIN = enum.auto()
    STRONG = enum.auto()
    """For totals and headings."""

    FAINT = enum.auto()
    """For what needs no attention: first calls."""

    AVOIDABLE = enum.auto()
    """For what need not be compiled again."""

    DIFFERENT = enum.auto()
    """For what differs, or should not be so."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What the parts below are about, in a line."""

    text: str
    tone: Tone = Tone.STRONG

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", escape_control_chars(self.text))


@dataclass(frozen=True, slots=True)
class Note:
    """A line of text; one that belongs to a line above has a greater depth."""

    text: str
    depth: int = 0
    tone: Tone = Tone.PLAIN
    is_whole: bool = False
    """Whether it is one line in a narrow terminal, too: a command to copy."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", escape_control_chars(self.text))


@dataclass(frozen=True, slots=True)
class Seconds:
    """A duration; None, as in other figures, for an empty cell."""

    value: float | None


@dataclass(frozen=True, slots=True)
class Bytes:
    """A size in memory."""

    value: int | None


@dataclass(frozen=True, slots=True)
class Ratio:
    """One duration against another."""

    value: float | None
    digits: int = 2


@dataclass(frozen=True, slots=True)
class Count:
    """A number of things."""

    value: int


@dataclass(frozen=True, slots=True)
class Ulps:
    """How far a value is from another, in units in the last place."""

    value: int


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a bound is used; None where the result is exact."""

    value: float | None


Figure = Seconds | Bytes | Ratio | Count | Ulps | Share

# A word, a figure, or several of them side by side.
Content = str | Figure | tuple[str | Figure, ...]


@dataclass(frozen=True, slots=True)
class Toned:
    """The content of a cell and its tone."""

    content: Content
    tone: Tone


Cell = Content | Toned
Row = tuple[Cell, ...]


def toned(row: Row, tone: Tone) -> Row:
    """A whole row in one tone."""
    return tuple(Toned(content_of(cell), tone) for cell in row)


def content_of(cell: Cell) -> Content:
    """The content of a cell, whatever its tone."""
    return cell.content if isinstance(cell, Toned) else cell


def tone_of(cell: Cell) -> Tone:
    """The tone of a cell."""
    return cell.tone if isinstance(cell, Toned) else Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Column:
    """One column; figures stand right, and are never folded."""

    name: str
    is_figure: bool = False
    is_below: bool = False
    """Whether it moves to a line of its own below each row, where the table is too wide."""

    is_optional: bool = False
    """Whether it is left out, and named below the table, where the table is too wide."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", escape_control_chars(self.name))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a cell for each column."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    left_out: str = ""
    """A line directly below the table, about rows that it leaves out."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "left_out", escape_control_chars(self.left_out))
        object.__setattr__(self, "rows", [tuple(map(_visible_cell, row)) for row in self.rows])


def _visible_cell(cell: Cell) -> Cell:
    if isinstance(cell, Toned):
        return Toned(_visible_content(cell.content), cell.tone)
    return _visible_content(cell)


def _visible_content(cell: Content) -> Content:
    if isinstance(cell, tuple):
        return tuple(escape_control_chars(one) if isinstance(one, str) else one for one in cell)
    return escape_control_chars(cell) if isinstance(cell, str) else cell


Part = Heading | Note | Table


def words(*names: str) -> tuple[Column, ...]:
    """Columns of words.

    >>> [(column.name, column.is_figure) for column in words("function") + figures("time")]
    [('function', False), ('time', True)]
    """
    return tuple(Column(name) for name in names)


def long_words(*names: str) -> tuple[Column, ...]:
    """Columns of words that need not stand beside the others."""
    return tuple(Column(name, is_below=True) for name in names)


def optional_words(*names: str) -> tuple[Column, ...]:
    """Columns of words that a narrow terminal leaves out, the last first."""
    return tuple(Column(name, is_optional=True) for name in names)


def figures(*names: str) -> tuple[Column, ...]:
    """Columns of figures."""
    return tuple(Column(name, is_figure=True) for name in names)
