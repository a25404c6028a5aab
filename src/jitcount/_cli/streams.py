"""Writes what the command itself says: on stdout what was asked for, on stderr what is beside it.

An output that cannot be written is bad usage. A reader that has gone away has seen enough.
"""

from __future__ import annotations

import contextlib
import os
import sys


class UsageError(Exception):
    """What the user asked for cannot be done; the text is shown in one line, and the exit is 2."""


def show(text: str) -> None:
    """Write a text on stdout, now: at the end of the process it could not be helped.

    Raises:
        UsageError: it cannot be written.
    """
    if sys.stdout is None:
        raise UsageError("the output cannot be written: stdout is closed")
    try:
        print(text, flush=True)  # noqa: T201
    except OSError as error:
        _give_up(error)


def _give_up(error: OSError) -> None:
    """Drop what stdout holds, which Python would try to write once more; say why, if it matters."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if not isinstance(error, BrokenPipeError):
        raise UsageError(f"the output cannot be written: {error.strerror}")


def remark(text: str) -> None:
    """Write a text on stderr, if that can be written."""
    if sys.stderr is not None:  # print would take stdout for it
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)  # noqa: T201
