"""The client of all compiler processes: which job comes next, and how many are at work.

A compiler is started when a block that wants it begins, so that it is ready when the first program
comes. It serves all targets of its platform, one job at a time, and stays for a while for the next
block. As many work at once as there are cores. One that ends before its time takes one job with
it; the next job starts another.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount._targets.names import Target, TargetTooSmallError, topology
from jitcount._targets.process import CompilerProcess
from jitcount._targets.protocol import Answer, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._targets.protocol import Task

# To load another compiler takes as long as a few small programs.
_WORTH_ANOTHER = 3

# How long a compiler waits for the next job.
_IDLE_S = 60.0

# How long one may take to start where no job waits for it; a job that does sets its own limit.
_START_S = 300.0

STOPPED = "stopped before it was compiled"


@dataclass(slots=True)
class Job:
    """A task for the compiler of one target."""

    target: Target
    task: Task
    module: bytes
    timeout: float
    """Seconds that the task may take; also the start of a compiler that it waits for."""

    on_result: Callable[[Answer], None]
    """Called once, from the compiler's thread."""

    submitted_at: float = 0.0
    process: CompilerProcess | None = None
    """The process that is at work on the job, while it is."""

    is_sent: bool = False
    """Whether a compiler was asked, whatever became of it."""

    is_stopped: bool = False


@dataclass(slots=True)
class _Platform:
    """The compilers of one platform, and the jobs that wait for them."""

    waiting: deque[Job] = field(default_factory=deque)
    first: Target | None = None
    compilers: int = 0
    idle: int = 0
    starting: set[CompilerProcess] = field(default_factory=set)
    ready: set[CompilerProcess] = field(default_factory=set)
    gave_up_at: float = 0.0
    """When a start last failed for all jobs that waited for it: these get no other."""

    failure: str = ""
    """The error of the last start that failed."""


