"""Which target programs are computed as if for, in this process; needs neither JAX nor NumPy."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_open: list[str] = []
_changing = threading.RLock()


def target_in_force() -> str:
    """The target's name; empty where everything is as ever."""
    return _open[-1] if _open else ""


@contextlib.contextmanager
def in_force(name: str) -> Iterator[None]:
    """Let it be this one; blocks of one target nest.

    Raises:
        ValueError: a block for another one is open.
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
