"""The target that programs are emulated for at present; needs neither JAX nor NumPy."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# The targets of all open blocks. JAX compiles for a block in any thread, so this is the process's.
_open: list[str] = []
_changing = threading.RLock()


def active_target() -> str:
    """The name of the target that programs are emulated for; empty outside of all blocks."""
    return _open[-1] if _open else ""


@contextlib.contextmanager
def activate_target(name: str) -> Iterator[None]:
    """Set the emulated target until the block ends; blocks of the same target nest.

    Raises:
        ValueError: a block for another target is open.
    """
    with _changing:
        if _open and _open[-1] != name:
            raise ValueError(
                f"as_if({name!r}) inside as_if({_open[-1]!r}): a program computes as one target "
                "at a time; end the other block first"
            )
        _open.append(name)
    try:
        yield
    finally:
        with _changing:
            _open.remove(name)
