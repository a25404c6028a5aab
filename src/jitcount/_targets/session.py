"""The target compiles of one block: each program, once for each target, while the block goes on.

A thread of the session's own, the lowering thread, lowers each program for the targets' platforms,
beside the user's program, and submits it to the compilers at once. The results are complete when
the recorder has ended the block.
"""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import dataclass, field, replace
from operator import ge
from typing import TYPE_CHECKING

import msgspec

from jitcount._observe.in_flight import LoweredProgram
from jitcount._targets.compilers import STOPPED, Job, compilers
from jitcount._targets.lowering import CompileRequest, NotPortableError, lower_for_target
from jitcount._targets.result import OnTarget, fallback_sentence
from jitcount._targets.worker_profile import encode_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from queue import SimpleQueue

    from jitcount._observe.call_site import CallSite
    from jitcount._targets.names import Target
    from jitcount._targets.protocol import Answer, WithoutTriton
    from jitcount._targets.result import LeftOut

    _Key = tuple[str, str]
    """A target's name, and the fingerprint of a request."""

# As many bytes of requests may wait for compilers. A program can hold large constants: what is not
# yet lowered has them from the user's program, what is has copies.
_ENOUGH = 256 << 20


@dataclass(slots=True, eq=False)
class TargetResults:
    """One program that JAX compiles for this machine, and what the targets' compilers said of it.

    Results come while the block is open. Each replaces `on` and never changes it: whatever has been
    read before is a snapshot.
    """

    lowered_program: LoweredProgram | None = None
    """The program, until it is lowered."""

    on: dict[str, OnTarget] = field(default_factory=dict)
    """By target, what its compiler said, in the order of the targets."""

    left_out: tuple[LeftOut, ...] = ()
    products: dict[str, tuple[CallSite, ...]] = field(default_factory=dict)
    """The lines of its products, as it was lowered for each platform."""


@dataclass(slots=True, eq=False)
class _Sent:
    """A request that was submitted once for a target, and all programs that wait for its result."""

    job: Job | None
    """The job until it has a result: it holds the program's bytecode."""

    programs: list[TargetResults]
    result: OnTarget | None = None
    without: WithoutTriton | None = None
    """What the compiler made it without."""


