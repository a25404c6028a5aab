"""Draws programs until one is wrong, and makes that one as small as it can.

Hypothesis draws and shrinks. Afterwards whole steps are replaced by new inputs, and outputs are
left out, which hypothesis cannot do without knowing what a program is.
"""

from __future__ import annotations

import contextlib
import random
import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.errors import Flaky

from tools.hunt import operations  # noqa: F401 (fills the tables)
from tools.hunt.grammar import programs
from tools.hunt.program import Input, Program, evaluate, pruned, source
from tools.hunt.worker import Job, Outcome, Worker, agree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BYTES = 8192
"""Enough for the choices of a program."""

_ONE_BY_ONE_IN = 8
"""One program in so many is computed operation by operation; all others are compiled."""

SECONDS_EACH = 60.0
"""A program that takes longer hangs: all are small, and most take a tenth of a second."""


@dataclass(frozen=True)
class Failure:
    """How a program is wrong.

    Attributes:
        kind: "wrong" results, a "crash", a "hang", or an "error" that was raised.
        text: what was found, in a line.
        place: the output and the index of the first wrong element.
        expected: its value.
    """

    kind: str
    text: str
    place: tuple[int, tuple[int, ...]] | None = None
    expected: int = 0


@dataclass(frozen=True)
class Find:
    """A program that is wrong, made small."""

    program: Program
    failure: Failure
    number: int
    """Which of the programs of a seed it was."""

    compiled: bool = True
    """Whether it is wrong when compiled as a whole; else operation by operation."""

    other_way: str = ""
    """What comes of the other way: "right", or what is wrong there too."""

    comes_again: bool = True
    """Whether it is also wrong in a process of its own."""

    cures: tuple[str, ...] = ()
    """Flags of XLA that make it right."""

    known: str = ""
    """The public report of the same, if it was recognised."""


def job(program: Program, *, compiled: bool = True) -> Job:
    """The program as text, for a worker."""
    arguments = tuple(one.source() for one in program.arguments)
    return Job(source(program), arguments, compiled)


def failure_of(outcome: Outcome, expected: list[np.ndarray]) -> Failure | None:
    """What is wrong with an outcome; None if nothing."""
    if outcome.results is None:
        if outcome.died:
            kind = "hang" if outcome.failure.startswith("no result") else "crash"
            return Failure(kind, outcome.failure)
        return Failure("error", " ".join(outcome.failure.split())[:300])
    if agree(outcome.results, expected):
        return None
    for number, (found, right) in enumerate(zip(outcome.results, expected, strict=True)):
        if found.shape != right.shape:
            return Failure("wrong", f"output {number} has the shape {found.shape}")
        places = np.argwhere(found != right)
        if len(places):
            index = tuple(int(one) for one in places[0])
            text = (
                f"output {number} is {found[index]} at {list(index)}, and should be "
                f"{right[index]}; {len(places):,} of {found.size:,} elements are wrong"
            )
            return Failure("wrong", text, (number, index), int(right[index]))
    return None


def check(program: Program, worker: Worker, *, compiled: bool = True) -> Failure | None:
    """Run a program in the worker, and compute it here meanwhile."""
    worker.start(job(program, compiled=compiled))
    expected = evaluate(program)
    return failure_of(worker.finish(), expected)


def is_compiled(program: Program) -> bool:
    """Whether a program is tried compiled as a whole; the same program always the same way."""
    return zlib.crc32(source(program).encode()) % _ONE_BY_ONE_IN != 0


class _WrongProgramError(Exception):
    """Tells hypothesis that a program is wrong."""


