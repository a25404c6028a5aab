"""Writes on the stderr that the process was started with, beside the output of the user's program.

The program may replace `sys.stderr`, close it, or close the file below it and open another one by
the same number. What is written here goes to the file that was there at the start, or nowhere; a
failure to write never reaches the program.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from jitcount._show.terminal import has_colour, render, width

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._show.parts import Part


class StderrWriter:
    """Writes to the stderr that the process has when this is made."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        self._number: int | None = None
        with contextlib.suppress(AttributeError, OSError, ValueError):  # none, or not a file
            number = sys.stderr.fileno()
            self._file = _identity(number)
            self._number = number

    def rendered(self, parts: Iterable[Part]) -> str:
        """Parts as text for this stderr: at its width, in letters and colours that it has."""
        stream = self._stream
        return render(parts, width(stream), stream=stream, colour=has_colour(stream))

    def write(self, text: str) -> None:
        """Write a text now, in lines of its own; never raises."""
        with contextlib.suppress(Exception):
            self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        if self._number is None:
            if self._stream is not None:
                self._stream.write(text)
                self._stream.flush()
            return
        with contextlib.suppress(Exception):  # what the program has written stands above
            self._stream.flush()
        if _identity(self._number) != self._file:
            return
        # A stream of our own: what cannot be written must not stay in the program's, whose last
        # flush would change the exit code.
        stream = open(  # noqa: SIM115 (closed here, where it cannot raise)
            self._number, "w", encoding=self._encoding, errors="backslashreplace", closefd=False
        )
        try:
            stream.write(text)
        finally:
            stream.close()


def _identity(number: int) -> tuple[int, int]:
    about = os.fstat(number)
    return about.st_dev, about.st_ino
