"""The target compiles of one block: each program, once for each target, while the block goes on.

The carrier, a thread of the session's own, lowers each program for the targets' platforms, beside
the user's program, and hands the request to the compilers at once. The results come into
dictionaries that the log shows, and that are complete when the recorder has ended the block.
"""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from jitcount._observe.in_flight import LoweredProgram
from jitcount._targets.compilers import STOPPED, Job, compilers, failed
from jitcount._targets.lowering import CompileRequest, NotPortableError, lower_for_target
from jitcount._targets.result import OnTarget
from jitcount._targets.worker_profile import plain_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from queue import SimpleQueue

    from jitcount._targets.names import Target
    from jitcount._targets.result import LeftOut

    Results = dict[str, OnTarget]
    Key = tuple[str, str]

# As many bytes of requests may wait for compilers. A program can hold large constants: what is not
# yet lowered has them from the user's program, what is has copies.
_ENOUGH = 256 << 20


@dataclass(slots=True, eq=False)
class _Awaited:
    """A program that JAX compiles for this machine, and what the targets will say of it."""

    lowered_program: LoweredProgram | None
    """Until it has been carried."""

    results: Results = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


@dataclass(slots=True, eq=False)
class _Sent:
    """What one target's compiler was asked once, whichever programs want it."""

    job: Job | None
    """Until it has a result: it holds the request."""

    programs: list[_Awaited]
    result: OnTarget | None = None


