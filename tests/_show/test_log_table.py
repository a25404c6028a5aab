import io
import sys

import pytest
from msgspec.structs import replace

from jitcount._explain.causes.arrays import Dtype, Shape
from jitcount._explain.causes.functions import FirstCall
from jitcount._explain.compile import Compile
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import CallSite
from jitcount._record.log import CompileLog
from jitcount._show import log_table
from jitcount._show.parts import Column, Heading, Seconds, Table, Tone, content_of, tone_of
from jitcount._show.terminal import render
from tests.helpers import STEP_COMPILED

FIRST = FirstCall("sum")
LONGER = Shape("x", ArrayType("float32", (3,)), ArrayType("float32", (4,)))
SUM = replace(
    STEP_COMPILED,
    function="sum",
    trace_s=0.00123,
    lower_s=0.0041,
    compile_s=0.0286,
    causes=(FIRST,),
)
ADD = replace(SUM, function="add", signature=("float32[]", "float32[]"), eager=True, trace_s=0.0)
AGAIN = replace(SUM, signature=("float32[4]",), causes=(LONGER,))
STEP = replace(
    SUM, function="step", signature=(), from_disk=True, call_site=CallSite("train.py:7 in main")
)


def log_of(*compiles: Compile) -> str:
    return render(log_table.log_table(compiles))


@pytest.fixture(autouse=True)
def a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def test_an_empty_log_says_so() -> None:
    assert log_of() == "nothing was compiled"


def test_a_log_is_printed_as_a_table() -> None:
    assert log_of(SUM, ADD, AGAIN, STEP) == (
        "3 compiles and 1 disk hit in 134 ms (trace 3.69 ms, lower 16.4 ms, compile 114 ms)\n"
        "\n"
        "Worth fixing first\n"
        "  sum at train.py:42 in main: 1 recompile, 33.9 ms\n"
        "    axis 0 of x: 3 → 4\n"
        "    → pad axis 0 of x to one length, or to a few (buckets)\n"
        "\n"
        "function      signature                 time   call site             cause\n"
        "───────────────────────────────────────────────────────────────────────────────"
        "────────\n"
        "sum           float32[3]             33.9 ms   train.py:42 in main   first call of sum\n"
        "sum           float32[4]             33.9 ms   train.py:42 in main   "
        "axis 0 of x: 3 → 4\n"
        "step (disk)   no arrays              33.9 ms   train.py:7 in main    first call of sum\n"
        "add (eager)   float32[], float32[]   32.7 ms   train.py:42 in main   first call of sum"
    )


def test_first_calls_are_faint_and_what_changed_stands_out() -> None:
    _, *_, table = log_table.log_table([SUM, AGAIN, AGAIN])
    assert isinstance(table, Table)
    first, again = table.rows
    assert {tone_of(cell) for cell in first} == {Tone.FAINT}
    assert [tone_of(cell) for cell in again] == [Tone.PLAIN] * 4 + [Tone.DIFFERENT]


def test_below_a_hundred_columns_a_compile_has_two_lines_and_names_are_whole() -> None:
    path = "models/a_rather_long_name_of_a_file.py:1042 in Transformer.forward"
    long = replace(AGAIN, call_site=CallSite(path))
    shown = render(log_table.log_table([long]), 90).splitlines()
    assert shown[-5:] == [
        "function      time   call site",
        "  signature   cause",
        "─" * (21 + len(path)),
        f"sum        33.9 ms   {path}",
        "  float32[4]   axis 0 of x: 3 → 4",
    ]


def test_a_log_is_made_of_parts_whose_figures_are_still_figures() -> None:
    heading, table = log_table.log_table([SUM])
    assert isinstance(heading, Heading)
    assert isinstance(table, Table)
    assert table.columns[2] == Column("time", is_figure=True)
    assert content_of(table.rows[0][2]) == Seconds(SUM.total_s)


def test_one_compile_is_not_several() -> None:
    assert log_of(SUM).startswith("1 compile in 33.9 ms (")


def test_first_calls_are_not_worth_fixing() -> None:
    assert "Worth fixing" not in log_of(SUM, ADD)


def test_what_came_from_disk_is_not_worth_fixing() -> None:
    assert "Worth fixing" not in log_of(replace(AGAIN, from_disk=True))


def test_a_narrow_terminal_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = replace(SUM, signature=("float32[128,1024]",) * 6)
    monkeypatch.setenv("COLUMNS", "80")
    shown = log_of(wide)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("float32[128,1024]") == 6
    assert "33.9 ms" in shown


def test_a_long_signature_is_cut_and_says_so() -> None:
    shown = log_of(replace(SUM, signature=("float32[3]",) * 500))
    assert "float32[3] and 495 more" in shown
    assert shown.count("float32[3]") == 5


def test_many_causes_are_cut_and_say_so() -> None:
    causes = tuple(Dtype(name, "float32", f"int{n}") for n, name in enumerate("abcdef"))
    shown = log_of(replace(AGAIN, causes=causes))
    assert "c: float32 → int2; and 3 more" in shown


def test_a_long_log_leaves_out_the_cheapest_and_says_so() -> None:
    lines = [replace(SUM, function=f"f{number}") for number in range(log_table._MOST_ROWS)]
    cheap = [replace(SUM, function=f"cheap{number}", compile_s=0.001) for number in range(2)]
    shown = log_of(*lines[:30], *cheap, *lines[30:])
    assert "cheap0" not in shown
    assert shown.endswith("\n… and 2 cheaper ones, 12.7 ms together")
    assert shown.startswith("52 compiles in ")


def test_recompiles_of_one_function_at_one_line_are_one_row() -> None:
    first, again = log_of(SUM, *[AGAIN] * 3).splitlines()[-2:]
    assert first.startswith("sum  ")
    assert again.startswith("sum ×3  ")
    assert again.endswith("axis 0 of x: 3, 4")


def test_operations_outside_of_jit_are_one_row_for_a_line_and_come_last() -> None:
    text = log_of(ADD, replace(ADD, function="mul"), ADD, SUM).splitlines()
    assert text[4].startswith("sum ")
    assert text[5].startswith("3 operations (eager) ")
    assert text[5].endswith("add ×2, mul")


def test_the_whole_log_has_a_row_for_each_compile_in_order() -> None:
    parts = log_table.log_table([ADD, AGAIN, AGAIN], whole=True)
    rows = render(parts).splitlines()[-3:]
    assert [row.split()[0] for row in rows] == ["add", "sum", "sum"]


def test_brackets_are_not_taken_for_markup() -> None:
    tagged = replace(SUM, function="[bold]f[/bold]", signature=("key<fry>[]",))
    assert "[bold]f[/bold]" in log_of(tagged)
    assert "key<fry>[]" in log_of(tagged)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "utf-8", None])
@pytest.mark.parametrize("columns", ["10", "80", "400"])
def test_a_log_can_be_printed_anywhere(
    monkeypatch: pytest.MonkeyPatch, encoding: str | None, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = "größe → 大\x1b[31m\n"
    hostile = replace(AGAIN, function=text, call_site=CallSite(text), signature=(text,))
    log = CompileLog()
    log._written = dict(enumerate((SUM, hostile, ADD)))
    log._seen = [None] * 3  # type: ignore[list-item]
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding) if encoding else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    print(log, flush=True)  # noqa: T201
    stream.seek(0)
    shown = stream.read()
    assert "\x1b" not in shown
    assert ("─" in shown) is (encoding in {"utf-8", None})
    assert ("->" in shown) is (encoding not in {"utf-8", None})
