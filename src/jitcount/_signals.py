"""Calls back before a signal ends the process: SIGTERM (preemption, a time limit) and SIGHUP.

Python's own handlers run in the main thread, between two steps of it: not while XLA compiles, which
takes minutes. And a program that asks `signal.getsignal` must find what it would find without us.
So the signal is handled in C, by `faulthandler`, which writes a few words to a pipe; a thread that
waits for them calls back, gives the signal back to the system, and sends it once more, so that the
process ends by it.

Only where the signal would end the process: a handler of the program's own, whether set before or
after, is the only one that is called. A child that is forked has the system's own handling from its
start. What cannot be done: a program whose C code never releases the interpreter's lock is not
ended by these signals while this waits; SIGKILL ends it. And where the program blocks a signal in
all threads that Python knows, the system may hand it to one of XLA's, in which `faulthandler`
writes nothing: the signal is lost. (It would write the stacks of all threads, which run meanwhile:
that can crash. And a thread of ours that takes the signal would take it from `signal.sigwait`.)
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    OnSignal = Callable[[str], object]

_PATIENCE_S = 20.0
"""Kubernetes and SLURM kill after 30 s."""

_LOOK_MS = 5000
"""How often to look whether the program has closed the pipe."""

_callbacks: list[OnSignal] = []


def before_end_by_signal(callback: OnSignal) -> None:
    """Call back with a signal's name, in a thread, before it ends the process; `forget` ends that.

    Calls back once. What the callback raises is dropped, and after twenty seconds it is waited for
    no longer. Where a system lacks what this needs (Windows), it never calls back.
    """
    _callbacks.append(callback)
    if len(_callbacks) == 1:
        _handler.install()


def forget(callback: OnSignal) -> None:
    """Call back no more; where a signal has come, wait for it: the process must end by that."""
    _handler.wait_where_one_came()
    with contextlib.suppress(ValueError):
        _callbacks.remove(callback)
    if not _callbacks:
        _handler.remove()


def _call_back(name: str) -> None:
    for callback in tuple(_callbacks):
        with contextlib.suppress(BaseException):  # whatever it is, the process ends
            callback(name)


if sys.platform == "win32":

    class _Handler:
        """Windows has neither signal, and `faulthandler` no `register`."""

        def install(self) -> None:
            """Do nothing."""

        def remove(self) -> None:
            """Do nothing."""

        def wait_where_one_came(self) -> None:
            """Do nothing."""

else:
    import _thread
    import ctypes

    _NAMES = ("SIGTERM", "SIGHUP")

    class _Pipe:
        """What `faulthandler` writes to; it holds the only reference, until another is given."""

        def __init__(self, number: int) -> None:
            self._number = number

        def fileno(self) -> int:
            return self._number

        def flush(self) -> None:
            """Do nothing: `faulthandler` asks for it."""

    class _Signal:
        """One signal, and the pipe that tells that it came."""

        def __init__(self, name: str) -> None:
            self.name = name
            self._number = signal.Signals[name]
            self.reader, self._writer = os.pipe()
            os.set_blocking(self._writer, False)  # the handler must never wait
            self._files = {number: _file(number) for number in (self.reader, self._writer)}
            self._held: weakref.ref[_Pipe] | None = None
            self._address: int | None = None

        def handle(self) -> None:
            """Handle the signal, if it would end the process."""
            if _address_of_handler(self._number) != 0:  # SIG_DFL; not None either: unknown
                return
            if not self.is_open():
                return
            faulthandler.unregister(self._number)  # else it would not be set in the system again
            pipe = _Pipe(self._writer)
            # Not the stacks of other threads, which run on meanwhile.
            faulthandler.register(self._number, file=pipe, all_threads=False, chain=False)
            self._held = weakref.ref(pipe)
            self._address = _address_of_handler(self._number)

        def give_back(self) -> bool:
            """Let the system handle it, if it is still handled here; returns whether it was."""
            is_ours = self._held is not None and self._held() is not None
            is_ours = is_ours and _address_of_handler(self._number) == self._address
            if is_ours:
                faulthandler.unregister(self._number)
            return is_ours

        def send(self) -> None:
            """Send the signal to this process."""
            os.kill(os.getpid(), self._number)

        def has_come(self) -> bool:
            """Whether the pipe says so; nobody reads it empty."""
            if not self.is_open():
                return False
            looking = select.poll()
            looking.register(self.reader, select.POLLIN)
            return any(event & select.POLLIN for _, event in looking.poll(0))

        def is_open(self) -> bool:
            """Whether the program has not closed the pipe; a number may be its own file since."""
            return all(_file(number) == file for number, file in self._files.items())

        def close(self) -> None:
            """Close what is still open of the pipe."""
            for number, file in self._files.items():
                if _file(number) == file:
                    os.close(number)

    def _file(number: int) -> tuple[int, int, int] | None:
        """Which file is open under a number; None where none is."""
        try:
            about = os.fstat(number)
        except OSError:
            return None
        return about.st_dev, about.st_ino, about.st_mode

    def _address_of_handler(number: int) -> int | None:
        """What the system calls at a signal: 0 where it ends the process, 1 where it is ignored.

        `signal.getsignal` knows only what Python has set; JAX sets one in C where processes
        compute together. None where it cannot be read.
        """
        about = ctypes.create_string_buffer(1024)  # larger than any system's `struct sigaction`
        try:
            if ctypes.CDLL(None).sigaction(number, None, about) != 0:
                return None
        except (OSError, AttributeError):
            return None
        return ctypes.c_size_t.from_buffer(about).value  # it begins with the handler

    class _Handler:
        """Handles the signals of a process while anybody wants to be called back."""

        def __init__(self) -> None:
            self._signals: list[_Signal] = []
            self._is_wanted = False
            self._has_hooks = False
            self._has_come = False
            self._was_sent = threading.Event()

        def install(self) -> None:
            """Handle what would end the process, from any thread."""
            self._is_wanted = True
            with contextlib.suppress(Exception):  # no more files, no more threads
                if not self._signals:
                    self._signals = [_Signal(name) for name in _NAMES]
                    waits = threading.Event()
                    # One that `threading` does not know: programs count or wait for all others.
                    _thread.start_new_thread(self._wait, (tuple(self._signals), waits))
                    waits.wait(_PATIENCE_S)
                if not self._has_hooks:
                    self._has_hooks = True
                    os.register_at_fork(
                        before=self._give_back,
                        after_in_parent=self._handle_again,
                        after_in_child=self._forget_all,
                    )
                self._handle_again()

        def remove(self) -> None:
            """Let the system handle them again; the thread goes on waiting."""
            self._is_wanted = False
            self._give_back()
            self.wait_where_one_came()  # between the last look and now

        def wait_where_one_came(self) -> None:
            """Return at once, or never, unless the program has a handler of its own since."""
            # The thread may not have had its turn yet: the pipe knows before it.
            if self._has_come or any(each.has_come() for each in self._signals):
                self._was_sent.wait(_PATIENCE_S)

        def _handle_again(self) -> None:
            if self._is_wanted:
                for each in self._signals:
                    each.handle()

        def _give_back(self) -> None:
            for each in self._signals:
                each.give_back()

        def _forget_all(self) -> None:
            """A fork has no thread that waits, and nothing to tell."""
            self._give_back()  # where another thread has forked at the same time
            for each in self._signals:  # else the parent's thread would not see the parent's close
                each.close()
            self._is_wanted = self._has_come = False
            self._signals = []
            _callbacks.clear()

        def _wait(self, signals: tuple[_Signal, ...], waits: threading.Event) -> None:
            """Wait until one has come, then end the process by it."""
            # None is delivered here: a program may block them in all of its threads, and wait. And
            # `faulthandler` says nothing in a thread that Python does not know yet.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            waits.set()
            waiting = select.poll()
            for each in signals:
                waiting.register(each.reader, select.POLLIN)
            # Again and again: where the program has closed the pipe, and has a file of its own
            # under that number since, the system looks at that one, and may never return.
            while not waiting.poll(_LOOK_MS) and all(each.is_open() for each in signals):
                pass
            came = next((each for each in signals if each.has_come()), None)
            if came is None:  # the program has closed all files that it does not know
                self._give_back()
                self._signals = []
                for each in signals:
                    each.close()
                return
            self._has_come = True
            done = threading.Event()
            try:
                _thread.start_new_thread(self._tell, (came.name, done))
            except RuntimeError:  # Python 3.12 and later start none while they end
                self._tell(came.name, done)
            done.wait(_PATIENCE_S)
            came.give_back()
            came.send()  # to the program's own handler, if it has set one since
            self._was_sent.set()

        def _tell(self, name: str, done: threading.Event) -> None:
            try:
                _call_back(name)
            finally:
                done.set()


_handler = _Handler()