class Session:
    """What one block wants from the compilers."""

    def __init__(
        self, targets: Sequence[Target], *, keep_hlo: bool, timeout: float, profile: bool = False
    ) -> None:
        self._targets = targets
        self._keep_hlo = keep_hlo
        self._profile = profile
        self._timeout = timeout
        self._programs: SimpleQueue[_Awaited | None] = _new_queue()
        self._changed = threading.Condition()
        self._results: list[Results] = []
        self._taken: dict[int, Results] = {}
        self._done = 0
        self._sent: dict[Key, _Sent] = {}
        self._bytes_under_way = 0
        self._is_stopped = False
        self._process = os.getpid()
        self.taker = self.take
        """One object: a bound method is a new one each time."""

    def begin(self) -> None:
        """Get the compilers ready, beside the user's program."""
        for target in self._targets:
            compilers().get_ready(target)
        threading.Thread(target=self._carry_all, name="jitcount carrier", daemon=True).start()

    def take(self, lowered_program: LoweredProgram) -> None:
        """Take one more program, in the thread in which JAX is about to compile it."""
        if self.is_forked():  # the carrier stayed with the parent, maybe with the lock in its hands
            return
        program = _Awaited(_without_modules(lowered_program))
        with self._changed:
            self._results.append(program.results)
            self._taken[id(lowered_program)] = program.results
        self._programs.put(program)

    def results_of(self, lowered_program: LoweredProgram | None) -> Results:
        """The results of a program that JAX has compiled, for the log; the compilers fill them.

        A program that was not taken, because the block began in the midst of its compile, has that
        reason there.
        """
        if self.is_forked():
            return {}
        with self._changed:
            if lowered_program is None or id(lowered_program) not in self._taken:
                lowered_program = LoweredProgram(
                    reason="the block began while it was being compiled"
                )
                self.take(lowered_program)
            return self._taken.pop(id(lowered_program))

    def is_forked(self) -> bool:
        """Whether this is a child of the process that has the compilers: nothing comes here."""
        return os.getpid() != self._process

    def progress(self) -> tuple[int, int]:
        """How many results there are, and how many there will be."""
        with self._changed:
            return self._done, len(self._results) * len(self._targets)

    def wait(self, seconds: float) -> bool:
        """Wait for the results for so long; whether all are there."""
        with self._changed:
            return self._changed.wait_for(self._is_complete, timeout=seconds)

    def end(self) -> None:
        """Let the carrier go; the recorder has waited for all results."""
        self._programs.put(None)
        with self._changed:
            # One may be missing: of a compile that another thread made while the block ended.
            self._give_up_on_the_rest()
            for results in self._results:  # in the order that the targets were asked for
                for target in self._targets:
                    results[target.name] = results.pop(target.name)

    def stop(self) -> None:
        """End everything at once; what has no result yet gets one that says so."""
        self._is_stopped = True
        self._programs.put(None)
        with self._changed:
            jobs = [sent.job for sent in self._sent.values() if sent.job is not None]
        compilers().stop(jobs)
        with self._changed:
            self._give_up_on_the_rest()

    def _give_up_on_the_rest(self) -> None:
        """Say of what has no result that it will have none; under the lock."""
        for sent in self._sent.values():
            for program in sent.programs:
                if sent.job is not None:
                    self._give(program, failed(sent.job, STOPPED))
        for results in self._results:
            for target in self._targets:
                results.setdefault(target.name, OnTarget(target=target.name, error=STOPPED))
        self._sent.clear()  # the log keeps the session: it should not keep the programs too
        self._changed.notify_all()

    def _is_complete(self) -> bool:
        done, wanted = self.progress()
        return done >= wanted

    def _carry_all(self) -> None:
        """The life of the carrier's thread."""
        while (program := self._programs.get()) is not None and not self._is_stopped:
            with self._changed:
                self._changed.wait_for(lambda: self._bytes_under_way < _ENOUGH or self._is_stopped)
            self._carry(program)

    def _carry(self, program: _Awaited) -> None:
        """Lower one program for each platform, and hand it on."""
        lowered_program, program.lowered_program = program.lowered_program or LoweredProgram(), None
        carried: dict[str, CompileRequest | str] = {}
        for target in self._targets:
            try:
                if target.platform not in carried:
                    carried[target.platform] = self._cargo_or_reason(
                        lowered_program, target.platform
                    )
                cargo_or_reason = carried[target.platform]
                if isinstance(cargo_or_reason, CompileRequest):
                    program.left_out = cargo_or_reason.left_out
                    self._submit(program, target, cargo_or_reason)
                    continue
                reason = cargo_or_reason
            except Exception as error:  # noqa: BLE001 (it must have a result, whatever happens)
                reason = f"not carried over: {type(error).__name__}: {error}"
            with self._changed:
                self._give(program, OnTarget(target=target.name, error=reason))
                self._changed.notify_all()

    def _cargo_or_reason(
        self, lowered_program: LoweredProgram, platform: str
    ) -> CompileRequest | str:
        try:
            request = lower_for_target(lowered_program, platform, keep_places=self._profile)
        except NotPortableError as error:
            return str(error)
        if not self._profile or lowered_program.lowering is None:
            return request
        return replace(request, stacks=plain_stacks(lowered_program.lowering.jaxpr))

    def _submit(self, program: _Awaited, target: Target, request: CompileRequest) -> None:
        """Hand a request to the compilers, unless this session has done so with the same one."""
        key = target.name, request.fingerprint
        with self._changed:
            if self._is_stopped:
                return
            sent = self._sent.get(key)
            if sent is not None:
                if sent.result is None:
                    sent.programs.append(program)
                else:
                    self._give(program, sent.result)
                    self._changed.notify_all()
                return
            tell = functools.partial(self._tell, key, len(request.bytecode))
            job = Job(
                target,
                request,
                request.fingerprint,
                self._keep_hlo,
                self._timeout,
                tell,
                profile=self._profile,
            )
            self._sent[key] = _Sent(job, [program])
            self._bytes_under_way += len(request.bytecode)
        compilers().submit(job)

    def _tell(self, key: Key, size: int, result: OnTarget) -> None:
        """Give a result to all that wait for it; in the compiler's thread."""
        with self._changed:
            self._bytes_under_way -= size
            sent = self._sent.get(key)
            if sent is not None:  # or it was given up
                for program in sent.programs:
                    self._give(program, result)
                sent.job, sent.programs, sent.result = None, [], result
            self._changed.notify_all()

    def _give(self, program: _Awaited, result: OnTarget) -> None:
        """Put a result where the log shows it; under the lock."""
        if result.target not in program.results:
            if program.left_out:  # by its own lines, where another was the same
                result = msgspec.structs.replace(result, left_out=program.left_out)
            program.results[result.target] = result
            self._done += 1


def _new_queue() -> SimpleQueue[_Awaited | None]:
    # Only where there are targets: JAX imports no `queue`, and a script may have one of its own.
    import queue  # noqa: PLC0415

    return queue.SimpleQueue()


def _without_modules(lowered_program: LoweredProgram) -> LoweredProgram:
    """What carrying needs: JAX would let go of the modules, and of the constants in them."""
    lowering, compilation = lowered_program.lowering, lowered_program.compilation
    return replace(
        lowered_program,
        lowering=lowering and replace(lowering, module=None),
        compilation=compilation and replace(compilation, module=None),
    )
