"""The compilers of this process: which program comes next, and how many are at work.

A compiler is started when a block that wants it begins, so that it is ready when the first program
comes. It serves all targets of its platform, one program at a time, and stays for a while for the
next block. As many work at once as there are cores. One that ends before its time takes one
compile with it; the next compile starts another.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount.targets.names import Target, TargetTooSmallError, topology
from jitcount.targets.process import CompilerEndedError, CompilerProcess
from jitcount.targets.result import OnTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.targets.carry import Cargo

# To load another compiler takes as long as a few small programs.
_WORTH_ANOTHER = 3

# How long a compiler waits for the next block.
_IDLE_S = 60.0

STOPPED = "stopped before it was compiled"


@dataclass(slots=True)
class Job:
    """One cargo for one target."""

    target: Target
    cargo: Cargo
    fingerprint: str
    keep_hlo: bool
    timeout: float
    tell: Callable[[OnTarget], None]
    """Called once, from the compiler's thread."""

    process: CompilerProcess | None = None
    """While it is at work on this."""

    is_sent: bool = False
    is_stopped: bool = False


def failed(job: Job, error: str) -> OnTarget:
    """The result of a job that has no other."""
    fingerprint = job.fingerprint if job.is_sent else ""
    return OnTarget(target=job.target.name, fingerprint=fingerprint, error=error)


@dataclass(slots=True)
class _Platform:
    """The compilers of one platform, and what waits for them."""

    waiting: deque[Job] = field(default_factory=deque)
    first: Target | None = None
    compilers: int = 0
    idle: int = 0


class Compilers:
    """All compilers of a process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with none: after a fork the threads stayed with the parent, and their compilers."""
        self._changed = threading.Condition()
        self._platforms: dict[str, _Platform] = {}
        self._processes: set[CompilerProcess] = set()
        self._is_closed = False

    def get_ready(self, target: Target) -> None:
        """Start a target's compiler, if none is there."""
        with self._changed:
            platform = self._platforms.setdefault(target.platform, _Platform())
            platform.first = platform.first or target
            if platform.compilers == 0:
                self._start(platform)

    def submit(self, job: Job) -> None:
        """Have a cargo compiled; the job's `tell` gets the result."""
        with self._changed:
            platform = self._platforms.setdefault(job.target.platform, _Platform())
            platform.first = platform.first or job.target
            platform.waiting.append(job)
            are_all = sum(each.compilers for each in self._platforms.values())
            is_worth_it = len(platform.waiting) - platform.idle >= _WORTH_ANOTHER
            if platform.compilers == 0 or (is_worth_it and are_all < cores()):
                self._start(platform)
            self._changed.notify_all()

    def stop(self, jobs: list[Job]) -> None:
        """Let go of a session's jobs at once, under way or not."""
        with self._changed:
            for job in jobs:
                job.is_stopped = True
                if job.process is not None:
                    job.process.kill()
            self._changed.notify_all()

    def close(self) -> None:
        """End all compilers."""
        with self._changed:
            self._is_closed = True
            for process in self._processes:
                process.kill()
            self._changed.notify_all()

    def pids(self) -> list[int]:
        """The numbers of the processes at work or in wait."""
        with self._changed:
            return [process.pid for process in self._processes]

    def _start(self, platform: _Platform) -> None:
        platform.compilers += 1
        threading.Thread(
            target=self._serve, args=(platform,), name="jitcount compiler", daemon=True
        ).start()

    def _serve(self, platform: _Platform) -> None:
        """The life of one compiler's thread."""
        process: CompilerProcess | None = None
        with contextlib.suppress(Exception):  # the first job says it
            process = self._begun(platform.first)
        while (job := self._next(platform)) is not None:
            if process is not None and process.has_ended():  # while it was idle
                self._end(process)
                process = None
            try:
                process = process or self._begun(job.target)
                result = self._compiled(process, job)
            except TargetTooSmallError as error:
                result = failed(job, str(error))
            except Exception as error:  # noqa: BLE001 (it must have a result, whatever happens)
                text = str(error) if process else f"the compiler could not be started: {error}"
                result = failed(job, STOPPED if job.is_stopped else text)
                if process is not None:
                    self._end(process)
                process = None
            job.tell(result)
        if process is not None:
            self._end(process)

    def _next(self, platform: _Platform) -> Job | None:
        """Wait for the next job; None when there was none for a while."""
        with self._changed:
            platform.idle += 1
            try:
                self._changed.wait_for(lambda: platform.waiting or self._is_closed, timeout=_IDLE_S)
                if platform.waiting and not self._is_closed:
                    return platform.waiting.popleft()
                platform.compilers -= 1
                return None
            finally:
                platform.idle -= 1

    def _begun(self, target: Target | None) -> CompilerProcess:
        process = CompilerProcess()
        with self._changed:
            self._processes.add(process)
        if target is not None:
            # The first program would pay for the compiler's own start. A process that ends here
            # already says so at the first program.
            with contextlib.suppress(CompilerEndedError):
                process.ask({"topology": topology(target, 1)}, b"", timeout=300.0)
        return process

    def _compiled(self, process: CompilerProcess, job: Job) -> OnTarget:
        asked: dict[str, Any] = {
            "program": True,
            "topology": topology(job.target, job.cargo.devices),
            "devices": job.cargo.devices,
            "keep_hlo": job.keep_hlo,
            **job.cargo.how,
        }
        with self._changed:
            if job.is_stopped:
                return failed(job, STOPPED)
            job.process = process
            job.is_sent = True
        try:
            figures, hlo = process.ask(asked, job.cargo.bytecode, job.timeout)
        finally:
            with self._changed:
                job.process = None
        return OnTarget(
            target=job.target.name,
            fingerprint=job.fingerprint,
            **figures,
            hlo=hlo.decode() or None,
        )

    def _end(self, process: CompilerProcess) -> None:
        process.close()
        with self._changed:
            self._processes.discard(process)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_compilers = Compilers()


def compilers() -> Compilers:
    """The compilers of this process."""
    return _compilers


def close_compilers() -> None:
    """End them all; called when the process ends."""
    compilers().close()


atexit.register(close_compilers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: compilers().forget())
