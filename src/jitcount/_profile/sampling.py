"""Samples the stacks of threads that trace: tracing runs Python, and its stack shows whose.

One thread takes samples, every few milliseconds, while a trace is under way and a profile is
wanted. A sample counts for the time since the last one, so that code which holds the interpreter's
lock for long is not missed. Nothing of the user's is kept, only names and lines.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount._observe.call_site import owner_of

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from jitcount._hlo.locations import Stack

# A sample takes some ten microseconds, in which the thread that traces waits.
_EVERY_S = 0.004

# The sampling thread keeps running for a while when nothing is traced: waking it up costs a short
# trace more than that.
_IDLE_ROUNDS = 250

Codes = tuple[tuple["CodeType", int], ...]


@dataclass(slots=True)
class _Tracing:
    """The samples of a thread that traces."""

    since: float
    """When the last sample was taken, or else the first trace began."""

    samples: list[tuple[Codes, float]] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """For each trace under way, how many samples the thread had when it began."""


class Sampler:
    """Samples the threads that trace, from a thread of its own."""

    def __init__(self) -> None:
        self._tracing: dict[int, _Tracing] = {}
        self._changed = threading.Condition()
        self._sampling: threading.Thread | None = None
        self._is_waiting = False

    def begin(self) -> None:
        """Start to sample this thread, in which a trace begins, perhaps within another."""
        here, now = threading.get_ident(), time.perf_counter()
        with self._changed:
            under_way = self._tracing.get(here)
            if under_way is None:
                under_way = self._tracing[here] = _Tracing(now)
            under_way.marks.append(len(under_way.samples))
            if self._sampling is None or not self._sampling.is_alive():  # a fork leaves it behind
                self._sampling = threading.Thread(
                    target=self._run, name="jitcount sampler", daemon=True
                )
                self._sampling.start()
            if self._is_waiting:
                self._changed.notify_all()

    def end(self) -> dict[Stack, float]:
        """Return the seconds by stack of this thread's innermost trace, which has ended."""
        here = threading.get_ident()
        with self._changed:
            under_way = self._tracing.get(here)
            if under_way is None or not under_way.marks:  # it began before a profile was wanted
                return {}
            samples = under_way.samples[under_way.marks.pop() :]
            if not under_way.marks:
                del self._tracing[here]
        found: dict[Stack, float] = {}
        for codes, seconds in samples:
            stack = tuple((code.co_filename, line, code.co_qualname) for code, line in codes)
            found[stack] = found.get(stack, 0.0) + seconds
        return found

    def rest(self) -> None:
        """Drop all samples: no profile is wanted any more."""
        with self._changed:
            self._tracing.clear()

    def _run(self) -> None:
        """Sample until nothing has been traced for a minute; the sampling thread runs this."""
        idle = 0
        while True:
            time.sleep(_EVERY_S)
            if self._tracing:
                idle = 0
                self._sample()
                continue
            idle += 1
            if idle > _IDLE_ROUNDS:
                with self._changed:
                    self._is_waiting = True
                    is_wanted = self._changed.wait_for(lambda: self._tracing, timeout=60.0)
                    self._is_waiting = False
                    if not is_wanted:
                        self._sampling = None
                        return
                idle = 0

    def _sample(self) -> None:
        frames = sys._current_frames()  # noqa: SLF001 (documented, for just this)
        seen = {thread: _codes(frames.get(thread)) for thread in tuple(self._tracing.copy())}
        frames.clear()  # this thread's own frame is in there: a cycle that would keep them all
        with self._changed:
            now = time.perf_counter()
            for thread, under_way in self._tracing.items():
                under_way.samples.append((seen.get(thread, ()), now - under_way.since))
                under_way.since = now


def _codes(frame: FrameType | None) -> Codes:
    """The code and line of each frame up to the user's innermost; a frame would hold values."""
    found = []
    while frame is not None:
        code = frame.f_code
        # Code that was typed has this name; so has code that `namedtuple` and others generate.
        if code.co_filename != "<string>" or frame.f_globals.get("__name__") == "__main__":
            found.append((code, frame.f_lineno))
            if owner_of(code.co_filename) == "user":
                break
        frame = frame.f_back
    return tuple(found)
