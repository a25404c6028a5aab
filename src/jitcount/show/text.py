"""Plain text, with tables, at the width of whoever reads it."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from jitcount.show.table import Table

# Where nobody watches (a pipe, a file, a CI log) nothing should be folded to fit.
_UNWATCHED = 1000


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


def render(*parts: str | Table, columns: int | None = None) -> str:
    """Text without colour codes, without trailing blanks, without a final line break."""
    columns = columns or width()
    lines: list[str] = []
    for part in parts:
        lines += part.lines(columns) if isinstance(part, Table) else part.splitlines() or [""]
    return "\n".join(line.rstrip() for line in lines)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the house style; the columns named in `right` hold figures."""
    return Table(columns, right)


def seconds(value: float) -> str:
    """A duration in the unit that reads best.

    >>> seconds(12.34), seconds(0.0451), seconds(0.0000294), seconds(0.0)
    ('12.3 s', '45.1 ms', '29.4 µs', '0')
    """
    for unit, scale in ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return "0"


def times(number: int, thing: str) -> str:
    """A number and its noun.

    >>> times(1, "compile"), times(2, "compile")
    ('1 compile', '2 compiles')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
