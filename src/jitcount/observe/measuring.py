"""When a program is measured: a small one not while the user's call waits for it.

A fingerprint takes a fifth of a millisecond where JAX and XLA have just been through the
processor's caches, and a third of that among others. So small programs wait until they are asked
for, or are a few. What is large is measured at once: beside its compile that is nothing, and it may
hold arrays of the user's, which are not to be kept alive from here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jitcount._jax import lowering

if TYPE_CHECKING:
    from jitcount._jax.lowering import Compilation, Measure

_logger = logging.getLogger("jitcount")

MOST_WAITING = 16
"""More programs than these do not wait; JAX, too, keeps them for as long as their function."""


class Measured:
    """The fingerprint and size of one program, found out when first asked for."""

    __slots__ = ("_compilation", "_measure")

    def __init__(self, compilation: Compilation) -> None:
        self._compilation: Compilation | None = compilation
        self._measure: Measure | None = None

    @property
    def waits_for(self) -> Compilation | None:
        """What is not measured yet."""
        return self._compilation

    def get(self) -> Measure | None:
        """What was found; None where that failed. Two threads that ask at once find the same."""
        if (compilation := self._compilation) is not None:
            try:
                self._measure = lowering.measure(compilation)
            except Exception:  # observing must never fail the user's program
                _logger.debug("could not measure what was compiled", exc_info=True)
            self._compilation = None
        return self._measure


class Unmeasured:
    """The programs that wait to be measured.

    Threads, and a finalizer that compiles in the midst of it, find another queue, as good as any.
    """

    def __init__(self) -> None:
        self._waiting: list[Measured] = []

    def add(self, measured: Measured) -> None:
        """Let a program wait; one that XLA has done with: what it reads must not be read here."""
        self._waiting.append(measured)
        if len(self._waiting) >= MOST_WAITING:
            self.measure_all()

    def measure_all(self) -> None:
        """Let none wait any longer."""
        waiting, self._waiting = self._waiting, []
        # Where JAX has let go of them, the last reference is ours. To free a module takes MLIR a
        # millisecond, all over the memory: not in between.
        held = [measured.waits_for for measured in waiting]
        for measured in waiting:
            measured.get()
        held.clear()
