"""When a program is measured: a small one not while the user's call waits for it.

A fingerprint takes a fifth of a millisecond right after JAX and XLA have used the processor's
caches, and a third of that among other fingerprints. So small programs wait until they are asked
for, or until there are a few. Large ones are measured at once: beside their compile that is
nothing, and they may hold arrays of the user's, which must not be kept alive from here.
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


class LazyMeasure:
    """The fingerprint and size of one program, worked out when first asked for."""

    __slots__ = ("_compilation", "_measure")

    def __init__(self, compilation: Compilation) -> None:
        self._compilation: Compilation | None = compilation
        self._measure: Measure | None = None

    @property
    def unmeasured(self) -> Compilation | None:
        """The program, until it has been measured."""
        return self._compilation

    def get(self) -> Measure | None:
        """Measure the program, once; None where that failed.

        Two threads that ask at the same time find the same.
        """
        if (compilation := self._compilation) is not None:
            try:
                self._measure = lowering.measure(compilation)
            except Exception:  # observing must never fail the user's program
                _logger.debug("could not measure what was compiled", exc_info=True)
            self._compilation = None
        return self._measure


class MeasureQueue:
    """The programs that wait to be measured.

    A thread, or a finalizer that compiles while the queue is measured, adds to the next queue.
    """

    def __init__(self) -> None:
        self._waiting: list[LazyMeasure] = []

    def add(self, measured: LazyMeasure) -> None:
        """Add a program that XLA has finished with: nothing else may read it while this does."""
        self._waiting.append(measured)
        if len(self._waiting) >= MOST_WAITING:
            self.measure_all()

    def measure_all(self) -> None:
        """Measure all that wait."""
        waiting, self._waiting = self._waiting, []
        # Where JAX has let go of them, the last reference is ours. To free a module takes MLIR a
        # millisecond, all over the memory: not in between.
        held = [measured.unmeasured for measured in waiting]
        for measured in waiting:
            measured.get()
        held.clear()
