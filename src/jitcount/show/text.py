"""Plain text from rich's tables, at the width of whoever reads it."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import RenderableType

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


def render(*parts: RenderableType, columns: int | None = None) -> str:
    """Text without colour codes, without trailing blanks, without a final line break."""
    columns = columns or width()
    # A test's id or a function's name may look like markup: nothing is.
    console = Console(
        file=io.StringIO(), width=columns, color_system=None, highlight=False, markup=False
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part, markup=False, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the house style; the columns named in `right` hold figures."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in columns:
        if name in right:
            made.add_column(name, justify="right", no_wrap=True)
        else:
            made.add_column(name, overflow="fold")
    return made


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
