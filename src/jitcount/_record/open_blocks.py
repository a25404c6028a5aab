"""Keeps apart the with-statements of one object that is entered several times.

They may be nested, or open in several threads or tasks at once.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from contextvars import ContextVar

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

    def begin(self) -> ExitStack:
        """A with-statement begins: return where to put what it opens."""
        number = next(_numbers)
        entry = self._entries[number] = ExitStack()
        _open.set((*_open.get(), number))
        return entry

    def take(self) -> ExitStack:
        """A with-statement ends: return what it had opened.

        It is the innermost of this thread or task; the latest, where that belongs to another one.

        Raises:
            RuntimeError: none has begun.
        """
        if not self._entries:
            raise RuntimeError("this block has ended already, or has not begun")
        mine = [number for number in _open.get() if number in self._entries]
        number = mine[-1] if mine else next(reversed(self._entries))
        _open.set(tuple(other for other in _open.get() if other != number))
        return self._entries.pop(number)
