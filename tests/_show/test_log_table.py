import io
import sys

import pytest
from msgspec.structs import replace

from jitcount._explain.caller import Caller
from jitcount._explain.causes.arrays import Dtype, Shape
from jitcount._explain.causes.functions import FirstCall
from jitcount._explain.compile import Compile
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import CallSite
from jitcount._record.log import CompileLog
from jitcount._show import log_table
from jitcount._show.parts import (
    Column,
    Count,
    Heading,
    Note,
    Seconds,
    Table,
    Tone,
    content_of,
    tone_of,
)
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
        "3 compiles and 1 disk hit took 134 ms; what is listed below would save 33.9 ms\n"
        "\n"
        "What to fix\n"
        "  1. sum at train.py:42 in main: 1 recompile, 33.9 ms [JC101]\n"
        "    axis 0 of x: 3 → 4\n"
        "    → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding\n"
        "\n"
        "function      arguments      compiles      time   call site             cause\n"
        "──────────────────────────────────────────────────────────────────────────────────────"
        "────\n"
        "sum           f32[3]                2   67.9 ms   train.py:42 in main   "
        "axis 0 of x: 3 → 4\n"
        "step (disk)   no arrays             1   33.9 ms   train.py:7 in main    "
        "first call of sum\n"
        "add (eager)   f32[], f32[]          1   32.7 ms   train.py:42 in main   "
        "first call of sum\n"
        "\n"
        "in all: trace 3.69 ms, lower 16.4 ms, XLA 114 ms"
    )


def test_compiling_is_a_share_of_what_the_program_took() -> None:
    heading, *_ = log_table.log_table([SUM], duration=0.1)
    assert heading == Heading("1 compile took 33.9 of 100 ms (34 %)")


def test_what_is_needed_is_faint_and_what_is_avoidable_stands_out() -> None:
    other = replace(STEP, from_disk=False)
    *_, table, _ = log_table.log_table([SUM, AGAIN, AGAIN, other])
    assert isinstance(table, Table)
    avoidable, needed = table.rows
    assert {tone_of(cell) for cell in needed} == {Tone.FAINT}
    assert [tone_of(cell) for cell in avoidable] == [Tone.PLAIN] * 5 + [Tone.AVOIDABLE]


def test_what_was_compiled_ahead_of_time_is_needed_and_says_so() -> None:
    meant = replace(AGAIN, ahead_of_time=True, call_site=CallSite("train.py:94 in main"))
    *_, table, _ = log_table.log_table([SUM, meant])
    assert isinstance(table, Table)
    _, row = table.rows
    assert {tone_of(cell) for cell in row} == {Tone.FAINT}
    assert content_of(row[0]) == "sum (ahead of time)"
    (note,) = log_table.one_compile(meant)[-2:-1]
    assert note == Note("axis 0 of x went from 3 to 4: float32[3] became float32[4]", 1, Tone.FAINT)


def test_in_a_narrow_terminal_the_cause_has_a_line_of_its_own_and_names_are_whole() -> None:
    path = "models/a_rather_long_name_of_a_file.py:1042 in Transformer.forward"
    long = replace(AGAIN, call_site=CallSite(path))
    shown = render(log_table.log_table([long]), 100).splitlines()
    assert shown[-9:-2] == [
        "function   compiles      time   call site",
        "  arguments",
        "  cause",
        "─" * (32 + len(path)),
        f"sum               1   33.9 ms   {path}",
        "  f32[4]",
        "  axis 0 of x: 3 → 4",
    ]


def test_a_log_is_made_of_parts_whose_figures_are_still_figures() -> None:
    heading, table, _ = log_table.log_table([SUM])
    assert isinstance(heading, Heading)
    assert isinstance(table, Table)
    assert table.columns[3] == Column("time", is_figure=True)
    assert content_of(table.rows[0][3]) == Seconds(SUM.total_s)


def test_one_compile_is_not_several() -> None:
    assert log_of(SUM).startswith("1 compile took 33.9 ms\n")


def test_first_calls_are_not_worth_fixing() -> None:
    assert "to fix" not in log_of(SUM, ADD)


