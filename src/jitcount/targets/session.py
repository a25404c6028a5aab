"""The target compiles of one block: each program, once for each target, while the block goes on.

A program is lowered for the targets' platforms in a thread of its own, beside the user's program,
and handed on at once. The results come into dictionaries that are complete when the block ends.
"""

from __future__ import annotations

import os
import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount.observe.observation import Portable
from jitcount.targets.carry import Cargo, NotCarriedError, carry
from jitcount.targets.compiling import STOPPED, Job, compilers
from jitcount.targets.result import OnTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount.targets.names import Target

    Results = dict[str, OnTarget]


@dataclass(slots=True)
class _Program:
    """What JAX compiles for this machine."""

    portable: Portable | None
    """Until it has been carried."""

    results: Results = field(default_factory=dict)


class Session:
    """What one block wants from the compilers."""

    def __init__(self, targets: Sequence[Target], *, keep_hlo: bool, timeout: float) -> None:
        self._targets = targets
        self._keep_hlo = keep_hlo
        self._timeout = timeout
        self._programs: queue.SimpleQueue[_Program | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._results: list[Results] = []
        self._taken: dict[int, Results] = {}
        self._done = 0
        self._jobs: dict[str, tuple[Job, list[Results]]] = {}
        self._is_stopped = False
        self._process = os.getpid()
        self.taker = self.take
        """One object: a bound method is a new one each time."""

    def begin(self) -> None:
        """Get the compilers ready, beside the user's program."""
        for target in self._targets:
            compilers().get_ready(target)
        threading.Thread(target=self._carry_all, name="jitcount carrier", daemon=True).start()

    def take(self, portable: Portable) -> None:
        """Take one more program, before JAX has compiled it."""
        program = _Program(portable)
        with self._changed:
            self._results.append(program.results)
            self._taken[id(portable)] = program.results
        self._programs.put(program)

    def results_of(self, portable: Portable | None) -> Results:
        """The results of a program that JAX has compiled; they come in as the compilers give them.

        One that was not taken, because the block began in the midst of it, has its reason there.
        """
        if portable is None or id(portable) not in self._taken:
            portable = Portable()
            self.take(portable)
        return self._taken.pop(id(portable))

    def is_forked(self) -> bool:
        """Whether this is a child of the process that has the compilers: nothing comes here."""
        return os.getpid() != self._process

    def progress(self) -> tuple[int, int]:
        """How many results there are, and how many there will be."""
        return self._done, len(self._results) * len(self._targets)

    def wait(self, seconds: float) -> bool:
        """Wait for the results for so long; whether all are there."""
        with self._changed:
            return self._changed.wait_for(self._is_complete, timeout=seconds)

    def end(self) -> None:
        """Let the carrier go, once all results are there."""
        self._programs.put(None)
        names = [target.name for target in self._targets]
        for results in self._results:  # in the order that they were asked for
            # One may be missing: of a compile that another thread made while the block ended.
            ordered = {name: results.get(name) or _stopped(name) for name in names}
            results.clear()
            results.update(ordered)
        self._jobs.clear()  # whoever keeps the log keeps no programs

    def stop(self) -> None:
        """End everything at once; what has no result yet gets one that says so."""
        self._is_stopped = True
        self._programs.put(None)
        with self._changed:
            jobs = [job for job, _ in self._jobs.values()]
        compilers().stop(jobs)
        with self._changed:
            for results in self._results:
                for target in self._targets:
                    results.setdefault(target.name, _stopped(target.name))
            self._jobs.clear()

    def _is_complete(self) -> bool:
        done, wanted = self.progress()
        return done >= wanted

    def _carry_all(self) -> None:
        while (program := self._programs.get()) is not None and not self._is_stopped:
            carried: dict[str, Cargo | str] = {}
            for target in self._targets:
                try:
                    if target.platform not in carried:
                        carried[target.platform] = _cargo_or_reason(program, target.platform)
                    cargo = carried[target.platform]
                    if isinstance(cargo, Cargo):
                        self._submit(program, target, cargo)
                        continue
                    reason = cargo
                except Exception as error:  # noqa: BLE001 (it must have a result, whatever happens)
                    reason = f"not carried over: {type(error).__name__}: {error}"
                self._tell([program.results], OnTarget(target=target.name, error=reason))
            program.portable = None

    def _submit(self, program: _Program, target: Target, cargo: Cargo) -> None:
        """Have a program compiled, unless the same one is or was."""
        key = f"{target.name} {cargo.key}"
        with self._changed:
            if self._is_stopped:
                return
            known = self._jobs.get(key)
            if known is not None:
                _, receivers = known
                finished = receivers[0].get(target.name)
                if finished is None:
                    receivers.append(program.results)
                    return
            else:
                receivers = [program.results]
                job = Job(target, cargo, self._keep_hlo, self._timeout, self._teller(receivers))
                self._jobs[key] = job, receivers
                finished = None
        if finished is not None:
            self._tell([program.results], finished)
        else:
            compilers().submit(job)

    def _teller(self, receivers: list[Results]) -> Callable[[OnTarget], None]:
        return lambda result: self._tell(receivers, result)

    def _tell(self, receivers: list[Results], result: OnTarget) -> None:
        with self._changed:
            for results in receivers:
                if result.target not in results:
                    results[result.target] = result
                    self._done += 1
            self._changed.notify_all()


def _stopped(name: str) -> OnTarget:
    return OnTarget(target=name, error=STOPPED)


def _cargo_or_reason(program: _Program, platform: str) -> Cargo | str:
    try:
        return carry(program.portable or Portable(), platform)
    except NotCarriedError as error:
        return str(error)
