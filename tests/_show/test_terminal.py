"""Parts as text: where blank lines stand, and what a table looks like that fits, or does not."""

import io
import random
import re
import sys
import unicodedata
from typing import TextIO

import pytest

from jitcount._show.parts import (
    Bytes,
    Cell,
    Count,
    Heading,
    Note,
    Part,
    Ratio,
    Row,
    Seconds,
    Share,
    Table,
    Tone,
    Toned,
    Ulps,
    figures,
    long_words,
    optional_words,
    words,
)
from jitcount._show.terminal import has_colour, render
from jitcount._show.text import cell_text
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


def test_notes_and_headings_are_broken_at_blanks_where_they_are_too_long() -> None:
    parts: list[Part] = [
        Heading("41 compiles took 5.53 of 7.7 s"),
        Note("1. train_step at a/path.py:42 in main: 4 recompiles", depth=1),
        Note("→ pad axis 0 of x, y to one length", depth=2),
    ]
    assert render(parts, 26) == (
        "41 compiles took 5.53 of\n"
        "  7.7 s\n"
        "  1. train_step at\n"
        "    a/path.py:42 in main:\n"
        "    4 recompiles\n"
        "    → pad axis 0 of x, y\n"
        "      to one length"
    )
    assert render(parts, 80).count("\n") == 2


def test_a_command_is_one_line_where_it_is_too_long_too() -> None:
    command = "pip install jax jaxlib"
    assert render([Note(command, depth=1, is_whole=True)], 10) == f"  {command}"


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
    table = Table(words("name") + figures("time"), [("abcd efgh ij", Seconds(0.25))])
    assert render([table], 13) == "name     time\n─────────────\nabcd   250 ms\nefgh\nij"


LONG = Table(
    words("name") + long_words("from") + figures("time") + long_words("why"),
    [("step", "a/path.py:3", Seconds(0.25), "it is so"), ("f", "", Seconds(1), "another reason")],
)


def test_what_need_not_stand_beside_the_rest_has_its_own_line_where_a_table_is_too_wide() -> None:
    assert render([LONG], 80).splitlines()[0] == "name   from            time   why"
    assert render([LONG], 30).splitlines() == [
        "name     time",
        "  from",
        "  why",
        "─────────────",
        "step   250 ms",
        "  a/path.py:3",
        "  it is so",
        "f         1 s",
        "  another reason",
    ]


def test_optional_columns_are_left_out_the_last_first_and_named_where_a_table_is_too_wide() -> None:
    columns = words("name") + optional_words("kind") + figures("time") + optional_words("why")
    table = Table(columns, [("step", "exact", Seconds(0.25), "it is so")])
    assert render([table], 80).splitlines()[0] == "name   kind      time   why"
    assert render([table], 25).splitlines() == [
        "name   kind      time",
        "─────────────────────",
        "step   exact   250 ms",
        "why: in a wider terminal, or piped to a file",
    ]
    assert render([table], 15).splitlines() == [
        "name     time",
        "─────────────",
        "step   250 ms",
        "kind, why: in a wider terminal, or piped to a file",
    ]


def test_a_long_path_has_a_line_of_its_own_before_that() -> None:
    columns = words("name") + figures("time") + words("where") + long_words("why")
    path = "a/rather/long/path.py:42 in main"
    table = Table(columns, [("step", Seconds(0.25), path, "it is so")])
    assert render([table], 34).splitlines() == [
        "name     time",
        "  where",
        "  why",
        "─────────────",
        "step   250 ms",
        f"  {path}",
        "  it is so",
    ]


def test_a_figure_that_has_no_room_stands_below_with_its_name() -> None:
    columns = words("line") + long_words("calls") + figures("time", "operations")
    rows: list[Row] = [
        ("model.py:8", "softmax", Seconds(0.25), Count(270)),
        ("f", "", Seconds(None), ""),
    ]
    assert render([Table(columns, rows)], 20).splitlines() == [
        "line           time",
        "  calls",
        "───────────────────",
        "model.py:8   250 ms",
        "  operations: 270",
        "  softmax",
        "f",
    ]


def test_that_line_is_broken_at_blanks_and_never_in_a_word() -> None:
    assert render([LONG], 13).splitlines()[4:] == [
        "step   250 ms",
        "  a/path.py:3",
        "  it is so",
        "f         1 s",
        "  another",
        "  reason",
    ]


WHETHER_RICH_IS_LOADED = """
import sys
from jitcount._show.parts import Table, words
from jitcount._show.terminal import render
render([Table(words("name"), [("abcdefghij",)])], columns={})
print("rich.console" in sys.modules)
"""


@pytest.mark.parametrize(("columns", "is_loaded"), [(10, "False\n"), (9, "True\n")])
def test_only_a_table_that_does_not_fit_loads_all_of_rich(columns: int, is_loaded: str) -> None:
    code = WHETHER_RICH_IS_LOADED.format(columns)
    assert python("-c", code).stdout == is_loaded


# --- Any width, any stream ------------------------------------------------------------------------

TEXTS = (
    "step",
    "",
    "axis 0 of x went from 3 to 5: float32[3] became float32[5]",
    "/a/very/long/path/without/any/blank/" * 4,
    "größe 大きさ e\u0301 → × … – ≈ ✗",
    "\x1b[2J\x07\r\nFORGED\tline\u2028\u202e\ud800",
    "[red]not markup[/] [/] [link=x] :smile: \\[",
)
FIGURES = (Seconds(0.0000451), Seconds(None), Bytes(36864), Ratio(1.357), Count(10**9), Share(None))
ENCODINGS = ("utf-8", "ascii", "cp1252", "latin-1", "cp437", None)


