"""Parts as text, at the width of the terminal that shows it, in colour where it has some."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, TextIO

from jitcount._show.layout import Page
from jitcount._show.parts import Heading, Part, Table
from jitcount._text import encode_safely, encoding_of

if TYPE_CHECKING:
    from collections.abc import Iterable

# A pipe, a file and a CI log have no width: there nothing should be folded to fit.
_UNWATCHED = 1000

_LONGEST_NUMBER = 9


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


def has_colour(stream: TextIO | None = None) -> bool:
    """Whether `stream` (stdout) shows colours: a terminal that is not dumb.

    NO_COLOR in the environment says otherwise, and so does FORCE_COLOR, in that order.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal, and not a pipe, a file or nothing at all."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # no stream, closed
        return False


def render(
    parts: Iterable[Part],
    columns: int | None = None,
    *,
    dense: bool = False,
    stream: TextIO | None = None,
    colour: bool = False,
) -> str:
    """Text without trailing blanks and without a final line break.

    A table has a blank line above and below, a heading one above; `dense` text has none. No line is
    longer than there are columns, unless it is a single word: a path or a name stays whole, and can
    be clicked and copied.

    What the encoding of `stream` (stdout) lacks is written in ASCII.

    >>> from jitcount._show.parts import Count, figures, words
    >>> table = Table(words("name") + figures("count"), [("step", Count(12))])
    >>> print(render([Heading("What was compiled"), table], columns=80))
    What was compiled
    <BLANKLINE>
    name   count
    ────────────
    step      12
    """
    stream = stream or sys.stdout
    spell = functools.partial(encode_safely, encoding=encoding_of(stream))
    page = Page(columns or width(stream), spell, colour=colour)
    lines: list[str] = []
    above: Part | None = None
    for part in parts:
        if above is not None and not dense and _are_apart(above, part):
            lines.append("")
        lines += page.lines(part)
        above = part
    return "\n".join(line.rstrip() for line in lines)


def _are_apart(above: Part, below: Part) -> bool:
    return isinstance(above, Table) or isinstance(below, Heading | Table)
