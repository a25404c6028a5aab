"""What ``JITCOUNT=1`` shows at the end of a process, and of each of its child processes.

A child that `multiprocessing` forks ends without Python's exit handlers (before Python 3.13), or
without those that it has from its parent (since). It runs the finalizers of `multiprocessing`, so
the summary is one of these too. A child that is killed, like those of a pool that is not closed,
shows nothing. The process that the user started shows its table at SIGTERM and SIGHUP, too.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING

from jitcount import _signals
from jitcount._cli.report import log_text
from jitcount._record.log import CompileLog
from jitcount._registry import registry
from jitcount._show.stderr import StderrWriter
from jitcount._text import one_line

if TYPE_CHECKING:
    from jitcount._observe.in_flight import InFlightCompile

# `multiprocessing` runs its finalizers from the highest priority down; nobody else is so low.
_LAST = -1_000_000


class Summary:
    """Counts all compiles of the process from now on; `show` shows those that it has not shown."""

    def __init__(self) -> None:
        self._stderr = StderrWriter()
        self._log = CompileLog()
        self._first_process = os.getpid()
        self._has_shown = False
        self._showing = threading.Lock()
        self._listening = registry.listening(self._add)
        self._listening.__enter__()  # until the process ends
        self._show_at_the_end_of_a_child()
        if not _name_in_multiprocessing():
            _signals.before_end_by_signal(self._show_before)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_a_fork)

    def _add(self, seen: InFlightCompile) -> None:
        self._log.add(seen)

    def _begin_in_a_fork(self) -> None:
        """Forget the compiles of the parent; takes no lock, which a thread may have held."""
        self._log = CompileLog()
        self._has_shown = False
        self._showing = threading.Lock()
        if (util := sys.modules.get("multiprocessing.util")) is not None:
            util.register_after_fork(self, Summary._show_at_the_end_of_a_child)

    def _show_at_the_end_of_a_child(self) -> None:
        if _name_in_multiprocessing():
            from multiprocessing.util import Finalize  # in a child it has been imported

            Finalize(None, self.show, exitpriority=_LAST)
            atexit.register(self.show)  # for what comes later still, in threads and handlers

    def _show_before(self, signal: str) -> None:
        """Show the tables before a signal ends the process; called in another thread."""
        with self._showing:
            if not self._has_shown:
                self._stderr.write(f"jitcount: {signal} came: this is what was compiled until then")
                self._show()

    def show(self) -> None:
        """Show the tables, under the name of a process that is a child; never raises."""
        with self._showing:
            self._show()
        _signals.forget(self._show_before)  # where a signal has come, the process ends in here

    def _show(self) -> None:
        try:
            log, self._log = self._log, CompileLog()
            name = self._name()
            if log.compiles or not (name or self._has_shown):
                text = log_text(log, self._stderr)
                self._stderr.write(f"{name}:\n{text}" if name else text)
            self._has_shown = True
        except Exception as error:  # noqa: BLE001 (the program has ended well, and must not fail)
            self._stderr.write(f"jitcount: could not tell: {one_line(error)}")

    def _name(self) -> str:
        """What to call this process; empty for the one that the user started."""
        name = _name_in_multiprocessing()
        if not name and os.getpid() != self._first_process:
            name = "a fork"
        return f"in {name} (process {os.getpid()})" if name else ""


def _name_in_multiprocessing() -> str:
    """The name of this process as a child of `multiprocessing`; empty if it is none."""
    process = sys.modules.get("multiprocessing.process")
    with contextlib.suppress(Exception):
        if process is not None and process.parent_process() is not None:
            return str(process.current_process().name)
    return ""
