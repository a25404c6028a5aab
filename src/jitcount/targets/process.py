"""A compiler in a process of its own: what it prints, and how it ends, stays away from the user."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any

from jitcount.targets.installed import ptxas_from_pip
from jitcount.targets.pipe import Message, receive, send

# Of what a compiler has printed, as much as helps to see why it ended.
_TAIL_LINES = 8
_TAIL_BYTES = 4000

# What a compiler prints at each start, and what says nothing of its end.
_CHATTER = ("Could not find cuda drivers", "All log messages before absl::InitializeLog()")

_WORKER = ("-P", "-m", "jitcount.targets.worker")


def command() -> list[str]:
    """How a compiler's process is started."""
    return [sys.executable, *_WORKER]


def environment() -> dict[str, str]:
    """The user's environment, with what the compilers want, and without what is for the host."""
    kept = {name: value for name, value in os.environ.items() if name != "JITCOUNT"}
    flags = kept.get("XLA_FLAGS", "").split()
    host = ("--xla_cpu_", "--xla_force_host_platform_device_count")
    if assembler := ptxas_from_pip():
        # It fits the compiler beside it; a toolkit of the system's may be too new for older GPUs.
        kept["PATH"] = os.pathsep.join(filter(None, (str(assembler), kept.get("PATH"))))
    kept["XLA_FLAGS"] = " ".join(flag for flag in flags if not flag.startswith(host))
    return kept | {
        "JAX_PLATFORMS": "cpu",  # no device is looked for
        # Without these libtpu asks a cloud machine's metadata server, and prints that it got none.
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        # A TPU is one process's at a time; its compiler need not be.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TPU_STDERR_LOG_LEVEL": "3",
        "TPU_MIN_LOG_LEVEL": "3",
    }


class CompilerEndedError(Exception):
    """A compiler's process is gone; the text says how."""


class CompilerProcess:
    """One process; used by one thread at a time, and killed by any."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as on_failure:
            self._printed = on_failure.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603
                command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._printed,
                env=environment(),
                start_new_session=True,  # Ctrl-C is for the user's program, which ends this one
            )
            on_failure.pop_all()
        self._timed_out = False
        self._told = 0
        """Up to here, what it has printed belongs to compiles that went well."""

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def ask(self, values: dict[str, Any], block: bytes, timeout: float) -> Message:
        """Send a request and wait for its answer.

        Raises:
            CompilerEndedError: the process ended, or was ended because it took too long.
        """
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        timer = threading.Timer(timeout, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            send(self._process.stdin, values, block)
            answer = receive(self._process.stdout)
        except OSError:  # it ended before it had read all
            answer = None
        finally:
            timer.cancel()
        if answer is None:
            raise CompilerEndedError(self._how_it_ended(timeout))
        self._told = os.fstat(self._printed.fileno()).st_size
        return answer

    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it at once, with what it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._printed):
            with contextlib.suppress(OSError):  # what was not yet sent
                if stream is not None:
                    stream.close()

    def _give_up(self) -> None:
        self._timed_out = True
        self.kill()

    def _how_it_ended(self, timeout: float) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it has closed its stdout and lives on
            self.kill()
            code = self._process.wait()
        if self._timed_out:
            headline = f"the compiler was stopped: it took longer than {timeout:g} s"
        elif code < 0:
            headline = f"the compiler was ended by {signal.Signals(-code).name}"
        else:
            headline = f"the compiler ended with exit code {code}"
        tail = self._tail()
        return f"{headline}; it last printed:\n{tail}" if tail else headline

    def _tail(self) -> str:
        end = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(self._told, end - _TAIL_BYTES))
        lines = self._printed.read().decode(errors="replace").splitlines()
        telling = [x.rstrip() for x in lines if x.strip() and not any(c in x for c in _CHATTER)]
        return "\n".join(telling[-_TAIL_LINES:])
