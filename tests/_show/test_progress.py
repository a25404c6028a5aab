"""What is shown while long work is done, by the process itself or by the targets' compilers."""

import io
import sys
import time

import pytest

from jitcount._show.progress import progress, show_waiting, under_way


@pytest.fixture(autouse=True)
def terminals_can_move_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


class Compiling:
    """Three compiles, one more of them done at each wait."""

    def __init__(self) -> None:
        self.done = 0

    def so_far(self) -> tuple[int, int]:
        return self.done, 3

    def wait(self, _seconds: float) -> bool:
        self.done = min(self.done + 1, 3)
        return self.done == 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_waiting_in_a_pipe_gives_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    compiling = Compiling()
    show_waiting(compiling.so_far, compiling.wait)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        f"jitcount: {done} of 3 target compiles done" for done in (0, 1, 2, 3)
    ]


def test_waiting_on_a_terminal_gives_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, compiling = Terminal(), Compiling()
    monkeypatch.setattr(sys, "stderr", terminal)
    show_waiting(compiling.so_far, compiling.wait)
    assert "compiling for targets" in terminal.getvalue()
    assert "0/3" in terminal.getvalue()
    assert "0:00:00" in terminal.getvalue()


def test_steps_in_a_pipe_give_a_line_every_ten_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 4.0, 11.0, 20.0, 21.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with progress("suite", 4) as step:
        for name in "abcd":
            step(name)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "suite: 2 of 4, b\nsuite: 4 of 4, d\n"


def test_steps_on_a_terminal_move_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress("suite", 2) as step:
        assert "suite" in terminal.getvalue()
        assert "0/2" in terminal.getvalue()
        step("first-example")
    assert "1/2" in terminal.getvalue()
    assert "first-example" in terminal.getvalue()


def test_long_steps_are_named_as_they_begin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        with under_way(2) as begin:
            begin("making one")
            begin("making\x1b[2J another")

    work()
    lines = ["jitcount: making one", "jitcount: making\\x1b[2J another"]
    assert capsys.readouterr().err.splitlines() == lines
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work()
    assert "making\\x1b[2J another" in terminal.getvalue()
    assert "1/2" in terminal.getvalue()


def test_no_steps_show_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with under_way(0):
        pass
    assert capsys.readouterr().err == ""
