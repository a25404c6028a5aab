"""Parts in lines of text: a table side by side, in two lines for a row, folded, or stacked.

Tables are set here where they fit, and rich folds what does not: most fit, and all of rich takes a
tenth of a second to load and a millisecond for each row. Lines are broken at blanks only: a path or
a name that is longer than the terminal stays whole, and can be clicked and copied.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, NamedTuple

from jitcount._show.parts import Column, Heading, Part, Table, Tone, tone_of
from jitcount._show.text import cell_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

_GAP = "   "
_INDENT = "  "

# As rich names them, and as terminals do.
_STYLES = {Tone.STRONG: "bold", Tone.FAINT: "dim", Tone.DIFFERENT: "red"}
_CODES = {Tone.STRONG: "\x1b[1m", Tone.FAINT: "\x1b[2m", Tone.DIFFERENT: "\x1b[31m"}
_END = "\x1b[0m"


class _Text(NamedTuple):
    """A cell as it is read."""

    text: str
    tone: Tone = Tone.PLAIN


class Page:
    """What is written on: so wide, in these letters, in colour or not."""

    def __init__(self, most: int, spell: Callable[[str], str], colour: bool) -> None:  # noqa: FBT001
        self._most = most
        self._spell = spell
        self._colour = colour
        self._rule = spell("─")

    def lines(self, part: Part) -> list[str]:
        """A part in lines."""
        if isinstance(part, Table):
            below = [self._spell(part.left_out)] if part.left_out else []
            return [*self._table(part), *below]
        depth = 0 if isinstance(part, Heading) else part.depth
        return [f"{_INDENT * depth}{self._painted(self._spell(part.text), part.tone)}"]

    def _painted(self, text: str, tone: Tone) -> str:
        if not (self._colour and text and tone in _CODES):
            return text
        return f"{_CODES[tone]}{text}{_END}"

    def _table(self, table: Table) -> list[str]:
        heads = [_Text(self._spell(column.name)) for column in table.columns]
        rows = [[_Text(self._spell(cell_text(c)), tone_of(c)) for c in row] for row in table.rows]
        every = [heads, *rows]
        columns = table.columns
        if self._fits(columns, every):
            return self._side_by_side(columns, every)
        upper = [place for place, column in enumerate(columns) if not column.is_below]
        if len(upper) < len(columns):
            # Of names and figures, as many as there is room for; a long path is the last of them.
            moved: list[int] = []
            while upper and not self._fits(upper, _cells_at(upper, every)):
                moved.insert(0, upper.pop())
            if upper:
                return self._in_lines(columns, every, upper, moved)
        folded = self._folded(columns, every)
        return folded if _has_all(folded, columns, every) else self._stacked(every)

    def _fits(self, columns: Sequence[object], every: Sequence[Sequence[_Text]]) -> bool:
        return sum(_widths(every)) + len(_GAP) * (len(columns) - 1) <= self._most

    # --- Ways to set a table ----------------------------------------------------------------------

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
        """Two lines for a row: the rest of it stands below, in more where that does not fit."""
        above = [columns[place] for place in upper]
        heading, rule, *rows = self._side_by_side(above, _cells_at(upper, every))
        figures = [place for place in moved if columns[place].is_figure]
        names = [place for place in moved if place not in figures]
        rest = [place for place in range(len(columns)) if place not in {*upper, *moved}]
        below = [
            [line for cells in (one, other) for line in self._wrapped(cells, _INDENT)]
            for one, other in zip(
                _cells_at(names, every), _named(figures, rest, every), strict=True
            )
        ]
        pairs = zip(rows, below[1:], strict=True)
        return [heading, *below[0], rule, *(line for row, more in pairs for line in (row, *more))]

    def _stacked(self, every: Sequence[Sequence[_Text]]) -> list[str]:
        """Where there is no room for columns side by side: one cell below the other."""
        heads, *rows = every
        lines = [] if rows else [*self._wrapped([_Text(", ".join(head.text for head in heads))])]
        for row in rows:
            lines.append(self._rule * self._most)
            for head, cell in zip(heads, row, strict=True):
                if cell.text:
                    named = f"{head.text}: {cell.text}" if head.text else cell.text
                    lines += self._wrapped([_Text(named, cell.tone)])
        return lines

    # --- What rich does ---------------------------------------------------------------------------

    def _wrapped(self, cells: Sequence[_Text], indent: str = "") -> Iterator[str]:
        """Cells one after the other, broken at blanks where they must be."""
        from rich.text import Text  # noqa: PLC0415 (slow to load)

        text = Text.assemble(*_between([cell for cell in cells if cell.text]))
        if not text:
            return
        console = self._console()
        for line in text.divide(_breaks(text.plain, self._most - len(indent))):
            line.rstrip()
            with console.capture() as capture:
                console.print(line, end="", soft_wrap=True)
            yield f"{indent}{capture.get()}"

    def _folded(self, columns: Sequence[Column], every: Sequence[Sequence[_Text]]) -> list[str]:
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
        # Where it is replaced, no cell has one.
        return capture.get().replace("─", self._rule).splitlines()

    def _console(self) -> Console:
        from rich.console import Console  # noqa: PLC0415 (slow to load)

        # A test's id or a function's name may look like markup, or like the name of an emoji: none
        # is.
        return Console(
            file=io.StringIO(),
            width=self._most,
            force_terminal=self._colour,
            color_system="standard" if self._colour else None,
            highlight=False,
            markup=False,
            emoji=False,
        )


def _columns_of(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 (a hundredth of rich, and still not for nothing)

    return cell_len(text)


def _widths(every: Sequence[Sequence[_Text]]) -> list[int]:
    return [max(_columns_of(text) for text, _ in column) for column in zip(*every, strict=True)]


def _named(
    figures: Sequence[int], rest: Sequence[int], every: Sequence[Sequence[_Text]]
) -> Iterator[list[_Text]]:
    """Figures that stand below no heading, each with its name, and what stands there anyway."""
    heads, *rows = every
    yield [heads[place] for place in rest]
    for row in rows:
        shown = [
            _Text(f"{heads[place].text}: {row[place].text}", row[place].tone)
            for place in figures
            if row[place].text
        ]
        yield [*shown, *(row[place] for place in rest)]


def _cells_at(places: Sequence[int], every: Sequence[Sequence[_Text]]) -> list[list[_Text]]:
    """Of each row, the cells of some columns."""
    return [[row[place] for place in places] for row in every]


def _between(cells: Sequence[_Text]) -> list[tuple[str, str]]:
    """Cells with gaps between them, in rich's styles."""
    styled = [(text, _STYLES.get(tone, "")) for text, tone in cells]
    return [piece for cell in styled for piece in ((_GAP, ""), cell)][1:]


def _breaks(text: str, room: int) -> Iterator[int]:
    """Where the words begin that are the first of a line; rich would break or cut the longest."""
    taken = 0
    for word in re.finditer(r"\S+\s*", text):
        if taken and taken + _columns_of(word[0].rstrip()) > room:
            yield word.start()
            taken = 0
        taken += _columns_of(word[0])


def _has_all(
    lines: Sequence[str], columns: Sequence[Column], every: Sequence[Sequence[_Text]]
) -> bool:
    """Whether no word and no figure was broken."""
    folded = "\n".join(lines)
    wanted = {
        word
        for row in every
        for column, (text, _) in zip(columns, row, strict=True)
        for word in ([text] if column.is_figure else text.split())
    }
    return all(word in folded for word in wanted)
