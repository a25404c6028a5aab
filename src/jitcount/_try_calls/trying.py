"""Tries calls under a jit: runs the program again without and with each, and compares.

What is compared was measured in the same way: the run without the jit is made again, too.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._show.progress import progress
from jitcount._try_calls.processes import EndedOtherwiseError, timeout_for
from jitcount._try_calls.results import Compared, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._try_calls.jitted_call import JittedCall
    from jitcount._try_calls.processes import Again, Program

MOST_CALLS = 3
"""So many calls are tried, the first ones."""

# A run takes longer or shorter by chance; what differs by less says nothing.
_PART = 0.1
_LEAST_S = 0.2


@dataclass(frozen=True, slots=True)
class Figures:
    """What a program took."""

    compiles: int
    seconds: float
    """Seconds of the clock, of the whole program from its import of JAX on."""

    call_s: float
    """Seconds of that one call, all times that it was made."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a call under a jit."""

    call: JittedCall
    before: Figures | None = None
    after: Figures | None = None
    results: Compared | None = None
    not_tried: str = ""
    """Why it could not be tried."""

    failed: str = ""
    """What went wrong under the jit: then there are no figures."""

    @property
    def call_saves(self) -> int:
        """1 where the call is faster with the jit, -1 where it is slower, 0 by chance."""
        if self.before is None or self.after is None:
            return 0
        return _saved(self.before.call_s, self.after.call_s)

    @property
    def whole_saves(self) -> int:
        """1 where the whole program is faster with the jit, -1 where it is slower, 0 by chance.

        A program that is faster though its call is not is so by chance. One that is slower though
        its call is faster is not: what the call compiled served others, which now compile it.
        """
        if self.before is None or self.after is None:
            return 0
        saved = _saved(self.before.seconds, self.after.seconds)
        return 0 if saved > 0 and self.call_saves <= 0 else saved

    @property
    def saves(self) -> int:
        """1 where it is faster with the jit, the call at least; -1 where slower, 0 by chance."""
        return self.whole_saves or self.call_saves


def _saved(before: float, after: float) -> int:
    """1 where seconds are saved, -1 where they are lost, 0 where they may differ by chance."""
    margin = max(_PART * max(before, after), _LEAST_S)
    return (before - after > margin) - (after - before > margin)


def try_calls(program: Program, code: int, calls: Sequence[JittedCall], found: list[Trial]) -> None:
    """Try the first calls, each by itself; each `Trial` is in `found` at once.

    Args:
        program: what ran.
        code: the exit code that it ended with.
        calls: the calls, the costliest first.
        found: what came of them; Ctrl-C does not take it away.
    """
    trying = _Trying(program, code, calls[:MOST_CALLS])
    with (
        contextlib.closing(trying),
        progress("trying calls under a jit", len(trying.calls)) as on_tried,
    ):
        for number, call in enumerate(trying.calls):
            found.append(trying.trial(number))
            on_tried(str(call))


class _Trying:
    """Runs a program without a jit and with each; the run without is the same for all."""

    def __init__(self, program: Program, code: int, calls: Sequence[JittedCall]) -> None:
        self.calls = calls
        self._program = program
        self._code = code
        self._timeout_s = timeout_for(time.monotonic() - program.started_at)
        self._without: list[Again] = []
        self._folder = tempfile.TemporaryDirectory(prefix="jitcount-", ignore_cleanup_errors=True)
        self._problem = ""

    def close(self) -> None:
        """Delete what the runs have left."""
        self._folder.cleanup()

    def trial(self, number: int) -> Trial:
        """Try one of the calls."""
        call = self.calls[number]
        try:
            before = self._run_without(0)
        except EndedOtherwiseError as error:
            return Trial(call, not_tried=f"run again, the program {error}")
        if before.calls[number]["count"] == 0:
            return Trial(call, not_tried="run again, the program did not come to it")
        try:
            return self._tried(number, before)
        except EndedOtherwiseError as error:
            return Trial(call, failed=f"the program {error}")

    def _tried(self, number: int, before: Again) -> Trial:
        """Compare two runs without the jit with one with it, or two where it seems no faster.

        One run with it is enough only where it is faster than the better one without: what a busy
        machine adds is then on its side.
        """
        call, after = self.calls[number], self._run(number)
        failed = after.calls[number]["failed"]
        if failed and not before.calls[number]["failed"]:
            return Trial(call, failed=f"cannot be jitted: {failed}")
        if after.code != before.code:
            how = f"the program ends with exit code {after.code}, not {before.code}"
            return Trial(call, failed=f"{how}: {after.error}" if after.error else how)
        second = self._run_without(1)
        results = _compared(number, before, after)
        if not results.is_same and not _compared(number, before, second).is_same:
            results = Compared("its results differ from run to run", is_same=True)
        best = _least(_figures(before, number), _figures(second, number))
        trial = Trial(call, best, _figures(after, number), results)
        if results.is_same and trial.whole_saves <= 0:
            figures = _least(_figures(after, number), _figures(self._run(number), number))
            trial = Trial(call, best, figures, results)
        return trial

    def _run_without(self, which: int) -> Again:
        """A run without a jit: the first, or the second one; all calls share them."""
        if self._problem:
            raise EndedOtherwiseError(self._problem)
        while len(self._without) <= which:
            try:
                again = self._run(None)
            except EndedOtherwiseError as error:
                self._problem = str(error)
                raise
            if again.code != self._code:
                how = f"ended with exit code {again.code}, not {self._code}"
                self._problem = f"{how}: {again.error}" if again.error else how
                raise EndedOtherwiseError(self._problem)
            self._without.append(again)
        return self._without[which]

    def _run(self, jitted: int | None) -> Again:
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        return self._program.run(self.calls, jitted, folder=folder, timeout_s=self._timeout_s)


def _compared(number: int, one: Again, other: Again) -> Compared:
    leaves, others = (each.calls[number]["leaves"] for each in (one, other))
    return compare(leaves, others, one.folder, other.folder)


def _figures(again: Again, number: int) -> Figures:
    return Figures(again.compiles, again.seconds, again.calls[number]["seconds"])


def _least(one: Figures, other: Figures) -> Figures:
    return Figures(
        min(one.compiles, other.compiles),
        min(one.seconds, other.seconds),
        min(one.call_s, other.call_s),
    )
