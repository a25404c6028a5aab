"""The progress of long work, on stderr: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from jitcount._show.terminal import is_terminal
from jitcount._text import encode_safely, encoding_of, escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Seconds between two lines in a log; a bar moves more smoothly.
_LINE_EVERY_S = 10.0
_BAR_EVERY_S = 0.1


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show the progress of a work of `total` steps.

    Yields:
        A function to call after each step, with the name of the step.
    """
    done = 0
    last = time.monotonic()
    with _bar(what, 0, total) as move:

        def step(name: str) -> None:
            nonlocal done, last
            done += 1
            if move is not None:
                move(done, name)
            elif (now := time.monotonic()) - last >= _LINE_EVERY_S:
                last = now
                _write_line(f"{what}: {done} of {total}, {name}")

        yield step


def show_waiting(so_far: Callable[[], tuple[int, int]], wait: Callable[[float], bool]) -> None:
    """Show the progress of target compilers until all are done.

    Args:
        so_far: returns how many compiles are done, and how many are wanted.
        wait: waits up to so many seconds, and returns whether all are done.
    """
    done, wanted = so_far()
    with _bar("compiling for targets", done, wanted, is_timed=True) as move:
        if move is not None:
            while not wait(_BAR_EVERY_S):
                move(so_far()[0], "")
            return
        _write_line(f"jitcount: {done} of {wanted} target compiles done")
        while done < wanted:
            wait(_LINE_EVERY_S)
            done, wanted = so_far()
            _write_line(f"jitcount: {done} of {wanted} target compiles done")


@contextlib.contextmanager
def under_way(total: int) -> Iterator[Callable[[str], None]]:
    """Show which of `total` long steps is under way, and for how long they all have been.

    Yields:
        A function to call before each step, with what it does.
    """
    begun = 0
    with _bar("", 0, total, is_timed=True) if total else contextlib.nullcontext() as move:

        def begin(what: str) -> None:
            nonlocal begun
            if move is not None:
                move(begun, what)
            else:
                _write_line(f"jitcount: {what}")
            begun += 1

        yield begin


@contextlib.contextmanager
def _bar(
    what: str, done: int, total: int, *, is_timed: bool = False
) -> Iterator[Callable[[int, str], None] | None]:
    """Show a bar, which ends with a step's name or with the time; not in a log.

    Yields:
        A function that moves the bar to a number of steps, with a name; None in a log.
    """
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 (slow to load)
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    end = TimeElapsedColumn() if is_timed else TextColumn("{task.fields[name]}", markup=False)
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), MofNCompleteColumn(), end)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total, completed=done, name="")

        def move(done: int, name: str) -> None:
            about = _fit(name) if name and is_timed else what
            shown.update(task, completed=done, description=about, name=_fit(name))

        yield move


def _fit(text: str) -> str:
    return encode_safely(escape_control_chars(text), encoding_of(sys.stderr))


def _write_line(text: str) -> None:
    if sys.stderr is not None:  # print would take stdout for it
        with contextlib.suppress(OSError, ValueError):  # the work is worth more than the line
            print(_fit(text), file=sys.stderr, flush=True)  # noqa: T201
