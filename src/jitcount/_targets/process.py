"""One compiler's process: started, asked, timed out, ended.

What it prints, and how it ends, stays away from the user; both become part of an error.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, cast

from jitcount._targets.installed import PLUGINS, folder_from_pip
from jitcount._targets.protocol import Answer, Request, receive, send

# Of what a compiler has printed, as much as helps to see why it ended.
_TAIL_LINES = 8
_TAIL_BYTES = 4000

# What says nothing of a compiler's end; JAX loads the plugins that it finds, wanted or not.
_CHATTER = (
    "All log messages before absl::InitializeLog()",
    *(part for plugin in PLUGINS.values() for part in plugin.chatter),
)

_WORKER = ("-P", "-m", "jitcount._targets.worker")


def command() -> list[str]:
    """How a compiler's process is started."""
    return [sys.executable, *_WORKER]


# What makes a process count, or emulate.
_OF_OURS = ("JITCOUNT", "JITCOUNT_AS_IF")


def environment() -> dict[str, str]:
    """The user's environment, with what the compilers want, and without what is for the host.

    One for all compilers: JAX loads the plugins that it finds, wanted or not.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OF_OURS}
    flags = kept.get("XLA_FLAGS", "").split()
    host = ("--xla_cpu_", "--xla_force_host_platform_device_count")
    kept["XLA_FLAGS"] = " ".join(flag for flag in flags if not flag.startswith(host))
    kept |= {
        "JAX_PLATFORMS": "cpu",  # no device is looked for
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    for plugin in PLUGINS.values():
        kept |= plugin.environment
        # A tool from pip fits the compiler beside it; one of the system's may be too new.
        found = [str(folder) for tool in plugin.tools if (folder := folder_from_pip(tool))]
        if found:
            kept["PATH"] = os.pathsep.join(filter(None, (*found, kept.get("PATH"))))
    return kept


def signal_name(number: int) -> str:
    """A signal as people know it; of many only the system has a word.

    >>> signal_name(9)
    'SIGKILL (Killed)'
    """
    name, words = f"signal {number}", None
    with contextlib.suppress(ValueError):  # most real-time signals
        name = signal.Signals(number).name
    with contextlib.suppress(ValueError):  # there is none of that number
        words = signal.strsignal(number)
    return f"{name} ({words or 'unknown to this system'})"


class CompilerEndedError(Exception):
    """A compiler's process is gone; the text says how."""


class CompilerProcess:
    """A process that holds a compiler; one thread at a time uses it, and any may kill it."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as on_failure:
            self._printed = on_failure.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603 (our own command)
                command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._printed,
                env=environment(),
                start_new_session=True,  # Ctrl-C is for the user's program, which ends this one
            )
            on_failure.pop_all()
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        self._lock = threading.Lock()
        self._request = 0
        """Which is under way: a timer that comes too late finds another one."""

        self._timers: list[threading.Timer] = []
        self._timeout = 0.0
        self._answered_at = 0
        """How much it had printed at its last answer: that belongs to compiles that went well."""

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def ask(self, request: Request, timeout: float) -> Answer:
        """Send a request and wait for its answer; the first one has it load its compiler.

        Raises:
            CompilerEndedError: the process ended, or was ended because it took too long.
        """
        self.hurry(timeout)
        try:
            send(self._requests, request)
            answer = receive(self._answers, Answer)
        except OSError:  # it ended before it had read all
            answer = None
        finally:
            self._end_request()
        if answer is None:
            raise CompilerEndedError(self._how_it_ended(is_start=request.task is None))
        self._answered_at = os.fstat(self._printed.fileno()).st_size
        return answer

    def hurry(self, timeout: float) -> None:
        """Kill it unless the request under way, or the next one, is answered in that time."""
        with self._lock:
            timer = threading.Timer(timeout, self._give_up, (self._request, timeout))
            timer.daemon = True
            timer.start()
            self._timers.append(timer)

    @property
    def timed_out(self) -> bool:
        """Whether the process was killed because it took too long."""
        return self._timeout > 0

    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process, with what it has started; returns at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def close(self) -> None:
        """Kill the process, wait for its end, and close its files."""
        self.kill()
        self._process.wait()
        for stream in (self._requests, self._answers, self._printed):
            with contextlib.suppress(OSError):  # what was not yet sent
                stream.close()

    def _give_up(self, request: int, timeout: float) -> None:
        with self._lock:
            if request == self._request:
                self._timeout = timeout
                self.kill()

    def _end_request(self) -> None:
        with self._lock:
            self._request += 1
            for timer in self._timers:
                timer.cancel()
            self._timers.clear()

    def _how_it_ended(self, *, is_start: bool) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it has closed its stdout and lives on
            self.kill()
            code = self._process.wait()
        if self.timed_out:
            what = " to start" if is_start else ""
            headline = f"the compiler was stopped: it took longer than {self._timeout:g} s{what}"
        elif code < 0:
            headline = f"the compiler was ended by {signal_name(-code)}"
        else:
            headline = f"the compiler ended with exit code {code}"
        tail = self._tail()
        return f"{headline}; it last printed:\n{tail}" if tail else headline

    def _tail(self) -> str:
        end = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(self._answered_at, end - _TAIL_BYTES))
        lines = self._printed.read().decode(errors="replace").splitlines()
        said = [x.rstrip() for x in lines if x.strip() and not any(c in x for c in _CHATTER)]
        return "\n".join(said[-_TAIL_LINES:])