def test_what_came_from_disk_is_not_worth_fixing() -> None:
    assert "to fix" not in log_of(replace(AGAIN, from_disk=True))


def test_a_narrow_terminal_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = replace(SUM, signature=("float32[128,1024]",) * 6)
    monkeypatch.setenv("COLUMNS", "80")
    shown = log_of(wide)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("f32[128,1024]") == 6
    assert "33.9 ms" in shown


def test_a_long_signature_is_cut_and_says_so() -> None:
    shown = log_of(replace(SUM, signature=("float32[3]",) * 500))
    assert "f32[3] and 495 more" in shown
    assert shown.count("f32[3]") == 5


def test_many_causes_are_cut_and_say_so() -> None:
    causes = tuple(Dtype(name, "float32", f"int{n}") for n, name in enumerate("abcdef"))
    shown = log_of(replace(AGAIN, causes=causes))
    assert "c: float32 → int2; and 3 more" in shown


def test_cheap_ones_are_summed_up() -> None:
    costly = [replace(SUM, function=f"f{number}") for number in range(8)]
    cheap = [
        replace(SUM, function=f"cheap{number}", compile_s=0.0, lower_s=0.0001)
        for number in range(2)
    ]
    *_, table, _ = log_table.log_table([*costly[:4], *cheap, *costly[4:]])
    assert isinstance(table, Table)
    assert [content_of(row[0]) for row in table.rows] == [f"f{number}" for number in range(8)]
    assert table.left_out == "… and 2 compiles that took 2.66 ms together"


def test_the_whole_log_leaves_out_the_cheapest_and_says_so() -> None:
    lines = [replace(SUM, function=f"f{number}") for number in range(log_table._MOST_ROWS)]
    cheap = [replace(SUM, function=f"cheap{number}", compile_s=0.001) for number in range(2)]
    *_, table, _ = log_table.log_table([*lines[:30], *cheap, *lines[30:]], whole=True)
    assert isinstance(table, Table)
    assert [content_of(row[0]) for row in table.rows] == [line.function for line in lines]
    assert table.left_out == "… and 2 cheaper ones, 12.7 ms together"


def test_all_compiles_of_one_function_at_one_line_are_one_row() -> None:
    *_, table, _ = log_table.log_table([SUM, *[AGAIN] * 3])
    assert isinstance(table, Table)
    ((name, _, count, *_, cause),) = table.rows
    assert (content_of(name), content_of(count)) == ("sum", Count(4))
    assert content_of(cause) == "axis 0 of x: 3, 4"


def test_operations_outside_of_jit_are_one_row_for_a_line() -> None:
    text = log_of(ADD, replace(ADD, function="mul"), ADD, SUM).splitlines()
    assert text[4].startswith("sum ")
    assert text[5].startswith("operations (eager) ")
    assert text[5].endswith("add ×2, mul")


def test_operations_of_one_call_that_can_be_jitted_are_one_row_with_its_name() -> None:
    site = CallSite("train.py:35 in main", "train.py", 35, "main")
    init = Caller(site=site, calls="model.init", jitted="jax.jit(model.init)(...)")
    lines = [CallSite(f"model.py:{n} in net", "model.py", n, "net") for n in range(6)]
    compiles = [
        replace(ADD, function=name, call_site=line, callers=(init, Caller(site=line)))
        for name, line in zip("abcdef", lines, strict=True)
    ]
    *_, table, _ = log_table.log_table(compiles)
    assert isinstance(table, Table)
    ((name, _, count, _, where, what),) = [tuple(map(content_of, row)) for row in table.rows]
    assert (name, count, where) == ("model.init (eager)", Count(6), site)
    assert what == "a, b, c, d, e, f"
    *_, table, _ = log_table.log_table([replace(c, function="add") for c in compiles])
    assert isinstance(table, Table)
    ((name, _, _, _, where, what),) = [tuple(map(content_of, row)) for row in table.rows]
    assert (name, where, what) == ("model.init (eager)", site, "add ×6")


def test_the_whole_log_has_a_row_for_each_compile_in_order() -> None:
    parts = log_table.log_table([ADD, AGAIN, AGAIN], whole=True)
    rows = render(parts).splitlines()[-5:-2]
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
