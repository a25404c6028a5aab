"""What it takes to compile a program for another platform, for whoever wants to do that.

It is told before XLA starts, so that other compilers can work beside it. While nobody wants it,
nothing is read.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._jax import lowering as _jax

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Taker = Callable[["Portable"], None]

_logger = logging.getLogger("jitcount")
_lock = threading.Lock()
_takers: tuple[Taker, ...] = ()

# By the module that they made. JAX's caches hold a module for as long as its program; here it is
# held too, so that its id stays its own.
_lowered: dict[int, _jax.Lowering] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Portable:
    """A program that is about to be compiled; None is what could not be read."""

    lowering: _jax.Lowering | None = None
    compilation: _jax.Compilation | None = None


def give(taker: Taker) -> None:
    """Give `taker` every program, in the thread that compiles it and before it does."""
    global _takers  # noqa: PLW0603 (one ear for the process)
    with _lock:
        _takers = (*_takers, taker)


def stop_giving(taker: Taker) -> None:
    """Give it no more."""
    global _takers  # noqa: PLW0603
    with _lock:
        _takers = tuple(other for other in _takers if other is not taker)
        if not _takers:
            _lowered.clear()


def on_lowered(frame: FrameType) -> None:
    """JAX has lowered a program."""
    if _takers and (lowering := _jax.read_lowering(frame)) is not None:
        _lowered[id(lowering.module)] = lowering


def on_compile(frame: FrameType) -> Portable | None:
    """JAX is about to compile a program."""
    if not _takers:
        return None
    try:
        compilation = _jax.read_compilation(frame)
        portable = Portable(_lowered.get(id(compilation and compilation.module)), compilation)
        for taker in _takers:
            taker(portable)
    except Exception:  # observing must never fail the program that is observed
        _logger.debug("could not read what is compiled", exc_info=True)
        return None
    return portable
