"""What was found of a compile while the user's call waited, and what of it is yet to be read.

To read a program takes a good part of the time that XLA takes to compile it. So the user's call
waits only until it is written down: as texts, bytes and a sketch. They are read when a log is asked
for its compiles; before that only where logs hold more of it than they should.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._loops.result import Loop
    from jitcount._profile.compiler_events import Account
    from jitcount._profile.origin import Origin
    from jitcount._profile.result import Constant

_logger = logging.getLogger("jitcount")

# So many bytes are unread at the most, in all logs of the process.
_AT_MOST = 64 << 20


@dataclass(frozen=True, slots=True)
class Unread:
    """A part that is yet to be read."""

    size: int
    """In bytes, about."""

    read: Callable[[Draft], None]
    otherwise: str
    """What the profile says where it could not be read."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Draft:
    """What was found of one compile, not yet written out; it holds no object of JAX's."""

    trace: dict[Origin, float] = field(default_factory=dict)
    jaxpr: Counter[Origin] = field(default_factory=Counter)
    operations: Counter[Origin] = field(default_factory=Counter)
    optimised: Counter[Origin] = field(default_factory=Counter)
    units: dict[Origin, float] = field(default_factory=dict)
    account: Account | None = None
    constants: tuple[Constant, ...] = ()
    loops: tuple[Loop, ...] = ()
    notes: list[str] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    is_complete: bool = True
    """False while the compile is in flight: then there is no profile to read yet."""

    _reading: threading.RLock = field(default_factory=threading.RLock)

    def read_later(self, size: int, read: Callable[[Draft], None], otherwise: str) -> None:
        """Add a part that need not be read while the user's call waits."""
        self.unread.append(Unread(size, read, otherwise))

    @property
    def size(self) -> int:
        """How many bytes of it are unread."""
        return sum(each.size for each in tuple(self.unread))

    def read(self) -> None:
        """Read all of it, in its order; a second thread waits until the first has done so."""
        with self._reading:
            while self.unread:
                part = self.unread[0]
                try:
                    part.read(self)
                except Exception as error:  # observing must never fail the user's program
                    _logger.debug("could not read a program", exc_info=True)
                    self.notes.append(f"{part.otherwise}: {type(error).__name__}: {error}")
                del self.unread[0]

    def __deepcopy__(self, _memo: dict[int, object]) -> Draft:
        """A copy of a log has what was found, read; a lock cannot be copied."""
        self.read()
        return replace(self, _reading=threading.RLock())


class _Waiting:
    """The drafts that no log has been asked for yet."""

    def __init__(self) -> None:
        self._drafts: list[weakref.ref[Draft]] = []
        self._size = 0
        self._changing = threading.RLock()  # a finalizer in here may compile

    def add(self, new: Draft) -> None:
        """One more; where there is too much, the older ones are read now, down to one half."""
        with self._changing:
            self._drafts.append(weakref.ref(new))
            self._size += new.size
            older = self._too_many() if self._size > _AT_MOST else []
        for each in older:
            each.read()

    def _too_many(self) -> list[Draft]:
        held = [draft for each in self._drafts if (draft := each()) is not None]
        self._size = sum(each.size for each in held)
        older = []
        while held and self._size > _AT_MOST // 2:
            older.append(held.pop(0))
            self._size -= older[-1].size
        self._drafts = list(map(weakref.ref, held))
        return older


waiting = _Waiting()
