"""Headings, notes and tables as lines of text that fit a width.

A table's columns stand side by side. Where they do not fit, a row takes two lines, or its cells are
folded, or they stand one below the other. Most tables fit and are set here; rich, which takes a
tenth of a second to load and a millisecond for each row, only folds the others. Lines are broken at
blanks only: a path or a name that is longer than the terminal stays whole, and can be clicked and
copied.
"""

from __future__ import annotations

import io
import itertools
import re
from typing import TYPE_CHECKING, NamedTuple

from jitcount._show.parts import Column, Heading, Part, Table, Tone, tone_of
from jitcount._show.text import cell_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

_GAP = "   "
_INDENT = "  "

# The tones as rich names them, and as terminals do.
_STYLES = {
    Tone.STRONG: "bold",
    Tone.FAINT: "dim",
    Tone.AVOIDABLE: "yellow",
    Tone.DIFFERENT: "red",
}
_CODES = {
    Tone.STRONG: "\x1b[1m",
    Tone.FAINT: "\x1b[2m",
    Tone.AVOIDABLE: "\x1b[33m",
    Tone.DIFFERENT: "\x1b[31m",
}
_END = "\x1b[0m"


# Letters, signs, arrows and the lines of tables that take one column each; others may be wide, or
# marks on letters.
_NARROW = re.compile("[ -\u02ff\u2010-\u20cf\u2190-\u22ff\u2500-\u257f]*")


class _Text(NamedTuple):
    """The text of a cell and its tone."""

    text: str
    tone: Tone = Tone.PLAIN


class Page:
    """Sets parts as lines: `width` columns wide, in letters that `spell` allows, perhaps in colour.

    Args:
        width: how many columns a line may have.
        spell: replaces letters that the stream cannot encode.
        colour: whether tones are written as a terminal's colours.
    """

    def __init__(self, width: int, spell: Callable[[str], str], *, colour: bool) -> None:
        self._width = width
        self._spell = spell
        self._colour = colour
        self._rule = spell("─")

    def lines(self, part: Part) -> list[str]:
        """The lines of a part."""
        if isinstance(part, Table):
            below = [self._spell(part.left_out)] if part.left_out else []
            return [*self._table(part), *below]
        indent = "" if isinstance(part, Heading) else _INDENT * part.depth
        text = self._spell(part.text)
        is_whole = not isinstance(part, Heading) and part.is_whole
        first, *others = [text] if is_whole else self._broken(text, len(indent))
        return [
            f"{indent}{self._painted(first, part.tone)}",
            *(f"{indent}{_INDENT}{self._painted(line, part.tone)}" for line in others),
        ]

    def _broken(self, text: str, indent: int) -> list[str]:
        """The lines of a text that is indented; those after the first are so by one step more."""
        room = self._width - indent
        if len(text) <= room and _columns_of(text) <= room:
            return [text]
        ends = [0, *_breaks(text, room, room - len(_INDENT)), len(text)]
        return [text[begin:end].rstrip() for begin, end in itertools.pairwise(ends)]

    def _painted(self, text: str, tone: Tone) -> str:
        if not (self._colour and text and tone in _CODES):
            return text
        return f"{_CODES[tone]}{text}{_END}"

    def _table(self, table: Table) -> list[str]:
        heads = [_Text(self._spell(column.name)) for column in table.columns]
        rows = [[_Text(self._spell(cell_text(c)), tone_of(c)) for c in row] for row in table.rows]
        columns, every, below = self._without_optional(table.columns, [heads, *rows])
        return [*self._set(columns, every), *below]

    def _without_optional(
        self, columns: Sequence[Column], every: Sequence[Sequence[_Text]]
    ) -> tuple[Sequence[Column], Sequence[Sequence[_Text]], list[str]]:
        """The columns, without the last optional ones until they fit, and a line about those."""
        places = list(range(len(columns)))
        left_out: list[str] = []
        for place in reversed([p for p in places if columns[p].is_optional]):
            if self._fits(places, _cells_at(places, every)):
                break
            places.remove(place)
            left_out.insert(0, columns[place].name)
        if not left_out:
            return columns, every, []
        names = self._spell(f"{', '.join(left_out)}: in a wider terminal, or piped to a file")
        kept = [columns[place] for place in places]
        return kept, _cells_at(places, every), [self._painted(names, Tone.FAINT)]

    def _set(self, columns: Sequence[Column], every: Sequence[Sequence[_Text]]) -> list[str]:
        if self._fits(columns, every):
            return self._side_by_side(columns, every)
        upper = [place for place, column in enumerate(columns) if not column.is_below]
        if len(upper) < len(columns):
            # As many names and figures as fit stay above; a long path is the last of them.
            moved: list[int] = []
            while upper and not self._fits(upper, _cells_at(upper, every)):
                moved.insert(0, upper.pop())
            if upper:
                return self._in_lines(columns, every, upper, moved)
        folded = self._folded(columns, every)
        return folded if _has_all(folded, columns, every) else self._stacked(every)

    def _fits(self, columns: Sequence[object], every: Sequence[Sequence[_Text]]) -> bool:
        return sum(_widths(every)) + len(_GAP) * (len(columns) - 1) <= self._width

    def _side_by_side(
        self, columns: Sequence[Column], every: Sequence[Sequence[_Text]]
    ) -> list[str]:
        widths = _widths(every)
        heading, *below = (self._row(columns, row, widths) for row in every)
        length = sum(widths) + len(_GAP) * (len(widths) - 1)
        return [heading, self._rule * length, *below]

    def _row(self, columns: Sequence[Column], cells: Sequence[_Text], widths: Sequence[int]) -> str:
        padded = []
        for column, (text, tone), wanted in zip(columns, cells, widths, strict=True):
            blanks = " " * (wanted - _columns_of(text))
            shown = self._painted(text, tone)
            padded.append(blanks + shown if column.is_figure else shown + blanks)
        return _GAP.join(padded)

    def _in_lines(
        self,
        columns: Sequence[Column],
        every: Sequence[Sequence[_Text]],
        upper: Sequence[int],
        moved: Sequence[int],
    ) -> list[str]:
        """A table with several lines a row: what is not above has a line for each cell."""
        above = [columns[place] for place in upper]
        heading, rule, *rows = self._side_by_side(above, _cells_at(upper, every))
        figures = [place for place in moved if columns[place].is_figure]
        names = [place for place in moved if place not in figures]
        rest = [place for place in range(len(columns)) if place not in {*upper, *moved}]
        below = [
            [line for cells in (one, *other) for line in self._wrapped(cells, _INDENT)]
            for one, other in zip(
                _cells_at(names, every), _named(figures, rest, every), strict=True
            )
        ]
        pairs = zip(rows, below[1:], strict=True)
        return [heading, *below[0], rule, *(line for row, more in pairs for line in (row, *more))]

    def _stacked(self, every: Sequence[Sequence[_Text]]) -> list[str]:
        """A table with each cell below the other, each with the name of its column."""
        heads, *rows = every
        lines = [] if rows else [*self._wrapped([_Text(", ".join(head.text for head in heads))])]
        for row in rows:
            lines.append(self._rule * self._width)
            for head, cell in zip(heads, row, strict=True):
                if cell.text:
                    named = f"{head.text}: {cell.text}" if head.text else cell.text
                    lines += self._wrapped([_Text(named, cell.tone)])
        return lines

    def _wrapped(self, cells: Sequence[_Text], indent: str = "") -> Iterator[str]:
        """The lines of some cells one after the other, broken at blanks where they must be."""
        from rich.text import Text  # noqa: PLC0415 (slow to load)

        text = Text.assemble(*_between([cell for cell in cells if cell.text]))
        if not text:
            return
        console = self._console()
        for line in text.divide(_breaks(text.plain, self._width - len(indent))):
            line.rstrip()
            with console.capture() as capture:
                console.print(line, end="", soft_wrap=True)
            yield f"{indent}{capture.get()}"

    def _folded(self, columns: Sequence[Column], every: Sequence[Sequence[_Text]]) -> list[str]:
        """A table whose cells rich folds until it fits."""
        from rich import box  # noqa: PLC0415 (slow to load)
        from rich.table import Table as Folded  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        heads, *rows = every
        folded = Folded(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="")
        for column, head in zip(columns, heads, strict=True):
            folded.add_column(
                Text(head.text),
                justify="right" if column.is_figure else "left",
                no_wrap=column.is_figure,
                overflow="fold",
            )
        for row in rows:
            folded.add_row(*(Text.assemble((text, _STYLES.get(tone, ""))) for text, tone in row))
        console = self._console()
        with console.capture() as capture:
            console.print(folded)
        # Where the rule is not "─", no cell can hold that letter.
        return capture.get().replace("─", self._rule).splitlines()

    def _console(self) -> Console:
        from rich.console import Console  # noqa: PLC0415 (slow to load)

        # A test's id or a function's name may look like markup or an emoji's name, and is neither.
        return Console(
            file=io.StringIO(),
            width=self._width,
            force_terminal=self._colour,
            color_system="standard" if self._colour else None,
            highlight=False,
            markup=False,
            emoji=False,
        )


