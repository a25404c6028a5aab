"""Puts the parts of a compile together: a trace, a lowering and a backend compile.

In an ordinary call the three follow each other in one thread. But a trace can hold other traces
and whole compiles, a lowering can wait for its compile (``.lower()`` now, ``.compile()`` in another
thread), and both can be left out where JAX has them in its caches.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

# A lowering that is never compiled waits in vain; so many may wait.
_WAITING = 256


@dataclass(frozen=True, slots=True)
class Lowered:
    """A lowering that waits for its compile."""

    function: str
    signature: tuple[str, ...] | None
    thread: int
    trace_s: float
    lower_s: float


class Traces:
    """The traces of one thread, the nested ones dropped as soon as the outer one ends.

    >>> traces = Traces()
    >>> traces.begin(); traces.begin()
    >>> traces.end("multiply", 0.1); traces.end("step", 0.5)
    >>> traces.take("multiply"), traces.take("step"), traces.take("step")
    (0.0, 0.5, 0.0)
    """

    def __init__(self) -> None:
        self._ended: list[tuple[str, float]] = []
        self._begun: list[int] = []

    def begin(self) -> None:
        """A trace begins, perhaps within another."""
        self._begun.append(len(self._ended))

    def end(self, function: str, seconds: float | None) -> None:
        """The innermost trace ends; `seconds` is None where it failed."""
        if self._begun:
            del self._ended[self._begun.pop() :]
        if seconds is not None:
            self._ended.append((function, seconds))
            del self._ended[:-_WAITING]

    def take(self, function: str) -> float:
        """The seconds of the latest trace of that function, once; 0.0 where there is none."""
        for index in range(len(self._ended) - 1, -1, -1):
            if self._ended[index][0] == function:
                return self._ended.pop(index)[1]
        return 0.0


class Lowerings:
    """The lowerings of the process that wait for their compile."""

    def __init__(self) -> None:
        self._waiting: deque[Lowered] = deque(maxlen=_WAITING)
        self._lock = threading.Lock()

    def add(self, lowered: Lowered) -> None:
        """Keep a lowering until it is taken, or until too many came after it."""
        with self._lock:
            self._waiting.append(lowered)

    def take(self, function: str, signature: tuple[str, ...] | None, thread: int) -> Lowered | None:
        """The lowering of a program that is being compiled: same name, then same signature.

        Among equals it is this thread's, then the latest. A signature that is not known, on either
        side, is equal to any.
        """
        with self._lock:
            candidates = [
                lowered
                for lowered in self._waiting
                if lowered.function == function
                and (None in {signature, lowered.signature} or lowered.signature == signature)
            ]
            if not candidates:
                return None
            best = next((c for c in reversed(candidates) if c.thread == thread), candidates[-1])
            self._waiting.remove(best)
            return best