class Session:
    """Compiles the programs of one block for its targets."""

    def __init__(
        self, targets: Sequence[Target], *, keep_hlo: bool, timeout: float, profile: bool = False
    ) -> None:
        # Only where there are targets: JAX imports no `queue`, and a script may have its own.
        import queue  # noqa: PLC0415

        self._targets = targets
        self._keep_hlo = keep_hlo
        self._profile = profile
        self._timeout = timeout
        self._to_lower: SimpleQueue[TargetResults | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._programs: list[TargetResults] = []
        self._not_logged: dict[int, TargetResults] = {}
        """By the id of what `add_program` was called with, until `results_of` asks for it."""

        self._done = 0
        self._sent: dict[_Key, _Sent] = {}
        self._bytes_under_way = 0
        self._is_stopped = False
        self._process = os.getpid()

    def begin(self) -> None:
        """Start the compilers and the lowering thread, beside the user's program."""
        for target in self._targets:
            compilers().get_ready(target)
        threading.Thread(target=self._lower_all, name="jitcount lowering", daemon=True).start()

    def add_program(self, lowered_program: LoweredProgram) -> None:
        """Take one more program, in the thread in which JAX is about to compile it."""
        if self.is_forked():  # the lowering thread stayed with the parent, maybe holding the lock
            return
        program = TargetResults(_without_modules(lowered_program))
        with self._changed:
            self._programs.append(program)
            self._not_logged[id(lowered_program)] = program
        self._to_lower.put(program)

    def results_of(self, lowered_program: LoweredProgram | None) -> TargetResults:
        """The results of a program that JAX has compiled, for the log; they come later.

        A program that was not added, because the block began while it was being compiled, has that
        reason there.
        """
        if self.is_forked():
            return TargetResults()
        with self._changed:
            if lowered_program is None or id(lowered_program) not in self._not_logged:
                lowered_program = LoweredProgram(
                    reason="the block began while it was being compiled"
                )
                self.add_program(lowered_program)
            return self._not_logged.pop(id(lowered_program))

    def is_forked(self) -> bool:
        """Whether this is a child of the process that has the compilers: no results come here."""
        return os.getpid() != self._process

    def progress(self) -> tuple[int, int]:
        """How many results there are, and how many there will be."""
        with self._changed:
            return self._done, len(self._programs) * len(self._targets)

    def wait(self, seconds: float) -> bool:
        """Wait for the results, at most that long; whether all are there."""
        with self._changed:
            return self._changed.wait_for(lambda: ge(*self.progress()), timeout=seconds)

    def end(self) -> None:
        """End the lowering thread; the recorder has waited for all results."""
        self._to_lower.put(None)
        with self._changed:
            # One may be missing: of a compile that another thread made while the block ended.
            self._give_up_on_the_rest()

    def stop(self) -> None:
        """End everything at once; what has no result yet gets one that says so."""
        self._is_stopped = True
        self._to_lower.put(None)
        with self._changed:
            jobs = [sent.job for sent in self._sent.values() if sent.job is not None]
        compilers().stop(jobs)
        with self._changed:
            self._give_up_on_the_rest()

    def _give_up_on_the_rest(self) -> None:
        """Store an error wherever there is no result yet; under the lock."""
        for (name, fingerprint), sent in self._sent.items():
            sent_as = fingerprint if sent.job is not None and sent.job.is_sent else ""
            for program in sent.programs:
                self._store(program, OnTarget(target=name, fingerprint=sent_as, error=STOPPED))
        for program in self._programs:
            for target in self._targets:
                self._store(program, OnTarget(target=target.name, error=STOPPED))
        self._sent.clear()  # the log keeps the session: it should not keep the programs too
        self._changed.notify_all()

    def _lower_all(self) -> None:
        """The life of the lowering thread."""
        while (program := self._to_lower.get()) is not None and not self._is_stopped:
            with self._changed:
                self._changed.wait_for(lambda: self._bytes_under_way < _ENOUGH or self._is_stopped)
            self._lower(program)

    def _lower(self, program: TargetResults) -> None:
        """Lower one program for each platform, and submit it for each target."""
        lowered_program, program.lowered_program = program.lowered_program or LoweredProgram(), None
        lowered: dict[str, CompileRequest | str] = {}
        for target in self._targets:
            try:
                if target.platform not in lowered:
                    lowered[target.platform] = self._request_or_reason(
                        lowered_program, target.platform
                    )
                request_or_reason = lowered[target.platform]
                if isinstance(request_or_reason, CompileRequest):
                    program.left_out = request_or_reason.left_out
                    program.products[target.platform] = request_or_reason.products
                    self._submit(program, target, request_or_reason)
                    continue
                reason = request_or_reason
            except Exception as error:  # noqa: BLE001 (it must have a result, whatever happens)
                reason = f"not carried over: {type(error).__name__}: {error}"
            with self._changed:
                self._store(program, OnTarget(target=target.name, error=reason))
                self._changed.notify_all()

    def _request_or_reason(
        self, lowered_program: LoweredProgram, platform: str
    ) -> CompileRequest | str:
        try:
            request = lower_for_target(lowered_program, platform, keep_places=self._profile)
        except NotPortableError as error:
            return str(error)
        lowering = lowered_program.lowering if self._profile else None
        stacks = None if lowering is None else encode_stacks(lowering.jaxpr)
        task = msgspec.structs.replace(request.task, keep_hlo=self._keep_hlo, profile=stacks)
        return replace(request, task=task)

    def _submit(self, program: TargetResults, target: Target, request: CompileRequest) -> None:
        """Submit a request to the compilers, unless this session has submitted the same one."""
        key = target.name, request.fingerprint
        with self._changed:
            if self._is_stopped:
                return
            sent = self._sent.get(key)
            if sent is not None:
                if sent.result is None:
                    sent.programs.append(program)
                else:
                    self._store(program, sent.result, sent.without)
                    self._changed.notify_all()
                return
            on_result = functools.partial(self._on_result, key, len(request.bytecode))
            job = Job(target, request.task, request.bytecode, self._timeout, on_result)
            self._sent[key] = _Sent(job, [program])
            self._bytes_under_way += len(request.bytecode)
        compilers().submit(job)

    def _on_result(self, key: _Key, size: int, answer: Answer) -> None:
        """Store a result for all programs that wait for it; in the compiler's thread."""
        with self._changed:
            self._bytes_under_way -= size
            sent = self._sent.get(key)
            if sent is not None and sent.job is not None:  # or it was given up
                fingerprint = key[1] if sent.job.is_sent else ""
                result = OnTarget.from_answer(key[0], fingerprint, answer)
                sent.without = answer.without_triton
                for program in sent.programs:
                    self._store(program, result, sent.without)
                sent.job, sent.programs, sent.result = None, [], result
            self._changed.notify_all()

    def _store(
        self, program: TargetResults, result: OnTarget, without: WithoutTriton | None = None
    ) -> None:
        """Add a result to a program's, unless it has one of that target; under the lock."""
        if result.target in program.on:
            return
        if without is not None:  # with its own line, where another was the same
            lines = program.products.get(result.target.partition(":")[0], ())
            said = fallback_sentence(without, lines)
            result = msgspec.structs.replace(result, fallback=said)
        if program.left_out:  # by its own lines, where another was the same
            result = msgspec.structs.replace(result, left_out=program.left_out)
        found = {**program.on, result.target: result}
        program.on = {each.name: found[each.name] for each in self._targets if each.name in found}
        self._done += 1


def _without_modules(lowered_program: LoweredProgram) -> LoweredProgram:
    """What lowering needs: JAX would let go of the modules, and of the constants in them."""
    lowering, compilation = lowered_program.lowering, lowered_program.compilation
    return replace(
        lowered_program,
        lowering=lowering and replace(lowering, module=None),
        compilation=compilation and replace(compilation, module=None),
    )
