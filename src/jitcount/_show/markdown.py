"""Parts as Markdown with GitHub's tables: for job summaries, issues and pull requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jitcount._show.parts import Heading, Note, Part, Table, Tone, tone_of
from jitcount._show.text import cell_text

if TYPE_CHECKING:
    from collections.abc import Iterable

# What has a meaning wherever it stands: in names, shapes and causes it has none.
_MEANING = re.compile(r"([\\`*_\[<>|~&$])")

# What has one at the start of a line.
_MEANING_AT_THE_START = re.compile(r"([#+=-]|\d+(?=[.)]))")

_INDENT = "  "


def render(parts: Iterable[Part]) -> str:
    r"""Parts as Markdown, without a final line break.

    A heading is one, a note a paragraph, a deeper note an item of a list.

    >>> from jitcount._show.parts import Count, figures, words
    >>> table = Table(words("name") + figures("count"), [("a|b", Count(12))])
    >>> print(render([Heading("What was compiled"), table, Note("below", depth=1)]))
    ### What was compiled
    <BLANKLINE>
    | name | count |
    | :--- | ---: |
    | a\|b | 12 |
    <BLANKLINE>
    - below
    """
    lines: list[str] = []
    above: Part | None = None
    for part in parts:
        if above is not None and not (_is_item(above) and _is_item(part)):
            lines.append("")
        lines += _lines(part)
        above = part
    return "\n".join(lines)


def _is_item(part: Part) -> bool:
    return isinstance(part, Note) and part.depth > 0


def _lines(part: Part) -> list[str]:
    match part:
        case Heading(text):
            return [f"### {_escaped(text)}"]
        case Note(text, 0, tone):
            return [_in_tone(_line(text), tone)]
        case Note(text, depth, tone):
            return [f"{_INDENT * (depth - 1)}- {_in_tone(_line(text), tone)}"]
        case Table():
            below = ["", _line(part.left_out)] if part.left_out else []
            return [*_table(part), *below]


def _table(table: Table) -> list[str]:
    names = [_escaped(column.name) for column in table.columns]
    sides = ["---:" if column.is_figure else ":---" for column in table.columns]
    rows = [
        [_in_tone(_escaped(cell_text(cell)), tone_of(cell)) for cell in row] for row in table.rows
    ]
    return [f"| {' | '.join(cells)} |" for cells in (names, sides, *rows)]


def _in_tone(text: str, tone: Tone) -> str:
    """Markdown has no colours: what should not be is bold there, and so is what is strong."""
    is_bold = tone in {Tone.STRONG, Tone.AVOIDABLE, Tone.DIFFERENT}
    return f"**{text}**" if text and is_bold else text


def _line(text: str) -> str:
    escaped = _escaped(text)
    if _MEANING_AT_THE_START.match(escaped):
        return re.sub(r"^(\d*)(.)", r"\1\\\2", escaped)
    return escaped


def _escaped(text: str) -> str:
    return _MEANING.sub(r"\\\1", text.strip())
