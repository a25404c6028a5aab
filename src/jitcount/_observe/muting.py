"""Keeps the listener quiet about what a thread compiles or lowers for jitcount itself."""

from __future__ import annotations

import contextlib
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_muted: set[int] = set()
"""The threads that work for jitcount: nearly always none, which is quickly seen."""


def is_muted() -> bool:
    """Whether this thread works for jitcount."""
    return bool(_muted) and get_ident() in _muted


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Do not report what this thread compiles or lowers in this block."""
    thread = get_ident()
    if thread in _muted:
        yield
        return
    _muted.add(thread)
    try:
        yield
    finally:
        _muted.discard(thread)
