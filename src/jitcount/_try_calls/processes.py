"""Runs a program again as it was started, in a process of its own that says nothing to the user.

How a program was started is read before it runs: it may change all of it. So nothing here imports
JAX.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from jitcount._try_calls.jitted_call import JittedCall

# A program takes about as long as it did; a call that hangs under a jit must end.
_TIMES_AS_LONG = 10
_LEAST_TIMEOUT_S = 60.0

_CHILD = "from jitcount._cli.try_call import main; main()"
# The working directory is put into the path later: nothing there may stand for a module of ours.
_WITHOUT_DIRECTORY = "import sys; sys.flags.safe_path or sys.path.pop(0)"


class EndedOtherwiseError(Exception):
    """A process did not run the program to its end; the text says how it ended."""


@dataclass(frozen=True)
class Again:
    """What was measured while the program ran again."""

    code: int
    """The exit code that it ended with."""

    error: str
    """The error that it ended with, in a line."""

    seconds: float
    """Seconds of the clock, of the whole program from its import of JAX on."""

    compiles: int
    calls: list[dict[str, Any]]
    """Of each call what `jitcount._try_calls.measuring` wrote down."""

    folder: Path
    """Where the values are that the calls returned."""


def _directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 (as Python does)
    except OSError:  # it is gone
        return None


def _stdin() -> tuple[int, int] | None:
    try:
        if not stat.S_ISREG(os.fstat(0).st_mode):
            return None
        return os.dup(0), os.lseek(0, 0, os.SEEK_CUR)
    except OSError:  # it is closed
        return None


@dataclass(frozen=True)
class Program:
    """A program as it was started: what it takes to run it again."""

    words: Sequence[str]
    """The script's path, or the module's name, and the program's arguments."""

    is_module: bool
    executable: str = field(default_factory=lambda: sys.executable)
    directory: str | None = field(default_factory=_directory)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    started_at: float = field(default_factory=time.monotonic)
    stdin: tuple[int, int] | None = field(default_factory=_stdin)
    """If stdin is a file, a descriptor of it, and where the program begins to read."""

    def run(
        self, calls: Sequence[JittedCall], jitted: int | None, *, folder: Path, timeout_s: float
    ) -> Again:
        """Run the program to its end, with one of the calls jitted, or none.

        Args:
            calls: the calls that are measured.
            jitted: which of them is jitted.
            folder: an empty folder, for what is measured.
            timeout_s: after so many seconds it is ended.

        Raises:
            EndedOtherwiseError: it was ended by a signal, by `os._exit`, or after the timeout.
        """
        asked = {
            "words": list(self.words),
            "is_module": self.is_module,
            "calls": [asdict(call) for call in calls],
            "jitted": jitted,
        }
        (folder / "asked.json").write_text(json.dumps(asked))
        code = self._to_the_end(folder, timeout_s)
        try:
            measured = json.loads((folder / "measured.json").read_text())
        except OSError:
            raise EndedOtherwiseError(_how_it_ended(code, folder)) from None
        if measured["code"] and not measured["error"]:
            measured["error"] = _last_line(folder)
        return Again(folder=folder, **measured)

    def _to_the_end(self, folder: Path, timeout_s: float) -> int:
        """Run the process, and return its exit code; whatever comes, it has ended then."""
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] # noqa: SLF001
        command = [self.executable, *flags, "-c", f"{_WITHOUT_DIRECTORY}; {_CHILD}", str(folder)]
        with contextlib.ExitStack() as files:
            alive = files.enter_context(_sign_of_life())
            stdin = files.enter_context(_read_again(self.stdin, folder))
            stdout, stderr = (
                files.enter_context((folder / name).open("wb")) for name in ("stdout", "stderr")
            )
            process = subprocess.Popen(  # noqa: S603 (the program that the user has run)
                [*command, *map(str, alive)],
                cwd=self.directory,
                env=self._environment(),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=alive,
                start_new_session=True,  # Ctrl-C is for this process, which ends that one
            )
            try:
                return process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise EndedOtherwiseError(f"took longer than {timeout_s:.0f} s") from None
            finally:
                if process.poll() is None:
                    kill_with_children(process)

    def _environment(self) -> dict[str, str]:
        """The program's own, without what counts compiles, or lets a later run compile less."""
        kept = {name: value for name, value in self.environment.items() if name != "JITCOUNT"}
        return kept | {"JAX_ENABLE_COMPILATION_CACHE": "0"}


@contextlib.contextmanager
def _sign_of_life() -> Iterator[tuple[int, ...]]:
    """A descriptor for the other process, which is at its end when this process is gone."""
    if sys.platform == "win32":
        yield ()
        return
    read, write = os.pipe()
    try:
        yield (read,)
    finally:
        os.close(read)
        os.close(write)


def timeout_for(first_run_s: float) -> float:
    """How long a program may take to run again.

    >>> timeout_for(0.3), timeout_for(20.0)
    (60.0, 200.0)
    """
    return max(_LEAST_TIMEOUT_S, _TIMES_AS_LONG * first_run_s)


def kill_with_children(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it has started, and wait for its end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


# --- What it reads and what it said ---------------------------------------------------------------


def _read_again(stdin: tuple[int, int] | None, folder: Path) -> IO[bytes]:
    """What the program has read as its stdin, from the beginning; nothing but of a file."""
    copy = folder / "stdin"
    with copy.open("wb") as written:
        if stdin is not None and hasattr(os, "pread"):
            number, place = stdin
            while block := os.pread(number, 1 << 20, place):
                written.write(block)
                place += len(block)
    return copy.open("rb")


def _how_it_ended(code: int, folder: Path) -> str:
    from jitcount._targets.process import signal_name  # noqa: PLC0415 (it starts compilers)

    how = f"was ended by {signal_name(-code)}" if code < 0 else f"was left with exit code {code}"
    said = _last_line(folder)
    return f"{how}: {said}" if said else how


def _last_line(folder: Path) -> str:
    """The last thing that the process wrote on stderr."""
    with (folder / "stderr").open("rb") as written:
        written.seek(max(0, written.seek(0, os.SEEK_END) - 4000))
        lines = written.read().decode(errors="replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
