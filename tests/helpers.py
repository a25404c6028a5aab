"""What tests share: above all the one way to start a process, which leaves none behind.

`python` runs one to its end; `running` is for one that is watched or sent signals. Both end it
with the block or the test, however that ends, and with it all that it has started. Test files
import this as ``tests.helpers``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import pytest
from jax import monitoring
from jax._src import monitoring as _monitoring

from jitcount._explain.compile import Compile
from jitcount._jax import events
from jitcount._observe.call_site import CallSite
from jitcount._registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jitcount._observe.in_flight import InFlightCompile
    from jitcount._observe.program import Program

    Environment = Mapping[str, str | None]

ROOT = Path(__file__).parents[1]

# What `running` starts; no test starts one in another way.
Process: TypeAlias = "subprocess.Popen[str]"

# How a target's compiler is started that does as badly as the program's name says.
FAKE_COMPILER = (
    sys.executable,
    "-S",
    str(ROOT / "tests/_targets/fake_compiler.py"),
    str(Path(events.__file__).parents[2]),  # where jitcount is
    str(Path(msgspec.__file__).parents[1]),
)

# In a process of a test's own, the target "cpu" is that compiler.
WITH_FAKE_COMPILER = f"""
from jitcount._targets import process
process.command = lambda: {[*FAKE_COMPILER]!r}
"""

# By its value in their environment, the descendants of a process are found wherever they are.
_MARK = "JITCOUNT_TEST_PROCESS"

_NO_CHANGE: Environment = MappingProxyType({})

Finished = subprocess.CompletedProcess[str]


def python(
    *arguments: str, cwd: Path | None = None, env: Environment = _NO_CHANGE, timeout: float = 600.0
) -> Finished:
    """Run Python to its end, and return what it printed.

    Args:
        arguments: as on a command line: ``"-c", "print(1)"``.
        cwd: where it runs; by default where the tests do.
        env: what is set besides the environment of the tests; None unsets.
        timeout: seconds after which it is ended, and the test failed.
    """
    with running(*arguments, cwd=cwd, env=env) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as slow:
            printed = ((slow.stdout or b"") + (slow.stderr or b"")).decode()
            command = " ".join(["python", *arguments])
            pytest.fail(f"{command} took longer than {timeout:g} s; it printed:\n{printed}")
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def jitcount(*arguments: str, cwd: Path | None = None, env: Environment = _NO_CHANGE) -> Finished:
    """Run the command."""
    return python("-m", "jitcount", *arguments, cwd=cwd, env=env)


def nox(*arguments: str, env: Environment = _NO_CHANGE) -> Finished:
    """Run a session of the project, or list them."""
    command = ("-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), "--script-mode=none")
    return python(*command, *arguments, env={"NO_COLOR": "1", **env})


def sessions() -> dict[str, set[str]]:
    """Every session of the project, with its tags."""
    # As JSON nox lists what would run, which is not all of them; the oldest has tags only there.
    names = re.findall(r"^[*-] (\S+)", nox("-l").stdout, re.MULTILINE)
    listed = json.loads(nox("--list", "--json", "-s", *names).stdout)
    return {session["session"]: set(session["tags"]) for session in listed}


@contextlib.contextmanager
def running(
    *arguments: str, cwd: Path | None = None, env: Environment = _NO_CHANGE
) -> Iterator[subprocess.Popen[str]]:
    """Start Python for a block, with pipes for its stdout and stderr."""
    mark = uuid.uuid4().hex
    wanted = {**os.environ, **env, _MARK: mark}
    with _ctrl_c_for_children():
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, *arguments],
            cwd=cwd,
            env={name: value for name, value in wanted.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    with process:  # closes the pipes, and waits
        try:
            yield process
        finally:
            _end(process.pid, mark)


@contextlib.contextmanager
def _ctrl_c_for_children() -> Iterator[None]:
    """Let children start with Ctrl-C as ever, also where it is ignored: ``nohup nox &``.

    They inherit that a signal is ignored, but not that it is handled. To set it in the child,
    between fork and exec, is not safe in a process with threads, and JAX warns of such a fork.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(pid: int, mark: str) -> None:
    """End a process's session, and what it has started in others: the compilers of targets."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter: macOS's zombies
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:  # Windows has no sessions
            os.kill(pid, signal.SIGTERM)
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if f"{_MARK}={mark}".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


def wait_until(
    holds: Callable[[], object], process: subprocess.Popen[str], within: float = 60.0
) -> None:
    """Wait for what a process is about to do; one that ends before has failed the test."""
    end = time.monotonic() + within
    while not holds():
        assert process.poll() is None, process.communicate(timeout=10)
        assert time.monotonic() < end, f"nothing came within {within:g} s"
        time.sleep(0.05)


def has_ended(pid: int, within: float = 15.0) -> bool:
    """Whether any process, whoever has started it, is gone soon; one that is not reaped is."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


STEP_COMPILED = Compile(
    function="step",
    signature=("float32[3]",),
    platform="cpu",
    call_site=CallSite("train.py:42 in main"),
    eager=False,
    from_disk=False,
    trace_s=0.0,
    lower_s=0.0,
    compile_s=0.1,
    causes=(),
)
"""A compile for tests to change: `msgspec.structs.replace`."""


# --- Projects of users, in which pytest runs -----------------------------------------------------

STEP = """
import jax, numpy as np, pytest

@jax.jit
def step(x):
    return 2 * x

def arr(n):
    return np.ones(n, np.float32)
"""


class Project:
    """A folder with tests, in which pytest is run as a user would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pytest.ini").write_text("[pytest]\n")

    def write(self, name: str, text: str, *, head: str = STEP) -> None:
        """Write a file; by default it begins with a jitted ``step``, and arrays for it."""
        (self.root / name).write_text(head + text)

    def run(self, *arguments: str, env: Environment = _NO_CHANGE) -> Finished:
        """Run pytest in a terminal of 100 columns; with CI set, it would write longer lines."""
        command = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
        terminal = {"CI": None, "BUILD_NUMBER": None, "COLUMNS": "100", "NO_COLOR": "1"}
        return python(*command, *arguments, cwd=self.root, env={**terminal, **env})


# --- What is seen of a compile --------------------------------------------------------------------


def observed(work: Callable[[], object]) -> list[InFlightCompile]:
    """What was seen of each compile, with a history of its own."""
    seen: list[InFlightCompile] = []
    with registry.own_history(), registry.listening(seen.append):
        work()
    return seen


def described(work: Callable[[], object]) -> Program:
    """The program of the one compile that the work needs."""
    (seen,) = observed(work)
    assert seen.program is not None
    return seen.program


# --- Listeners of a test's own --------------------------------------------------------------------


def unregister(listener: events.Handlers) -> None:
    """Take listeners back from JAX; what is gone already is no error.

    Unregistering became public in 0.8.1; before, the same functions are there with a leading
    underscore and another ending. `jax.monitoring.clear_event_listeners` may have been called.
    """
    for kind, callback in listener.items():
        events._told[kind] = [one for one in events._told[kind] if one != callback]
        public = getattr(monitoring, f"unregister_{kind}_listener", None)
        if public is None:
            public = getattr(_monitoring, f"_unregister_{kind}_listener_by_callback")
        with contextlib.suppress(AssertionError, ValueError):
            public(callback)
