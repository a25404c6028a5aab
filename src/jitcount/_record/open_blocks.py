"""Keeps apart the with-statements of one object that is entered several times.

They may be nested, open in several threads or tasks at once, or in generators that are resumed and
closed in any order. Generators share the context of their caller, so the frame is asked first.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_numbers = itertools.count(1)

# The numbers of what is open in this thread or task, the innermost last. Numbers, and not what they
# stand for: a task keeps a copy for as long as it runs.
_open: ContextVar[tuple[int, ...]] = ContextVar("jitcount_open", default=())


class OpenBlocks:
    """A stack of open with-statements for each thread or task, with what each has opened.

    >>> blocks = OpenBlocks()
    >>> outer, inner = blocks.begin(), blocks.begin()
    >>> blocks.take() is inner, blocks.take() is outer
    (True, True)
    """

    def __init__(self) -> None:
        self._entries: dict[int, ExitStack] = {}
        self._frames: dict[int, object] = {}

    def begin(self, frame: FrameType | None = None) -> ExitStack:
        """A with-statement begins: return where to put what it opens.

        Args:
            frame: the caller of ``__enter__``: that of the with-statement, or a library's.
        """
        number = next(_numbers)
        entry = self._entries[number] = ExitStack()
        self._frames[number] = _identity(frame)
        _open.set((*_open.get(), number))
        return entry

    def take(self, frame: FrameType | None = None) -> ExitStack:
        """A with-statement ends: return what it had opened.

        It is the latest of this frame; else the innermost of this thread or task; else the latest.

        Args:
            frame: the caller of ``__exit__``.

        Raises:
            RuntimeError: none has begun.
        """
        if not self._entries:
            raise RuntimeError("this block has ended already, or has not begun")
        mine: list[int] = []
        if frame is not None:
            statement = _identity(frame)
            mine = [number for number, one in self._frames.items() if one == statement]
        mine = mine or [number for number in _open.get() if number in self._entries]
        number = mine[-1] if mine else next(reversed(self._entries))
        _open.set(tuple(other for other in _open.get() if other != number))
        del self._frames[number]
        return self._entries.pop(number)


def _identity(frame: FrameType | None) -> object:
    """What tells a frame from the others that have an open block, without keeping its variables."""
    return None if frame is None else (id(frame), frame.f_code)