class Compilers:
    """Starts compilers in processes of their own, hands jobs to them, and ends them.

    Args:
        retry_start: whether a job whose compiler dies at its start gets another one. For a start
            that takes too long no job gets another.
    """

    def __init__(self, *, retry_start: bool = True) -> None:
        self._retry_start = retry_start
        self.forget()

    def forget(self) -> None:
        """Begin with none: after a fork the threads stayed with the parent, and their compilers."""
        self._changed = threading.Condition()
        self._platforms: dict[str, _Platform] = {}
        self._processes: set[CompilerProcess] = set()
        self._is_closed = False

    def get_ready(self, target: Target) -> None:
        """Start a target's compiler, unless one of its platform runs already."""
        with self._changed:
            platform = self._platforms.setdefault(target.platform, _Platform())
            platform.first = platform.first or target
            if platform.compilers == 0:
                self._start(platform)

    def submit(self, job: Job) -> None:
        """Have a job done; its `on_result` is called with the answer."""
        with self._changed:
            platform = self._platforms.setdefault(job.target.platform, _Platform())
            platform.first = platform.first or job.target
            job.submitted_at = time.monotonic()
            platform.waiting.append(job)
            if not platform.ready:
                for process in platform.starting:
                    process.hurry(job.timeout)
            running = sum(each.compilers for each in self._platforms.values())
            is_worth_it = len(platform.waiting) - platform.idle >= _WORTH_ANOTHER
            if platform.compilers == 0 or (is_worth_it and running < cores()):
                self._start(platform)
            self._changed.notify_all()

    def ask(self, target: Target, task: Task, module: bytes, timeout: float) -> Answer:
        """Have a task done, and wait for its answer; what goes wrong is the answer's `error`."""
        answers: list[Answer] = []
        is_done = threading.Event()

        def on_result(answer: Answer) -> None:
            answers.append(answer)
            is_done.set()

        self.submit(Job(target, task, module, timeout, on_result))
        is_done.wait()
        return answers[0]

    def stop(self, jobs: list[Job]) -> None:
        """Give jobs up at once, under way or not: a process at work on one is killed."""
        with self._changed:
            for job in jobs:
                job.is_stopped = True
                if job.process is not None:
                    job.process.kill()
            self._changed.notify_all()

    def close(self) -> None:
        """Kill all compilers, and take no more jobs."""
        with self._changed:
            self._is_closed = True
            for process in self._processes:
                process.kill()
            self._changed.notify_all()

    def pids(self) -> list[int]:
        """The ids of the compilers' processes, busy or idle."""
        with self._changed:
            return [process.pid for process in self._processes]

    def _start(self, platform: _Platform) -> None:
        platform.compilers += 1
        threading.Thread(
            target=self._serve, args=(platform,), name="jitcount compiler", daemon=True
        ).start()

    def _serve(self, platform: _Platform) -> None:
        """The life of one compiler's thread."""
        process = self._started(platform, platform.first)
        if process is None and self._is_dispensable(platform):
            return
        while (job := self._next_job(platform)) is not None:
            process, answer = self._answered(platform, process, job)
            job.on_result(answer)
            del job, answer  # while the next one is waited for, these need not be kept
        if process is not None:
            self._end(platform, process)

    def _answered(
        self, platform: _Platform, process: CompilerProcess | None, job: Job
    ) -> tuple[CompilerProcess | None, Answer]:
        """The process for the next job, and the answer to this one."""
        if job.is_stopped:
            return process, _failed(job, STOPPED)
        if process is not None and process.has_ended():  # while it was idle
            self._end(platform, process)
            process = None
        if process is None and job.submitted_at >= platform.gave_up_at:
            process = self._started(platform, job.target, job)
        if process is None:
            return None, _failed(job, platform.failure)
        try:
            return process, self._asked(process, job)
        except TargetTooSmallError as error:
            return process, _failed(job, str(error))
        except Exception as error:  # noqa: BLE001 (it must have a result, whatever happens)
            self._end(platform, process)
            return None, _failed(job, str(error))

    def _is_dispensable(self, platform: _Platform) -> bool:
        """Whether a thread whose compiler did not start may end, because others did start."""
        with self._changed:
            is_so = bool(platform.ready)
            platform.compilers -= is_so
            return is_so

    def _next_job(self, platform: _Platform) -> Job | None:
        """Wait for the next job; None when none came for a while."""
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

    def _started(
        self, platform: _Platform, target: Target | None, job: Job | None = None
    ) -> CompilerProcess | None:
        """A process that is ready; None where it did not get so far, and `failure` says why.

        Started before the first job, which would pay for it. The start may take as long as the
        most impatient of the jobs that wait for it.
        """
        try:
            process = CompilerProcess()
        except OSError as error:
            self._note_failure(platform, f"the compiler could not be started: {error}")
            return None
        with self._changed:
            self._processes.add(process)
            platform.starting.add(process)
            if self._is_closed:  # since this thread was started
                process.kill()
            # Not the jobs themselves: a start takes long, and would keep them.
            timeouts = [each.timeout for each in platform.waiting if not platform.ready]
            if job is not None:
                timeouts.append(job.timeout)
                job.process = process  # to be killed with it
        try:
            if target is not None:
                first = Request(topology=topology(target, 1))
                process.ask(first, min(timeouts, default=_START_S))
        except Exception as error:  # noqa: BLE001 (whatever it is, the job gets it)
            self._note_failure(platform, str(error), is_final=process.timed_out)
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

    def _note_failure(self, platform: _Platform, error: str, *, is_final: bool = False) -> None:
        platform.failure = error
        if is_final or not self._retry_start:
            platform.gave_up_at = time.monotonic()

    def _asked(self, process: CompilerProcess, job: Job) -> Answer:
        request = Request(
            topology=topology(job.target, job.task.devices), task=job.task, block=job.module
        )
        with self._changed:
            if job.is_stopped:
                return _failed(job, STOPPED)
            job.process = process
            job.is_sent = True
        try:
            return process.ask(request, job.timeout)
        finally:
            with self._changed:
                job.process = None

    def _end(self, platform: _Platform, process: CompilerProcess) -> None:
        with self._changed:
            platform.ready.discard(process)
        process.close()
        with self._changed:
            self._processes.discard(process)


def _failed(job: Job, error: str) -> Answer:
    """The answer to a job that has no other; that it was stopped says more than how."""
    return Answer(error=STOPPED if job.is_stopped else error)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_compilers = Compilers()


def compilers() -> Compilers:
    """The compilers that all blocks of this process share."""
    return _compilers


def close_compilers() -> None:
    """Kill the compilers that blocks share; called when the process ends."""
    compilers().close()


atexit.register(close_compilers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: compilers().forget())