@dataclass
class Hunter:
    """Draws programs from a seed, with one worker.

    Attributes:
        worker: computes the programs.
        is_again: whether a wrong program shows a fault that has been found before.
        tries_to_shrink: how often hypothesis may try to make a wrong program smaller.
        tries_to_cut: how often parts of it may be left out afterwards.
        tried: how many programs were drawn.
        again: how many of them were wrong in a way that is known.
    """

    worker: Worker
    is_again: Callable[[Program, Failure], bool] = lambda _program, _failure: False
    tries_to_shrink: int = 200
    tries_to_cut: int = 200
    tried: int = 0
    again: int = 0
    _smallest: tuple[Program, Failure] | None = None
    _compiled: bool = True
    _left: int = 0

    def hunt(self, seed: int, until: float) -> Iterator[Find]:
        """Wrong programs, made small, until a time by `time.monotonic`.

        The same seed draws and finds the same, unless a program hangs or is wrong only sometimes.
        """
        drawn = random.Random(seed)  # noqa: S311 (no secret)
        test = self._test()
        while time.monotonic() < until:
            self._smallest = None
            with contextlib.suppress(_WrongProgramError):
                test.hypothesis.fuzz_one_input(drawn.randbytes(_BYTES))
            find = self._made_small(test)
            if find is not None:
                yield find
                test = self._test()

    def _test(self) -> Any:
        """A test of hypothesis that no program has failed yet.

        By itself hypothesis draws many small programs and many twice. So the choices are random
        bytes, and hypothesis keeps those that fail, as for a fuzzer, and makes them simpler.
        """

        @settings(
            database=InMemoryExampleDatabase(),
            deadline=None,
            phases=(Phase.reuse, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
        )
        @given(programs())
        def is_right(program: Program) -> None:
            self._try(program)

        return is_right

    def _made_small(self, test: Callable[[], None]) -> Find | None:
        if self._smallest is None:
            return None
        self._left = self.tries_to_shrink
        # A crash that does not come every time, or the end of the tries, confuses hypothesis.
        with contextlib.suppress(_WrongProgramError, Flaky):
            test()
        program, failure = self._cut(*self._smallest)
        other = check(program, self.worker, compiled=not self._compiled)
        other_way = "right" if other is None else other.text
        return Find(program, failure, self.tried, self._compiled, other_way)

    def _try(self, program: Program) -> None:
        if self._smallest is None:
            self.tried += 1
            self._compiled = is_compiled(program)
        elif self._left <= 0:
            return
        self._left -= 1
        failure = check(program, self.worker, compiled=self._compiled)
        if failure is None:
            return
        if self._smallest is None:
            if self.is_again(program, failure):
                self.again += 1
                return
        elif failure.kind != self._smallest[1].kind:
            return
        if self._smallest is None or program.cost <= self._smallest[0].cost:
            self._smallest = program, failure
        raise _WrongProgramError

    def _cut(self, program: Program, failure: Failure) -> tuple[Program, Failure]:
        """Replace parts by simpler ones as long as it stays wrong."""
        left, smaller = self.tries_to_cut, True
        while smaller:
            smaller = False
            for candidate in simpler(program):
                if left <= 0:
                    break
                left -= 1
                found = check(candidate, self.worker, compiled=self._compiled)
                if found is not None and found.kind == failure.kind:
                    program, failure, smaller = candidate, found, True
                    break
        return program, failure


def simpler(program: Program) -> Iterator[Program]:
    """Programs that are simpler by one part, the largest parts first."""
    yield from _with_fewer_outputs(program)
    for number in reversed(range(len(program.steps))):
        yield from _without_step(program, number)
    yield from _with_simpler_inputs(program)


def _with_fewer_outputs(program: Program) -> Iterator[Program]:
    for place in range(len(program.outputs)):
        if len(program.outputs) > 1:
            rest = program.outputs[:place] + program.outputs[place + 1 :]
            yield pruned(replace(program, outputs=rest))


def _without_step(program: Program, number: int) -> Iterator[Program]:
    """An operand or a new input in the place of a step's result."""
    count = len(program.inputs)
    step = program.steps[number]
    if number + count in program.outputs:
        for operand in step.operands:
            if operand >= count:
                yield pruned(_with_outputs(program, number + count, operand))
    cut = _replaced(program, number, Input(step.spec, seed=0))
    if cut.length < program.length:
        yield cut
    for operand in step.operands:
        if _stands_in(program, operand, number + count):
            yield _renamed(program, number + count, operand)


def _with_simpler_inputs(program: Program) -> Iterator[Program]:
    for place, one in enumerate(program.inputs):
        simple = [replace(one, seed=None)] if one.seed is not None and one.spec.size else []
        simple += [replace(one, constant=False)] if one.constant else []
        for other in simple:
            inputs = (*program.inputs[:place], other, *program.inputs[place + 1 :])
            yield replace(program, inputs=inputs)


def _with_outputs(program: Program, old: int, new: int) -> Program:
    outputs = [new if one == old else one for one in program.outputs]
    return replace(program, outputs=tuple(dict.fromkeys(outputs)))


def _stands_in(program: Program, operand: int, result: int) -> bool:
    """Whether a step's operand can take the place of its result, and all stays exact."""
    one, other = program.spec(operand), program.spec(result)
    alike = (one.dtype, one.shape) == (other.dtype, other.shape)
    return alike and one.size <= other.size and other.negative >= one.negative


def _renamed(program: Program, old: int, new: int) -> Program:
    """The program with one value instead of another."""
    steps = tuple(
        replace(step, operands=tuple(new if one == old else one for one in step.operands))
        for step in program.steps
    )
    return pruned(replace(_with_outputs(program, old, new), steps=steps))


def _replaced(program: Program, number: int, fresh: Input) -> Program:
    """The program with an input instead of a step."""
    count = len(program.inputs)
    old = count + number

    def moved(value: int) -> int:
        if value == old:
            return count
        return value + 1 if count <= value < old else value

    steps = [
        replace(step, operands=tuple(map(moved, step.operands)))
        for place, step in enumerate(program.steps)
        if place != number
    ]
    outputs = tuple(map(moved, program.outputs))
    return pruned(Program((*program.inputs, fresh), tuple(steps), outputs))
