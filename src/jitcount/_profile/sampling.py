"""Samples the stacks of threads that trace: tracing is Python, and a look at it shows whose.

One thread looks, every few milliseconds, while a trace is under way and a profile is wanted. A
sample weighs as much time as has passed since the last one: what keeps the lock of the interpreter
for long is not missed. Nothing of the user's is kept, only names and lines.
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

# A look costs some ten microseconds, and the thread that traces waits for it.
_EVERY_S = 0.004

# The looker looks on for a while when nothing is traced: to be woken costs a short trace more.
_IDLE_LOOKS = 250

Codes = tuple[tuple["CodeType", int], ...]


@dataclass(slots=True)
class _Tracing:
    """A thread that traces."""

    since: float
    """When the last sample was taken, or the first trace began."""

    samples: list[tuple[Codes, float]] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """For each trace under way, how many samples there were when it began."""


class Sampler:
    """The threads that trace, and a thread that looks at them."""

    def __init__(self) -> None:
        self._tracing: dict[int, _Tracing] = {}
        self._changed = threading.Condition()
        self._looker: threading.Thread | None = None
        self._is_waiting = False

    def begin(self) -> None:
        """A trace begins in this thread, perhaps within another."""
        here, now = threading.get_ident(), time.perf_counter()
        with self._changed:
            under_way = self._tracing.get(here)
            if under_way is None:
                under_way = self._tracing[here] = _Tracing(now)
            under_way.marks.append(len(under_way.samples))
            if self._looker is None or not self._looker.is_alive():  # a fork leaves it behind
                self._looker = threading.Thread(
                    target=self._look, name="jitcount sampler", daemon=True
                )
                self._looker.start()
            if self._is_waiting:
                self._changed.notify_all()

    def end(self) -> dict[Stack, float]:
        """The innermost trace of this thread has ended: seconds by stack."""
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
        """Forget what is under way: no profile is wanted any more."""
        with self._changed:
            self._tracing.clear()

    def _look(self) -> None:
        """The life of the thread that looks; it waits while nothing is traced for long."""
        idle = 0
        while True:
            time.sleep(_EVERY_S)
            if self._tracing:
                idle = 0
                self._take()
                continue
            idle += 1
            if idle > _IDLE_LOOKS:
                with self._changed:
                    self._is_waiting = True
                    is_wanted = self._changed.wait_for(lambda: self._tracing, timeout=60.0)
                    self._is_waiting = False
                    if not is_wanted:
                        self._looker = None
                        return
                idle = 0

    def _take(self) -> None:
        frames = sys._current_frames()  # noqa: SLF001 (documented, for just this)
        seen = {thread: _codes(frames.get(thread)) for thread in tuple(self._tracing.copy())}
        frames.clear()  # this thread's own frame is in there: a cycle that would keep them all
        with self._changed:
            now = time.perf_counter()
            for thread, under_way in self._tracing.items():
                under_way.samples.append((seen.get(thread, ()), now - under_way.since))
                under_way.since = now


def _codes(frame: FrameType | None) -> Codes:
    """Code and line of each frame up to the user's innermost; frames hold the user's values."""
    found = []
    while frame is not None:
        code = frame.f_code
        # Text that was typed has this name; so has what `namedtuple` and others have generated.
        if code.co_filename != "<string>" or frame.f_globals.get("__name__") == "__main__":
            found.append((code, frame.f_lineno))
            if owner_of(code.co_filename) == "user":
                break
        frame = frame.f_back
    return tuple(found)
