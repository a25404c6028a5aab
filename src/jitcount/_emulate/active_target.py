"""The target that programs are emulated for at present; needs neither JAX nor NumPy."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# The targets of all that emulates, the latest last. JAX compiles for it in any thread, so this is
# the process's.
_active: list[str] = []
_changing = threading.RLock()


def active_target() -> str:
    """The name of the target that programs are emulated for; empty outside of all blocks."""
    return _active[-1] if _active else ""


@contextlib.contextmanager
def activate_target(name: str) -> Iterator[None]:
    """Set the emulated target until the block ends; blocks end in any order."""
    with _changing:
        _active.append(name)
    try:
        yield
    finally:
        with _changing:
            del _active[len(_active) - 1 - _active[::-1].index(name)]
