"""How far the target compiles are: a bar on a terminal, plain lines in CI.

Other than in `progress`, the work is done elsewhere, and has begun before it is worth a line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A line in a log at most so often.
_LINES_S = 10.0


def show_waiting(progress: Callable[[], tuple[int, int]], wait: Callable[[float], bool]) -> None:
    """Show what `progress` says, done and wanted, on stderr until `wait` says that all is there."""
    if sys.stderr.isatty():
        _show_bar(progress, wait)
    else:
        _show_lines(progress, wait)


def _show_bar(progress: Callable[[], tuple[int, int]], wait: Callable[[float], bool]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn  # noqa: PLC0415

    columns = ("compiling for targets", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        done, wanted = progress()
        bar = shown.add_task("", total=wanted, completed=done)
        while not wait(0.1):
            shown.update(bar, completed=progress()[0])


def _show_lines(progress: Callable[[], tuple[int, int]], wait: Callable[[float], bool]) -> None:
    while True:
        done, wanted = progress()
        text = f"jitcount: {done} of {wanted} target compiles done"
        print(text, file=sys.stderr, flush=True)  # noqa: T201
        if done >= wanted:
            return
        wait(_LINES_S)
