"""Puts the parts of a compile together: a trace, a lowering and a backend compile.

In an ordinary call the three follow each other in one thread. But a trace can hold other traces
and whole compiles, a lowering can wait for its compile (``.lower()`` now, ``.compile()`` in another
thread), and both can be left out where JAX has them in its caches.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from jitcount.observe.describing import NO_DESCRIPTION, Description
from jitcount.observe.program import Program

# A lowering that is never compiled waits in vain; so many may wait.
_WAITING = 256


class Trace(msgspec.Struct, frozen=True):
    """A trace that waits for its lowering."""

    seconds: float
    program: Program | None = None
    """What is traced, where it is traced ahead of time."""

    began_at: float | None = None
    """Seconds since the epoch."""

    profile: Any = None
    """What the profiler gave, if there was one."""


NO_TRACE = Trace(0.0)


class Lowered(msgspec.Struct, frozen=True, eq=False):
    """A lowering that waits for its compile."""

    function: str
    kept_avals: Sequence[Any] | None
    thread: int
    trace_s: float
    lower_s: float
    description: Description = NO_DESCRIPTION
    began_at: float | None = None
    """Seconds since the epoch: of its trace, if it had one."""

    module: Callable[[], object] | None = None
    """A weak reference to what it made, which is what will be compiled."""

    profile: Any = None
    """What the profiler gave, if there was one."""

    is_small: bool = False


class Traces:
    """The traces of one thread, the nested ones dropped as soon as the outer one ends.

    >>> traces = Traces()
    >>> traces.begin(); traces.begin()
    >>> traces.end("multiply", Trace(0.1)); traces.end("step", Trace(0.5))
    >>> traces.take("multiply").seconds, traces.take("step").seconds, traces.take("step").seconds
    (0.0, 0.5, 0.0)
    """

    def __init__(self) -> None:
        self._ended: list[tuple[str, Trace]] = []
        self._begun: list[tuple[int, float]] = []

    def begin(self, at: float = 0.0) -> None:
        """A trace begins, perhaps within another."""
        self._begun.append((len(self._ended), at))

    @property
    def began_at(self) -> float | None:
        """When the innermost trace that is under way began."""
        return self._begun[-1][1] if self._begun else None

    def end(self, function: str, trace: Trace | None) -> None:
        """The innermost trace ends; it is None where it failed."""
        if self._begun:
            del self._ended[self._begun.pop()[0] :]
        if trace is not None:
            self._ended.append((function, trace))
            del self._ended[:-_WAITING]

    def take(self, function: str, is_in_a_call: Callable[[], bool] = lambda: False) -> Trace:
        """The latest trace of that function, once; `NO_TRACE` where there is none.

        What a call lowers was traced by that call, if it was at all, and not ahead of time: a
        ``.trace()`` that is never lowered waits in vain, and is of other arguments. Where none
        waits, nothing is asked.
        """
        for index in range(len(self._ended) - 1, -1, -1):
            name, trace = self._ended[index]
            if name == function and (trace.program is None or not is_in_a_call()):
                del self._ended[index]
                return trace
        return NO_TRACE


class Lowerings:
    """The lowerings of the process that wait for their compile."""

    def __init__(self) -> None:
        self._waiting: deque[Lowered] = deque(maxlen=_WAITING)
        # A garbage collection in here may run a finalizer that compiles, in the same thread.
        self._lock = threading.RLock()

    def add(self, lowered: Lowered) -> None:
        """Keep a lowering until it is taken, or until too many came after it."""
        with self._lock:
            self._waiting.append(lowered)

    def take(
        self,
        function: str,
        kept_avals: Sequence[Any] | None,
        thread: int,
        module: object = None,
    ) -> Lowered | None:
        """The lowering of a program that is being compiled: same name, same avals, same module.

        Among equals it is this thread's, then the latest. What is not known, on either side, is
        equal to any.
        """
        with self._lock:
            found: Lowered | None = None
            for lowered in reversed(self._waiting.copy()):  # such a finalizer changes it
                if lowered.function == function and _may_be(lowered, kept_avals, module):
                    found = found or lowered
                    if lowered.thread == thread:
                        found = lowered
                        break
            if found is not None:
                try:  # noqa: SIM105 (quicker than `suppress`)
                    self._waiting.remove(found)
                except ValueError:  # and may have taken this one
                    pass
            return found


def _may_be(lowered: Lowered, kept_avals: Sequence[Any] | None, module: object) -> bool:
    """Whether a lowering made this module; by its avals, where modules cannot tell."""
    if module is not None and lowered.module is not None:
        return lowered.module() is module
    known = lowered.kept_avals
    return known is None or kept_avals is None or list(known) == list(kept_avals)