def stream_of(encoding: str | None) -> TextIO:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding) if encoding else io.StringIO()


def columns_of(line: str) -> int:
    wide = (1 + (unicodedata.east_asian_width(c) in "WF") for c in line if not is_mark(c))
    return sum(wide)


def is_mark(character: str) -> bool:
    return unicodedata.category(character) == "Mn"


def a_table(chance: random.Random) -> Table:
    names = [chance.choice(TEXTS) for _ in range(chance.randint(1, 7))]
    are_figures = [chance.random() < 0.4 for _ in names]
    columns = [
        c for n, f in zip(names, are_figures, strict=True) for c in (figures if f else words)(n)
    ]
    rows = [
        tuple(chance.choice(FIGURES if is_figure else TEXTS) for is_figure in are_figures)
        for _ in range(chance.randint(0, 3))
    ]
    return Table(columns, rows, left_out=chance.choice(TEXTS))


def test_tables_of_every_width_fit_and_every_stream_can_take_them() -> None:
    chance = random.Random(12)  # noqa: S311
    for width in (*range(10, 100), *range(10, 100), *range(100, 401, 20), 1, 2, 9):
        table, encoding = a_table(chance), chance.choice(ENCODINGS)
        notes: list[Part] = [Heading(chance.choice(TEXTS)), Note(chance.choice(TEXTS), depth=1)]
        shown = render([table], width, stream=stream_of(encoding))
        below = [] if not table.left_out else shown.splitlines()[-1:]
        lines = shown.split("\n")[: -1 if below else None]
        for line in lines:
            assert columns_of(line) <= max(width, 2) or " " not in line.strip(), (width, shown)
        above = render(notes, width, stream=stream_of(encoding)).split("\n")
        for line in above:
            assert columns_of(line) <= max(width, 2) or " " not in line.strip(), (width, above)
        whole = render([*notes, table], width, stream=stream_of(encoding))
        whole.encode(encoding or "utf-8")
        assert all(line.isprintable() or "\u00a0" in line for line in whole.split("\n"))
        assert len(whole.split("\n")) == len(lines) + len(below) + len(above) + 1


def test_what_looks_like_markup_or_an_emoji_is_neither_where_a_table_is_folded() -> None:
    table = Table(words("name", "[b]"), [("[red]x[/] :smile:", "a" * 30)])
    shown = render([table], 40)
    assert "[red]x[/]" in shown
    assert ":smile:" in shown
    assert "[b]" in shown


def test_where_there_is_no_room_for_columns_cells_stand_one_below_the_other() -> None:
    table = Table(words("name", "place") + figures("time"), [("step", "a.py:3", Seconds(0.25))])
    assert render([table], 12).splitlines() == [
        "────────────",
        "name: step",
        "place:",
        "a.py:3",
        "time: 250 ms",
    ]


def test_without_box_drawing_a_rule_is_made_of_hyphens() -> None:
    shown = SHOWN.replace("─", "-")
    assert render([TABLE], 80, stream=stream_of("cp1252")) == shown
    folded = Table(words("name") + figures("time"), [("abcd efgh ij", Seconds(0.25))])
    lines = render([folded], 13, stream=stream_of("ascii")).splitlines()
    assert lines == ["name     time", "-------------", "abcd   250 ms", "efgh", "ij"]


@pytest.mark.parametrize("columns", ["²", "-3", "0", "", "9" * 5000, "ten", " 80"])
def test_columns_that_are_no_number_are_none(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert render([TABLE]) == SHOWN


def test_without_a_stream_or_with_a_closed_one_text_is_as_long_as_it_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    closed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    closed.close()
    for stream in (None, closed, io.StringIO()):
        monkeypatch.setattr(sys, "stdout", stream)
        assert render([TABLE]) == SHOWN


# --- Colour ---------------------------------------------------------------------------------------

COLOURED = Table(
    words("name", "why") + figures("time"),
    [
        (Toned("a", Tone.FAINT), Toned("b c", Tone.DIFFERENT), Toned(Seconds(1), Tone.STRONG)),
        ("d", "", Seconds(2)),
    ],
)


def test_tones_are_codes_of_the_terminal_around_the_text_alone() -> None:
    parts: list[Part] = [Heading("A"), Note("b", depth=1, tone=Tone.DIFFERENT), COLOURED]
    assert render(parts, 80, colour=True).splitlines() == [
        "\x1b[1mA\x1b[0m",
        "  \x1b[31mb\x1b[0m",
        "",
        "name   why   time",
        "─────────────────",
        "\x1b[2ma\x1b[0m      \x1b[31mb c\x1b[0m    \x1b[1m1 s\x1b[0m",
        "d             2 s",
    ]


@pytest.mark.parametrize("columns", [80, 16, 8])
def test_without_its_codes_a_coloured_text_is_the_plain_one(columns: int) -> None:
    parts: list[Part] = [Heading("A"), Note("b", tone=Tone.FAINT), COLOURED, LONG]
    coloured = render(parts, columns, colour=True)
    assert "\x1b[31m" in coloured
    lines = [line.rstrip() for line in re.sub(r"\x1b\[\d+m", "", coloured).split("\n")]
    assert "\n".join(lines) == render(parts, columns)


def test_plain_text_has_no_codes_whatever_the_environment_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b" not in "".join(render([COLOURED], columns) for columns in (80, 16, 8))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "on_a_terminal", "in_a_pipe"),
    [
        ({}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colour_is_where_the_terminal_has_it_and_where_it_is_wanted(
    environment: dict[str, str],
    on_a_terminal: bool,  # noqa: FBT001
    in_a_pipe: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert has_colour(Terminal()) is on_a_terminal
    assert has_colour(io.StringIO()) is in_a_pipe
