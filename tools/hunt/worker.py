"""Runs programs in a process of its own, which may crash or hang without harm.

The process is kept from program to program, because JAX takes a second to start, and is started
again after it had to be ended.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

IMPORTS = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom jax import lax\n"

# JAX keeps what it has compiled: so many programs later the process is started again.
_PROGRAMS_EACH = 400

_SECONDS_TO_START = 60.0


@dataclass(frozen=True)
class Outcome:
    """What came of running a program.

    Attributes:
        results: its outputs, as the types that they had; None where there are none.
        failure: why there are none: an error's text, a crash or a hang.
        died: whether the process had to be replaced.
    """

    results: list[np.ndarray] | None
    failure: str = ""
    died: bool = False


@dataclass(frozen=True)
class Job:
    """A function ``f`` as text, and the expressions of its arguments."""

    text: str
    arguments: tuple[str, ...]
    compiled: bool = True


def run_job(job: Job) -> list[np.ndarray]:
    """The results of a program in this process: compiled, or operation by operation."""
    import jax  # noqa: PLC0415 (only the worker needs JAX)

    names: dict[str, Any] = {}
    exec(IMPORTS + job.text, names)  # noqa: S102 (that is what it is for)
    arguments = [eval(one, names) for one in job.arguments]  # noqa: S307 (the same)
    if job.compiled:
        found = jax.jit(names["f"])(*arguments)
    else:
        with jax.disable_jit():
            found = names["f"](*arguments)
    return [np.asarray(one) for one in found]


def _serve(
    connection: Connection, run: Callable[[Job], list[np.ndarray]], flags: str, errors: str
) -> None:
    # Before JAX is imported: XLA reads its flags once.
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    # XLA's last words are not for the hunter's terminal, but they say why it ended.
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        try:
            results = [_portable(one) for one in run(job)]
            connection.send((results, ""))
        except Exception as error:  # noqa: BLE001 (whatever the compiler raises is a result)
            connection.send((None, f"{type(error).__name__}: {error}"))


def _portable(array: np.ndarray) -> np.ndarray:
    """The array in a type that NumPy has by itself: float32 holds every bfloat16."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


class Worker:
    """A process that runs programs, with a time limit for each."""

    def __init__(
        self,
        seconds: float,
        flags: str = "",
        run: Callable[[Job], list[np.ndarray]] = run_job,
    ) -> None:
        self._seconds = seconds
        self._flags = flags
        self._run = run
        self._process: Any = None
        self._connection: Connection | None = None
        self._done = 0
        self._folder = tempfile.TemporaryDirectory(prefix="hunt-")
        self._errors = Path(self._folder.name) / "stderr"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self, job: Job) -> None:
        """Begin to run a program; `finish` waits for it."""
        if self._process is not None and self._done >= _PROGRAMS_EACH:
            self.stop()
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._errors.write_text("")
            serve = (theirs, self._run, self._flags, str(self._errors))
            self._process = context.Process(target=_serve, args=serve, daemon=True)
            self._process.start()
            theirs.close()
            self._done = 0
        assert self._connection is not None  # noqa: S101 (made with the process)
        self._connection.send(job)
        self._done += 1

    def finish(self) -> Outcome:
        """What came of the program that was started."""
        assert self._connection is not None  # noqa: S101 (start comes first)
        # The first program of a process waits for JAX to start.
        limit = self._seconds + (_SECONDS_TO_START if self._done == 1 else 0)
        if not self._connection.poll(limit):
            self.stop()
            return Outcome(None, f"no result after {self._seconds:g} s", died=True)
        try:
            results, failure = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            self.stop()
            reason = last_words(self._errors.read_text(errors="replace"))
            return Outcome(None, f"the process ended by {_signal(code)}{reason}", died=True)
        return Outcome(results, failure)

    def run(self, job: Job) -> Outcome:
        """What comes of a program."""
        self.start(job)
        return self.finish()

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def last_words(errors: str) -> str:
    """What XLA wrote about the check that failed, without time and place; empty if nothing.

    >>> last_words("F0000 00:00:17 1 shape.h:2] Check failed: a == b (1 vs. 2)")
    ': Check failed: a == b (1 vs. 2)'
    """
    found = re.findall(r"^F\d{4}.*?\] (.*)$", errors, re.MULTILINE)
    return f": {found[-1][:200]}" if found else ""


def _signal(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def agree(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    """Whether the results are the exact numbers; the sign of zero is left out."""
    return len(found) == len(expected) and all(
        one.shape == other.shape and bool(np.all(one == other))
        for one, other in zip(found, expected, strict=True)
    )
