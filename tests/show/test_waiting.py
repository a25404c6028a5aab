"""What is shown while compilers are waited for."""

import io
import sys

import pytest

from jitcount.show.waiting import show_waiting


class Compiling:
    """Three compiles, one more of them done at each wait."""

    def __init__(self) -> None:
        self.done = 0

    def progress(self) -> tuple[int, int]:
        return self.done, 3

    def wait(self, _seconds: float) -> bool:
        self.done = min(self.done + 1, 3)
        return self.done == 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_pipe_there_are_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    compiling = Compiling()
    show_waiting(compiling.progress, compiling.wait)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        f"jitcount: {done} of 3 target compiles done" for done in (0, 1, 2, 3)
    ]


def test_on_a_terminal_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, compiling = Terminal(), Compiling()
    monkeypatch.setattr(sys, "stderr", terminal)
    show_waiting(compiling.progress, compiling.wait)
    assert "compiling for targets" in terminal.getvalue()
    assert "/3" in terminal.getvalue()
