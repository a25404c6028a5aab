"""The compilers of this process: which program comes next, and how many are at work.

A compiler is started when a block that wants it begins, so that it is ready when the first program
comes. It serves all targets of its platform, one program at a time, and stays for a while for the
next block. As many work at once as there are cores. One that ends before its time takes one
compile with it; the next compile starts another.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount._targets.names import Target, TargetTooSmallError, topology
from jitcount._targets.process import CompilerProcess
from jitcount._targets.result import OnTarget
from jitcount._targets.worker_profile import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._targets.lowering import CompileRequest

# To load another compiler takes as long as a few small programs.
_WORTH_ANOTHER = 3

# How long a compiler waits for the next block.
_IDLE_S = 60.0

# How long one may take to start where no program waits for it; one that does sets its own limit.
_START_S = 300.0

STOPPED = "stopped before it was compiled"


@dataclass(slots=True)
class Job:
    """One request for one target."""

    target: Target
    request: CompileRequest
    fingerprint: str
    keep_hlo: bool
    timeout: float
    tell: Callable[[OnTarget], None]
    """Called once, from the compiler's thread."""

    profile: bool = False
    take: Callable[[bytes], None] | None = None
    """Called before that with the executable, where the request asks for one."""

    submitted_at: float = 0.0
    process: CompilerProcess | None = None
    """While it is at work on this."""

    is_sent: bool = False
    is_stopped: bool = False


def failed(job: Job, error: str) -> OnTarget:
    """The result of a job that has no other; that it was stopped says more than how."""
    fingerprint = job.fingerprint if job.is_sent else ""
    reason = STOPPED if job.is_stopped else error
    return OnTarget(target=job.target.name, fingerprint=fingerprint, error=reason)


@dataclass(slots=True)
class _Platform:
    """The compilers of one platform, and what waits for them."""

    waiting: deque[Job] = field(default_factory=deque)
    first: Target | None = None
    compilers: int = 0
    idle: int = 0
    starting: set[CompilerProcess] = field(default_factory=set)
    ready: set[CompilerProcess] = field(default_factory=set)
    gave_up_at: float = 0.0
    """When a start last took too long: it did so for all jobs that waited then."""

    failure: str = ""
    """What is to be said of the last start that failed."""


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
        """Have a request compiled; the job's `tell` gets the result."""
        with self._changed:
            platform = self._platforms.setdefault(job.target.platform, _Platform())
            platform.first = platform.first or job.target
            job.submitted_at = time.monotonic()
            platform.waiting.append(job)
            if not platform.ready:
                for process in platform.starting:
                    process.hurry(job.timeout)
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
        process = self._begun(platform, platform.first)
        if process is None and self._is_dispensable(platform):
            return
        while (job := self._next(platform)) is not None:
            process, result = self._done(platform, process, job)
            job.tell(result)
            del job  # while the next one is waited for, this one need not be kept
        if process is not None:
            self._end(platform, process)

    def _done(
        self, platform: _Platform, process: CompilerProcess | None, job: Job
    ) -> tuple[CompilerProcess | None, OnTarget]:
        """The result of a job, and the process for the next one."""
        if job.is_stopped:
            return process, failed(job, STOPPED)
        if process is not None and process.has_ended():  # while it was idle
            self._end(platform, process)
            process = None
        if process is None and job.submitted_at >= platform.gave_up_at:
            process = self._begun(platform, job.target, job)
        if process is None:
            return None, failed(job, platform.failure)
        try:
            return process, self._compiled(process, job)
        except TargetTooSmallError as error:
            return process, failed(job, str(error))
        except Exception as error:  # noqa: BLE001 (it must have a result, whatever happens)
            self._end(platform, process)
            return None, failed(job, str(error))

    def _is_dispensable(self, platform: _Platform) -> bool:
        """Whether a thread whose compiler did not start may go: there are others that did."""
        with self._changed:
            is_so = bool(platform.ready)
            platform.compilers -= is_so
            return is_so

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

    def _begun(
        self, platform: _Platform, target: Target | None, job: Job | None = None
    ) -> CompilerProcess | None:
        """A process that is ready; None where it did not get so far, and `failure` says why.

        The first program would pay for the compiler's own start. That has the time that a program
        has: the one that waits for it, or the most impatient.
        """
        try:
            process = CompilerProcess()
        except OSError as error:
            platform.failure = f"the compiler could not be started: {error}"
            return None
        with self._changed:
            self._processes.add(process)
            platform.starting.add(process)
            # Not the jobs themselves: a start takes long, and would keep them.
            timeouts = [each.timeout for each in platform.waiting if not platform.ready]
            if job is not None:
                timeouts.append(job.timeout)
                job.process = process  # to be killed with it
        try:
            if target is not None:
                process.start(topology(target, 1), min(timeouts, default=_START_S))
        except Exception as error:  # noqa: BLE001 (whatever it is, the job is told)
            platform.failure = str(error)
            if process.timed_out:
                platform.gave_up_at = time.monotonic()
            self._end(platform, process)
            return None
        else:
            with self._changed:
                platform.ready.add(process)
            return process
        finally:
            with self._changed:
                platform.starting.discard(process)
                if job is not None:
                    job.process = None

    def _compiled(self, process: CompilerProcess, job: Job) -> OnTarget:
        asked: dict[str, Any] = {
            "program": True,
            "topology": topology(job.target, job.request.devices),
            "devices": job.request.devices,
            "keep_hlo": job.keep_hlo,
            "profile": job.profile,
            "stacks": job.request.stacks,
            **job.request.how,
        }
        with self._changed:
            if job.is_stopped:
                return failed(job, STOPPED)
            job.process = process
            job.is_sent = True
        try:
            figures, block = process.ask(asked, job.request.bytecode, job.timeout)
        finally:
            with self._changed:
                job.process = None
        if job.take is not None:
            job.take(block)
            block = b""
        profile = figures.pop("profile", None)
        return OnTarget(
            target=job.target.name,
            fingerprint=job.fingerprint,
            profile=None if profile is None else profile_from(profile),
            **figures,
            hlo=block.decode() or None,
        )

    def _end(self, platform: _Platform, process: CompilerProcess) -> None:
        with self._changed:
            platform.ready.discard(process)
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
