"""Draws programs: which operations follow one another, on which values, of which sizes.

Nothing here knows of a miscompile. Operations are drawn one after another, mostly on the newest
value, so that chains arise; sizes are drawn around those where compilers change their way.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hypothesis import strategies as st

from tools.hunt.program import OPERATIONS, Input, Program, Step, pruned
from tools.hunt.values import FLOATS, INTEGERS, Spec, bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

SMALL = (1, 2, 3, 4, 5, 7, 8, 9)
THRESHOLDS = (
    15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513,
    1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 8191, 8193, 16384, 16385, 32767, 32768, 32769,
    65535, 65537, 100_003,
)  # fmt: skip
MOST_ELEMENTS = 140_000
"""In one value: programs are to be quick."""

MOST_PRODUCTS = 20_000_000
"""Multiplications in one product or convolution, likewise."""

# How many elements a new value may have: many small ones, some on both sides of every threshold.
_BUDGETS = (16, 300, 5000, 20_000, 20_000, *[MOST_ELEMENTS] * 3)

_RANKS = (1, 2, 0, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8)

# The simplest first: shrinking goes there. float32 is what most programs are made of.
_DTYPES = ("float32",) * 12 + ("int32",) * 3 + ("bfloat16", "float16", "bool", *INTEGERS[1:])

_MOST_STEPS = 12
_LARGEST_NESTING = 2


class Chooser(Protocol):
    """Where a program's choices come from."""

    def integer(self, low: int, high: int) -> int:
        """One of the integers from low to high, both included; low is the simplest."""

    def span(self, make: Callable[[], T]) -> T:
        """What a function makes, as a part that can be left out as a whole."""


@dataclass
class RandomChooser:
    """Chooses by a random number generator."""

    random: random.Random

    def integer(self, low: int, high: int) -> int:
        """One of the integers from low to high."""
        return self.random.randint(low, high)

    def span(self, make: Callable[[], T]) -> T:
        """What the function makes."""
        return make()


@dataclass
class HypothesisChooser:
    """Lets hypothesis choose, which can then make a program smaller."""

    draw: Any

    def integer(self, low: int, high: int) -> int:
        """One of the integers from low to high."""
        return int(self.draw(st.integers(low, high))) if high > low else low

    def span(self, make: Callable[[], T]) -> T:
        """What the function makes, as one part of the example."""

        def part(draw: Any) -> T:
            outer, self.draw = self.draw, draw
            try:
                return make()
            finally:
                self.draw = outer

        made: T = self.draw(st.composite(part)())
        return made


