"""Starts ``jitcount`` here and under other releases, one after the other; each writes a ledger.

The run here is the user's: it has the terminal, stdin and Ctrl-C. The others read the same stdin
again if it is a file, and what they print is kept beside their environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._targets.process import signal_name
from jitcount._try_calls.processes import kill_with_children, timeout_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._releases.environments import ReleaseEnvironment

_MOST_READ = 100_000
_MOST_SAID = 300

# What a compile costs is compared, so nobody reads what an earlier run has left.
_VARIABLES = {"JAX_ENABLE_COMPILATION_CACHE": "0"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    code: int
    """Its exit code; of one that a signal ended, its number below zero."""

    seconds: float = 0.0
    said: str = ""
    """The error that it ended with, in a line."""

    is_late: bool = False
    """Whether it was ended because it took too long."""

    def __str__(self) -> str:
        how = f"ended with exit code {self.code}"
        if self.is_late:
            how = f"took longer than {self.seconds:.0f} s, and was ended"
        elif self.code < 0:
            how = f"was ended by {signal_name(-self.code)}"
        return f"{how}: {self.said}" if self.said else how


def _place_in_stdin() -> int | None:
    try:
        return os.lseek(0, 0, os.SEEK_CUR) if stat.S_ISREG(os.fstat(0).st_mode) else None
    except OSError:  # it is closed
        return None


@dataclass
class Runs:
    """The same command, here and elsewhere."""

    _stdin: int | None = field(default_factory=_place_in_stdin)
    """If stdin is a file, where the program begins to read."""

    _first_s: float = 0.0

    def here(self, words: Sequence[str]) -> Ended:
        """Run the command here, as it is started by hand.

        Raises:
            KeyboardInterrupt: the user ended it.
        """
        import jitcount  # noqa: PLC0415 (the package, whose `__main__` is run)

        began = time.monotonic()
        command = str(Path(jitcount.__file__).with_name("__main__.py"))
        process = subprocess.Popen(_command(sys.executable, command, words), env=_environment())  # noqa: S603
        try:
            code = process.wait()
        except KeyboardInterrupt:  # it has had the same one, and may still report
            process.wait()
            raise
        finally:
            process.kill()
        if code == -signal.SIGINT:
            raise KeyboardInterrupt
        self._first_s = time.monotonic() - began
        return Ended(code, self._first_s)

    def under(self, made: ReleaseEnvironment, words: Sequence[str]) -> Ended:
        """Run the command in an environment; whatever comes, it has ended then."""
        timeout_s = timeout_for(self._first_s)
        output = output_of(made)
        with contextlib.ExitStack() as files:
            stdin: int = subprocess.DEVNULL
            if self._stdin is not None:
                os.lseek(0, self._stdin, os.SEEK_SET)  # the processes share their place in it
                stdin = 0
            written = files.enter_context(output.open("wb"))
            began = time.monotonic()
            process = subprocess.Popen(  # noqa: S603 (the program that the user has run)
                _command(made.python, made.command, words),
                env=_environment() | made.variables(),
                stdin=stdin,
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which ends that one
            )
            try:
                code = process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                return Ended(1, timeout_s, is_late=True)
            finally:
                kill_with_children(process)
        return Ended(code, time.monotonic() - began, _error_in(output) if code else "")


def output_of(made: ReleaseEnvironment) -> Path:
    """The file with what the last run in an environment printed."""
    return Path(made.folder, "output.txt")


def _command(python: str, command: str, words: Sequence[str]) -> list[str]:
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] # noqa: SLF001
    return [python, *flags, command, *words]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "JITCOUNT"}
    return kept | _VARIABLES


_TRACEBACK = "Traceback (most recent call last):"


def _error_in(output: Path) -> str:
    """The error that a program ended with, or else the last line that it wrote."""
    with output.open("rb") as written:
        written.seek(max(0, written.seek(0, os.SEEK_END) - _MOST_READ))
        lines = written.read().decode(errors="replace").splitlines()
    if _TRACEBACK in lines:  # below the error there may be notes, such as JAX's
        last = max(number for number, line in enumerate(lines) if line == _TRACEBACK)
        below = (line for line in lines[last + 1 :] if line.strip() and not line.startswith(" "))
        return next(below, "")[:_MOST_SAID]
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:_MOST_SAID]
