"""What ``JITCOUNT=1`` shows at the end of a process, and of each of its children for itself.

A child that `multiprocessing` forks leaves without Python's exit handlers (before Python 3.13), or
without those that it has from its parent (since). It calls what `multiprocessing` itself has to
finish, and that is where we are too. A child that is killed, as those of a pool that is not
closed, shows nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from jitcount._cli.report import shown
from jitcount._record.log import CompileLog
from jitcount._registry import registry
from jitcount._show.stderr import Beside
from jitcount._text import one_line

if TYPE_CHECKING:
    from jitcount._observe.in_flight import InFlightCompile

# Of what `multiprocessing` finishes, the highest comes first; nobody else is so low.
_LAST = -1_000_000


class Summary:
    """Counts from now on; `tell` shows what it has not shown yet."""

    def __init__(self) -> None:
        self._beside = Beside()
        self._log = CompileLog()
        self._first_process = os.getpid()
        self._is_told = False
        self._listening = registry.listening(self._hear)
        self._listening.__enter__()  # until the process ends
        self._tell_at_the_end_of_a_child()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_a_fork)

    def _hear(self, seen: InFlightCompile) -> None:
        self._log.add(seen)

    def _begin_in_a_fork(self) -> None:
        """Leave to the parent what is its own; no lock is taken, which a thread may have held."""
        self._log = CompileLog()
        self._is_told = False
        if (util := sys.modules.get("multiprocessing.util")) is not None:
            util.register_after_fork(self, Summary._tell_at_the_end_of_a_child)

    def _tell_at_the_end_of_a_child(self) -> None:
        if _name_in_multiprocessing():
            from multiprocessing.util import Finalize  # noqa: PLC0415 (it is there)

            Finalize(None, self.tell, exitpriority=_LAST)
            atexit.register(self.tell)  # for what comes later still, in threads and handlers

    def tell(self) -> None:
        """Show the tables, with the name of a process that is a child; never raises."""
        try:
            log, self._log = self._log, CompileLog()
            name = self._name()
            if log.compiles or not (name or self._is_told):
                text = shown(log, self._beside)
                self._beside.say(f"{name}:\n{text}" if name else text)
            self._is_told = True
        except Exception as error:  # noqa: BLE001 (the program has ended well, and must not fail)
            self._beside.say(f"jitcount: could not tell: {one_line(error)}")

    def _name(self) -> str:
        """What to call this process; nothing, where it is the one that was started."""
        name = _name_in_multiprocessing()
        if not name and os.getpid() != self._first_process:
            name = "a fork"
        return f"in {name} (process {os.getpid()})" if name else ""


def _name_in_multiprocessing() -> str:
    """The name of a child of `multiprocessing`; nothing, in any other process."""
    process = sys.modules.get("multiprocessing.process")
    with contextlib.suppress(Exception):
        if process is not None and process.parent_process() is not None:
            return str(process.current_process().name)
    return ""