class Builder:
    """A program that is being made. A value is known by its number, in the order of making."""

    def __init__(self, chooser: Chooser, nesting: int = 0, *, lifted: bool = False) -> None:
        self.chooser = chooser
        self.nesting = nesting
        self.lifted = lifted  # whether only operations are allowed that have a lift
        self.made: list[Input | Step] = []

    # --- Choices ---

    def integer(self, low: int, high: int) -> int:
        """One of the integers from low to high, both included."""
        return self.chooser.integer(low, high)

    def choose(self, options: Sequence[T]) -> T:
        """One of some options; the first is the simplest."""
        return options[self.integer(0, len(options) - 1)]

    def sometimes(self, one_in: int) -> bool:
        """True once in so many times; false is the simplest."""
        return self.integer(0, one_in - 1) == one_in - 1

    def subset(self, options: Sequence[int], least: int = 0) -> tuple[int, ...]:
        """Some of the options, in order."""
        chosen = [one for one in options if self.sometimes(2)]
        for one in options:
            if len(chosen) >= least:
                break
            if one not in chosen:
                chosen.append(one)
        return tuple(sorted(chosen))

    def order(self, options: Sequence[int]) -> tuple[int, ...]:
        """The options in some order."""
        left, ordered = list(options), []
        while left:
            ordered.append(left.pop(self.integer(0, len(left) - 1)))
        return tuple(ordered)

    def extent(self, most: int) -> int:
        """The length of an axis: small, or around a threshold."""
        small = [one for one in SMALL if one <= most]
        large = [one for one in THRESHOLDS if one <= most]
        return self.choose(large if large and self.sometimes(2) else small or [1])

    def shape(self, rank: int | None = None, most: int | None = None) -> tuple[int, ...]:
        """A new shape."""
        rank = self.choose(_RANKS) if rank is None else rank
        budget = most or self.choose(_BUDGETS)
        extents: list[int] = []
        for _ in range(rank):
            extents.append(self.extent(max(1, budget // math.prod(extents))))
        return tuple(extents[i] for i in self.order(range(rank)))

    def dtype(self) -> str:
        """A type."""
        return self.choose(_DTYPES)

    # --- Values ---

    def spec(self, value: int) -> Spec:
        """What is known of a value."""
        return self.made[value].spec

    def pick(self, where: Callable[[Spec], bool] = lambda _spec: True) -> int | None:
        """A value for which a condition holds, most often the newest; None if there is none."""
        fitting = [i for i in reversed(range(len(self.made))) if where(self.spec(i))]
        if not fitting:
            return None
        return self.choose(fitting) if self.sometimes(4) else fitting[0]

    def fresh(
        self,
        shape: tuple[int, ...],
        dtype: str,
        size: int | None = None,
        *,
        negative: bool | None = None,
    ) -> int:
        """A new input, or in a loop's body a new constant."""
        low, high = bounds(dtype)
        if size is None:
            size = min(self.choose((1, 3, 8, 100)), high)
        if negative is None:
            negative = low < 0 and not self.sometimes(4)
        constant = self.sometimes(4) if self.nesting == 0 else True
        if constant and math.prod(shape) > 5000 and self.nesting == 0:
            constant = False  # else the compiler folds for seconds
        seed = self.integer(0, 99)
        self.made.append(Input(Spec(dtype, shape, size, negative), seed, constant))
        return len(self.made) - 1

    def like(self, value: int) -> int:
        """Another value of the same type and shape, an earlier one or a new one."""
        spec = self.spec(value)
        found = None
        if not self.sometimes(3):
            others = [i for i in range(len(self.made)) if i != value]
            fitting = [i for i in others if self.spec(i).shape == spec.shape]
            fitting = [i for i in fitting if self.spec(i).dtype == spec.dtype]
            found = self.choose(fitting) if fitting else None
        return self.fresh(spec.shape, spec.dtype) if found is None else found

    def add(self, operation: str, operands: Sequence[int], spec: Spec, **parameters: Any) -> int:
        """A step; returns its value."""
        if not spec.is_exact:
            raise AssertionError(f"{operation} is not exact: {spec}")
        self.made.append(Step(operation, tuple(operands), spec, parameters))
        return len(self.made) - 1

    def fit(self, value: int, most: int, *, nonnegative: bool = False) -> int:
        """The value, or what a clamp or a remainder leaves of it, so that it is small enough."""
        spec = self.spec(value)
        most = max(1, min(most, bounds(spec.dtype)[1]))
        holds = most < bounds(spec.dtype)[1]  # whether the type has the divisor
        if spec.size > most and holds and (not spec.negative or self.sometimes(2)):
            value = self.add("rem", [value], replace(spec, size=most), divisor=most + 1)
            spec = self.spec(value)
        if spec.size > most or (nonnegative and spec.negative):
            low = 0 if nonnegative or not spec.negative else -most
            small = replace(spec, size=min(most, spec.size), negative=low < 0)
            value = self.add("clamp", [value], small, low=low, high=most)
        return value

    def cast(self, value: int, dtype: str) -> int:
        """The value in another type, in whose range it is, unless it is an integer and may wrap."""
        spec = self.spec(value)
        if spec.dtype == dtype:
            return value
        if dtype == "bool":
            return self.add("convert", [value], Spec("bool", spec.shape, 1, negative=False))
        low, high = bounds(dtype)
        if dtype in FLOATS or spec.is_float:
            value = self.fit(value, high, nonnegative=low == 0)
            spec = self.spec(value)
        return self.add("convert", [value], spec.with_(dtype=dtype))

    def body(self, specs: Sequence[Spec], *, lifted: bool = False) -> Builder:
        """A builder for what is inside of a loop, with the values that the loop passes."""
        inner = Builder(self.chooser, self.nesting + 1, lifted=lifted or self.lifted)
        inner.made.extend(Input(spec, 0) for spec in specs)
        inner.grow(3)
        return inner

    # --- Programs ---

    def grow(self, most: int = _MOST_STEPS) -> None:
        """Add some steps, in a whole program at least one."""
        for number in range(most):
            if not self.integer(0, 9) and (number or self.nesting):
                break
            self.chooser.span(self._step)

    def _step(self) -> None:
        allowed = PROPOSALS
        if self.lifted:
            allowed = [one for one in allowed if one.liftable]
        if self.nesting >= _LARGEST_NESTING:
            allowed = [one for one in allowed if not one.nests]
        weighted = [one for one in allowed for _ in range(one.weight)]
        self.choose(weighted).make(self)

    def unused(self) -> list[int]:
        """The results of steps that no step uses."""
        used = {i for one in self.made if isinstance(one, Step) for i in one.operands}
        steps = [i for i, one in enumerate(self.made) if isinstance(one, Step)]
        return [i for i in steps if i not in used]

    def program(self, outputs: Sequence[int], *, keep_inputs: bool = False) -> Program:
        """The program so far, which returns some values."""
        inputs = [i for i, one in enumerate(self.made) if isinstance(one, Input)]
        steps = [i for i, one in enumerate(self.made) if isinstance(one, Step)]
        place = {value: number for number, value in enumerate([*inputs, *steps])}
        whole = Program(
            tuple(one for one in self.made if isinstance(one, Input)),
            tuple(
                replace(one, operands=tuple(place[i] for i in one.operands))
                for one in self.made
                if isinstance(one, Step)
            ),
            tuple(place[i] for i in outputs),
        )
        return whole if keep_inputs else pruned(whole)


@dataclass(frozen=True)
class Proposal:
    """A way to go on with a program.

    Attributes:
        make: adds a step or some; does nothing where none fits.
        weight: how often it is drawn, relative to the others.
        liftable: whether all that it adds have a lift.
        nests: whether it adds a body with steps of its own.
    """

    make: Callable[[Builder], object]
    weight: int
    liftable: bool
    nests: bool


PROPOSALS: list[Proposal] = []


def proposal(
    weight: int = 2, *, liftable: bool = False, nests: bool = False
) -> Callable[[Callable[[Builder], object]], Callable[[Builder], object]]:
    """Declare a function a way to go on with a program."""

    def declare(make: Callable[[Builder], object]) -> Callable[[Builder], object]:
        PROPOSALS.append(Proposal(make, weight, liftable, nests))
        return make

    return declare


ENDINGS: list[Callable[[Builder, int], object]] = []
"""What can become of a value that nothing else uses, other than to be returned as it is."""


def ending(make: Callable[[Builder, int], object]) -> Callable[[Builder, int], object]:
    """Declare a function a way to end with a value that has axes."""
    ENDINGS.append(make)
    return make


def draw_program(chooser: Chooser) -> Program:
    """A program whose choices come from a chooser."""
    build = Builder(chooser)
    build.fresh(build.shape(), build.dtype())
    build.grow()
    for value in build.unused():
        if build.spec(value).rank > 0 and build.sometimes(2):
            build.choose(ENDINGS)(build, value)
    outputs = build.unused() or [0]
    steps = [i for i, one in enumerate(build.made) if isinstance(one, Step)]
    more = [i for i in steps if i not in outputs and build.sometimes(6)]
    return build.program([*outputs, *more])


def random_program(seed: int | str) -> Program:
    """The program of a seed; the same seed always has the same."""
    return draw_program(RandomChooser(random.Random(seed)))  # noqa: S311 (no secret)


@st.composite
def programs(draw: Any) -> Program:
    """Programs, as a strategy of hypothesis."""
    return draw_program(HypothesisChooser(draw))


def lifts(program: Program) -> bool:
    """Whether all steps of a program can be computed for many rows at once."""
    return all(OPERATIONS[step.operation].lift is not None for step in program.steps)
