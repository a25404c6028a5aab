"""Progress of long work: a bar on a terminal, plain lines in a log, on stderr."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# In a log, a line so often, in seconds.
_EVERY = 10.0


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show how far a work of so many steps is; call what is given after each, with its name."""
    if sys.stderr is not None and sys.stderr.isatty():
        with _bar(what, total) as step:
            yield step
    else:
        yield _lines(what, total)


@contextlib.contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
    from rich.console import Console  # noqa: PLC0415 (slow to load)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    shown = Progress(*columns, TextColumn("{task.fields[name]}"), console=Console(stderr=True), transient=True)  # fmt: skip  # noqa: E501
    with shown:
        task = shown.add_task(what, total=total, name="")
        yield lambda name: shown.update(task, advance=1, name=name)


def _lines(what: str, total: int) -> Callable[[str], None]:
    done = 0
    last = time.monotonic()

    def step(name: str) -> None:
        nonlocal done, last
        done += 1
        now = time.monotonic()
        if now - last >= _EVERY:
            last = now
            print(f"{what}: {done} of {total}, {name}", file=sys.stderr, flush=True)  # noqa: T201

    return step
