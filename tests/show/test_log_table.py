import dataclasses

import pytest

from jitcount.observe.compile import Compile
from jitcount.observe.log import CompileLog
from jitcount.show import log_table

SUM = Compile(
    function="sum",
    signature=("float32[3]",),
    platform="cpu",
    call_site="train.py:42 in main",
    eager=False,
    from_disk=False,
    trace_s=0.00123,
    lower_s=0.0041,
    compile_s=0.0286,
)
ADD = dataclasses.replace(
    SUM, function="add", signature=("float32[]", "float32[]"), eager=True, trace_s=0.0
)
STEP = dataclasses.replace(
    SUM, function="step", signature=(), from_disk=True, call_site="train.py:7 in main"
)


def log_of(*compiles: Compile) -> CompileLog:
    log = CompileLog()
    for compiled in compiles:
        log.add(compiled)
    return log


@pytest.fixture(autouse=True)
def a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def test_an_empty_log_says_so() -> None:
    assert str(log_of()) == "nothing was compiled"


def test_a_log_is_printed_as_a_table() -> None:
    assert str(log_of(SUM, ADD, STEP)) == (
        "2 compiles and 1 disk hit in 101 ms (trace 2.46 ms, lower 12.3 ms, compile 85.8 ms)\n"
        "\n"
        "function      signature                trace    lower   compile   call site\n"
        "─────────────────────────────────────────────────────────────────────────────────────\n"
        "sum           float32[3]             1.23 ms   4.1 ms   28.6 ms   train.py:42 in main\n"
        "add (eager)   float32[], float32[]         0   4.1 ms   28.6 ms   train.py:42 in main\n"
        "step (disk)   no arrays              1.23 ms   4.1 ms   28.6 ms   train.py:7 in main"
    )


def test_one_compile_is_not_several() -> None:
    assert str(log_of(SUM)).startswith("1 compile in 33.9 ms (")


def test_a_narrow_terminal_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = dataclasses.replace(SUM, signature=("float32[128,1024]",) * 6)
    monkeypatch.setenv("COLUMNS", "80")
    shown = str(log_of(wide))
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("float32") + shown.count("[128,1024]") >= 6
    assert "28.6 ms" in shown


def test_a_long_log_leaves_out_the_cheapest_and_says_so() -> None:
    cheap = dataclasses.replace(SUM, function="cheap", compile_s=0.001)
    shown = str(log_of(*[SUM] * 30, cheap, cheap, *[SUM] * (log_table._MOST_ROWS - 30)))
    assert "cheap " not in shown
    assert shown.endswith("\n… and 2 cheaper ones, 12.7 ms together")
    assert shown.startswith("52 compiles in ")


def test_brackets_are_not_taken_for_markup() -> None:
    tagged = dataclasses.replace(SUM, function="[bold]f[/bold]", signature=("key<fry>[]",))
    assert "[bold]f[/bold]" in str(log_of(tagged))
    assert "key<fry>[]" in str(log_of(tagged))


def test_the_log_is_short_for_developers() -> None:
    assert repr(log_of(SUM, SUM, STEP)) == "<CompileLog: {'sum': 2}>"
