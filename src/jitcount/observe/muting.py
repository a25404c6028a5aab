"""What a thread compiles or lowers on jitcount's own account, and no listener should hear of."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Thread(threading.local):
    is_muted: bool = False


_thread = _Thread()


def is_muted() -> bool:
    """Whether this thread works for jitcount."""
    return _thread.is_muted


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Let nothing be heard of what this thread does, for a block."""
    before, _thread.is_muted = _thread.is_muted, True
    try:
        yield
    finally:
        _thread.is_muted = before
