"""A program of the grammar: computed exactly by NumPy, and written as plain JAX.

The reference knows nothing of JAX: whole numbers are int64, and each operation has a rule of its
own in `operations`. The text is what the compiler gets, and also what is kept of a find.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.hunt.values import Spec, bounds, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Input:
    """Where a program's data come from: drawn by a seed, as an argument or a constant.

    Attributes:
        seed: of the random numbers; None for all ones.
        constant: whether it is written into the program, instead of being passed.
        low: the smallest number that is drawn, by default as the spec allows.
    """

    spec: Spec
    seed: int | None
    constant: bool = False

    @property
    def low(self) -> int:
        """The smallest number that is drawn."""
        return -self.spec.size if self.spec.negative else 0

    @property
    def high(self) -> int:
        """The largest; 127 also where -128 may be drawn."""
        return min(self.spec.size, bounds(self.spec.dtype)[1])

    def data(self) -> Array:
        """The whole numbers."""
        if self.seed is None:
            return np.ones(self.spec.shape, np.int64)
        drawn = np.random.default_rng(self.seed)
        return drawn.integers(self.low, self.high + 1, self.spec.shape)

    def source(self) -> str:
        """The expression that makes it."""
        dtype, shape = self.spec.dtype, self.spec.shape
        if self.seed is None:
            return f"jnp.ones({shape}, jnp.{_name(dtype)})"
        drawn = f"np.random.default_rng({self.seed}).integers({self.low}, {self.high + 1}"
        return f"jnp.asarray({drawn}, {shape}), jnp.{_name(dtype)})"


@dataclass(frozen=True)
class Step:
    """One operation on earlier values; a value is an input or the result of a step, by number."""

    operation: str
    operands: tuple[int, ...]
    spec: Spec
    parameters: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]


@dataclass(frozen=True)
class Operation:
    """What a step can be, with its rules.

    Attributes:
        compute: the result of a step, in int64, from those of its operands; integers are wrapped
            afterwards.
        source: a step's expression, from the names of its operands.
        lift: a step on arrays with one more axis in front, which all its operands have; None where
            there is no simple one.
    """

    name: str
    compute: Callable[..., Any]
    source: Callable[..., str]
    lift: Callable[[Step], Step] | None = None


OPERATIONS: dict[str, Operation] = {}
"""By name; the modules of `operations` add theirs."""


@dataclass(frozen=True)
class Program:
    """Inputs, steps on them, and the values that are returned.

    In the body of a loop, the inputs that are not constants are what the loop passes.
    """

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def spec(self, value: int) -> Spec:
        """What is known of a value."""
        count = len(self.inputs)
        return self.inputs[value].spec if value < count else self.steps[value - count].spec

    @property
    def arguments(self) -> list[Input]:
        """The inputs that are passed."""
        return [one for one in self.inputs if not one.constant]

    @property
    def length(self) -> int:
        """How many steps it has, with those of the bodies of its loops."""
        return sum(1 + sum(body.length for body in bodies(step)) for step in self.steps)

    @property
    def cost(self) -> tuple[int, int]:
        """How complicated it is: fewer steps first, then fewer elements."""
        specs = [self.spec(value) for value in range(len(self.inputs) + len(self.steps))]
        return self.length + len(self.inputs), sum(spec.elements for spec in specs)

    def operations(self) -> Iterator[str]:
        """The names of its operations, also in the bodies of its loops."""
        for step in self.steps:
            yield step.operation
            for body in bodies(step):
                yield from body.operations()


def bodies(step: Step) -> list[Program]:
    """The programs within a step: bodies of loops, branches."""
    return [value for value in step.parameters.values() if isinstance(value, Program)]


def evaluate(program: Program, arguments: Sequence[Array] | None = None) -> list[Array]:
    """The exact results, by NumPy; with the program's own data unless others are given."""
    given = iter([one.data() for one in program.arguments] if arguments is None else arguments)
    values: list[Array] = [one.data() if one.constant else next(given) for one in program.inputs]
    for step in program.steps:
        made = OPERATIONS[step.operation].compute(step, *(values[i] for i in step.operands))
        values.append(wrapped(made, step.spec.dtype))
    return [values[i] for i in program.outputs]


def source(program: Program, name: str = "f") -> str:
    """The program as a function in plain JAX, with its body's names in the order of the values."""
    return "\n".join(_lines(program, name, "")) + "\n"


def _lines(program: Program, name: str, prefix: str) -> Iterator[str]:
    names = [f"{prefix}x{value}" for value in range(len(program.inputs) + len(program.steps))]
    passed = [names[i] for i, one in enumerate(program.inputs) if not one.constant]
    yield f"def {name}({', '.join(passed)}):"
    for value, one in enumerate(program.inputs):
        if one.constant:
            yield f"    {names[value]} = {one.source()}"
    for number, step in enumerate(program.steps):
        result = names[len(program.inputs) + number]
        inner = []
        for place, body in enumerate(bodies(step)):
            inner.append(f"{result}_{'body' if not place else 'other'}")
            for line in _lines(body, inner[-1], f"{result}_"):
                yield f"    {line}"
        operands = [names[i] for i in step.operands]
        yield f"    {result} = {OPERATIONS[step.operation].source(step, *operands, *inner)}"
    outputs = [names[i] for i in program.outputs]
    yield f"    return {outputs[0] if len(outputs) == 1 and prefix else _as_tuple(outputs)}"


def _as_tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _name(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def pruned(program: Program) -> Program:
    """The program without the steps and inputs that no output needs; a body keeps its inputs."""
    needed = set(program.outputs)
    count = len(program.inputs)
    for number in reversed(range(len(program.steps))):
        if count + number in needed:
            needed.update(program.steps[number].operands)
    kept = sorted(needed)
    place = {value: number for number, value in enumerate(kept)}
    steps = [
        replace(step, operands=tuple(place[i] for i in step.operands))
        for number, step in enumerate(program.steps)
        if count + number in needed
    ]
    inputs = [one for value, one in enumerate(program.inputs) if value in needed]
    return Program(tuple(inputs), tuple(steps), tuple(place[i] for i in program.outputs))