def _columns_of(text: str) -> int:
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 (slow to load)

    return cell_len(text)


def _widths(every: Sequence[Sequence[_Text]]) -> list[int]:
    return [max(_columns_of(text) for text, _ in column) for column in zip(*every, strict=True)]


def _named(
    figures: Sequence[int], rest: Sequence[int], every: Sequence[Sequence[_Text]]
) -> Iterator[list[list[_Text]]]:
    """The lower lines of each row: the figures that moved there, with their names, and the rest."""
    heads, *rows = every
    yield [[heads[place]] for place in rest]
    for row in rows:
        shown = [
            _Text(f"{heads[place].text}: {row[place].text}", row[place].tone)
            for place in figures
            if row[place].text
        ]
        yield [shown, *([row[place]] for place in rest)]


def _cells_at(places: Sequence[int], every: Sequence[Sequence[_Text]]) -> list[list[_Text]]:
    """The cells of some columns, row by row."""
    return [[row[place] for place in places] for row in every]


def _between(cells: Sequence[_Text]) -> list[tuple[str, str]]:
    """Cells in rich's styles, with gaps between them."""
    styled = [(text, _STYLES.get(tone, "")) for text, tone in cells]
    return [piece for cell in styled for piece in ((_GAP, ""), cell)][1:]


def _breaks(text: str, room: int, room_below: int | None = None) -> Iterator[int]:
    """Where new lines begin, at words; rich would break or cut the longest word.

    Args:
        text: what is broken.
        room: how many columns a line may have.
        room_below: how many those after the first may have, if not as many.
    """
    taken = 0
    for word in re.finditer(r"\S+\s*", text):
        if taken and taken + _columns_of(word[0].rstrip()) > room:
            yield word.start()
            taken = 0
            room = room if room_below is None else room_below
        taken += _columns_of(word[0])


def _has_all(
    lines: Sequence[str], columns: Sequence[Column], every: Sequence[Sequence[_Text]]
) -> bool:
    """Whether the lines hold every word and every figure of a table unbroken."""
    folded = "\n".join(lines)
    wanted = {
        word
        for row in every
        for column, (text, _) in zip(columns, row, strict=True)
        for word in ([text] if column.is_figure else text.split())
    }
    return all(word in folded for word in wanted)
