"""Tables in the house style: set by hand where they fit, folded by rich where they do not.

Most fit, and rich takes a tenth of a second to load and a millisecond for each row.
"""

from __future__ import annotations

import io
import unicodedata
from dataclasses import dataclass, field

_GAP = "   "


@dataclass
class Table:
    """Columns with a heading; those named in `right` hold figures.

    >>> table = Table(("name", "count"), right=("count",))
    >>> table.add_row("step", "12")
    >>> print(*table.lines(80), sep=chr(10))
    name   count
    ────────────
    step      12
    """

    columns: tuple[str, ...]
    right: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        """Add a row, with a cell for each column."""
        self.rows.append(cells)

    def lines(self, columns: int) -> list[str]:
        """The table for a terminal of so many columns."""
        every = [self.columns, *self.rows]
        widths = [max(map(_width, column)) for column in zip(*every, strict=True)]
        total = sum(widths) + len(_GAP) * (len(widths) - 1)
        if total > columns or any("\n" in cell for row in every for cell in row):
            return self._folded(columns)
        heading, *rows = (self._line(row, widths) for row in every)
        return [heading, "─" * total, *rows]

    def _line(self, cells: tuple[str, ...], widths: list[int]) -> str:
        padded = []
        for name, cell, width in zip(self.columns, cells, widths, strict=True):
            blanks = " " * (width - _width(cell))
            padded.append(blanks + cell if name in self.right else cell + blanks)
        return _GAP.join(padded)

    def _folded(self, columns: int) -> list[str]:
        from rich import box  # noqa: PLC0415 (slow to load)
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table as Folded  # noqa: PLC0415

        folded = Folded(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name in self.columns:
            if name in self.right:
                folded.add_column(name, justify="right", no_wrap=True)
            else:
                folded.add_column(name, overflow="fold")
        for row in self.rows:
            folded.add_row(*row)
        # A test's id or a function's name may look like markup: nothing is.
        console = Console(
            file=io.StringIO(), width=columns, color_system=None, highlight=False, markup=False
        )
        with console.capture() as capture:
            console.print(folded)
        return capture.get().splitlines()


def _width(text: str) -> int:
    """Columns that a text takes: characters of East Asia take two."""
    if text.isascii():
        return len(text)
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)
