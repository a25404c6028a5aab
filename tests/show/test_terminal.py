"""Parts as text: where blank lines stand, and what a table looks like that fits, or does not."""

import pytest

from jitcount.show.parts import (
    Bytes,
    Cell,
    Count,
    Heading,
    Note,
    Part,
    Ratio,
    Seconds,
    Share,
    Table,
    Ulps,
    figures,
    words,
)
from jitcount.show.terminal import render
from jitcount.show.text import cell_text
from tests.helpers import python

TABLE = Table(words("name") + figures("time"), [("step", Seconds(0.25)), ("f", Seconds(None))])
SHOWN = "name     time\n─────────────\nstep   250 ms\nf"


def test_a_table_has_blank_lines_around_it_and_a_heading_one_above() -> None:
    parts: list[Part] = [
        Heading("A"),
        Note("a"),
        TABLE,
        Note("b"),
        Note("c"),
        Heading("B"),
        TABLE,
        TABLE,
    ]
    assert render(parts, 80) == f"A\na\n\n{SHOWN}\n\nb\nc\n\nB\n\n{SHOWN}\n\n{SHOWN}"


def test_dense_text_has_no_blank_lines() -> None:
    parts: list[Part] = [Heading("A"), TABLE, Note("b"), Heading("B")]
    assert render(parts, 80, dense=True) == f"A\n{SHOWN}\nb\nB"


def test_what_is_left_out_of_a_table_stands_right_below_it() -> None:
    table = Table(TABLE.columns, TABLE.rows, left_out="… and 2 more")
    assert render([table, Note("b")], 80) == f"{SHOWN}\n… and 2 more\n\nb"


def test_what_is_deeper_is_indented() -> None:
    parts = [Note("a"), Note("b", depth=1), Note("c", depth=2), Note("", depth=1), Note("")]
    assert render(parts, 80) == "a\n  b\n    c\n\n"


def test_of_nothing_there_is_no_text() -> None:
    assert render([], 80) == ""


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("[bold]", "[bold]"),
        (Seconds(0.0451), "45.1 ms"),
        (Seconds(0.0), "0"),
        (Seconds(None), ""),
        (Bytes(36864), "36 KiB"),
        (Bytes(None), ""),
        (Ratio(1.357), "1.36×"),
        (Ratio(1.357, digits=1), "1.4×"),
        (Ratio(None), ""),
        (Count(1000), "1000"),
        (Ulps(9999), "9,999"),
        (Ulps(10_000), "far"),
        (Share(0.25), "0.25"),
        (Share(0.0), "0 almost nothing"),
        (Share(40.0), "40 times"),
        (Share(float("inf")), "beyond"),
        (Share(None), "exact"),
        (("≈", Ulps(3), Ratio(1.0, digits=1)), "≈ 3 1.0×"),
        (("=",), "="),
    ],
)
def test_each_kind_of_cell_has_its_words(cell: Cell, text: str) -> None:
    assert cell_text(cell) == text


def test_words_are_folded_where_a_table_does_not_fit_and_figures_are_not() -> None:
    table = Table(words("name") + figures("time"), [("abcdefghij", Seconds(0.25))])
    assert render([table], 13) == "name     time\n─────────────\nabcd   250 ms\nefgh\nij"


WHETHER_RICH_IS_LOADED = """
import sys
from jitcount.show.parts import Table, words
from jitcount.show.terminal import render
render([Table(words("name"), [("abcdefghij",)])], columns={})
print("rich" in sys.modules)
"""


@pytest.mark.parametrize(("columns", "is_loaded"), [(10, "False\n"), (9, "True\n")])
def test_only_a_table_that_does_not_fit_loads_rich(columns: int, is_loaded: str) -> None:
    code = WHETHER_RICH_IS_LOADED.format(columns)
    assert python("-c", code).stdout == is_loaded
