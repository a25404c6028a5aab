"""A level of a program: the equations of one jaxpr, as steps in which repeats can be looked for.

What is inside of a call, or of the body of a scan, is a level of its own, since a loop is either in
a function or around its call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcount._jax import levels
from jitcount._jax.jaxprs import source_of
from jitcount.profile.python_loops import Keys
from jitcount.profile.repeats import OUTSIDE, Input, Repeat, Step
from jitcount.profile.signatures import INDICES, Signatures, shapes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jitcount._jax.levels import Stack

# They move data, and compute nothing. JAX itself makes several of them for one line: `jnp.stack`.
_MOVES = frozenset(
    {
        "broadcast_in_dim",
        "concatenate",
        "convert_element_type",
        "copy",
        "copy_p",
        "dynamic_slice",
        "expand_dims",
        "iota",
        "pad",
        "reshape",
        "rev",
        "slice",
        "split",
        "squeeze",
        "transpose",
    }
)

# Of a body that comes from one place: so many copies are a loop, where each follows from the one
# before, and so many where none does.
_FEW = 3
_SOME = 4


@dataclass(slots=True)
class Known:
    """What is kept while the levels of one program are searched."""

    signatures: Signatures = field(default_factory=Signatures)
    keys: Keys = field(default_factory=Keys)
    counted: dict[int, int] = field(default_factory=dict)


class Level:
    """The equations of one jaxpr."""

    def __init__(self, jaxpr: Any, known: Known) -> None:
        self.jaxpr = jaxpr
        self.equations = levels.equations_in(jaxpr)
        self._known = known
        self._traced = source_of(jaxpr)
        self.steps = list(self._steps())

    def body(self, repeat: Repeat) -> list[Any]:
        """The equations of one copy, the first."""
        return self.equations[repeat.start : repeat.start + repeat.period]

    def stack_of(self, equation: Any) -> Stack:
        """The stack of an equation, from the function of this level on.

        Up to 0.9 JAX keeps what is around that too: a loop that calls the program is none of it.
        """
        stack, traced = levels.stack_of(equation), self._traced
        if traced is None:
            return stack
        for depth in range(len(stack) - 1, -1, -1):
            code = stack[depth][0]
            if (code.co_filename, str(code.co_firstlineno)) == (traced.file, traced.line):
                return stack[: depth + 1]
        return stack

    def operations(self, repeat: Repeat) -> int:
        """How many operations a copy has, with those in bodies of its own."""
        counted = self._known.counted
        return sum(levels.weight(equation, counted) for equation in self.body(repeat))

    def is_a_loop(self, repeat: Repeat) -> bool:
        """Whether it computes, and not the same thing again and again.

        Where all of a body comes from one place, few copies that do not follow from each other may
        as well be what a transformation made of one operation: two products of a derivative.
        """
        if not any(map(_computes, self.body(repeat))):
            return False
        second = repeat.start + repeat.period
        follows, changes = False, False
        for at in range(repeat.start, second):
            inputs, next_inputs = self.steps[at].inputs, self.steps[at + repeat.period].inputs
            for one, next_one in zip(inputs, next_inputs, strict=True):
                follows |= repeat.start <= next_one.step < second
                changes |= next_one.step < second and one != next_one
        if repeat.copies >= (_FEW if follows else _SOME):
            return changes
        return changes and len(set(map(self._place, self.body(repeat)))) > 1

    def turns(self, repeat: Repeat) -> int:
        """How often the loop was gone through.

        The first turn or the last may have less than the others: of a gradient, nothing for what
        the first layer is given. It still is one, unless what it has is of another shape.
        """
        copy = range(repeat.start, repeat.start + repeat.period)
        symbols = Counter(self.steps[at].symbol for at in copy)
        first, last = repeat.within
        before = range(max(repeat.start - repeat.period, first), repeat.start)
        after = range(repeat.end, min(repeat.end + repeat.period, last))
        sides = [self._shared(side, repeat) for side in (before, after)]
        parts = [Counter(x for x in side or () if x in symbols) for side in sides]
        # The copies need not begin where a turn does: then the two ends are parts of one.
        is_one = parts[0] + parts[1] <= symbols
        if None in sides and is_one:  # one that is of another shape
            return repeat.copies
        return repeat.copies + (any(parts) if is_one else sum(map(bool, parts)))

    def _shared(self, side: Iterable[int], repeat: Repeat) -> list[int] | None:
        """The symbols of the equations beside a repeat that come from the same places.

        None where they are not of the same shapes.
        """
        body = self.body(repeat)
        places = set(map(self._place, body))
        shapes = {shape for equation in body for shape in shapes_of(equation)}
        turn = [at for at in side if self._place(self.equations[at]) in places]
        is_alike = all(shapes.issuperset(shapes_of(self.equations[at])) for at in turn)
        return [self.steps[at].symbol for at in turn] if is_alike else None

    def _place(self, equation: Any) -> object:
        return self._known.keys.of(levels.stack_of(equation))

    def _steps(self) -> Iterator[Step]:
        """The equations as steps; the stack is read of those that are not alone of their kind."""
        kinds = list(map(self._known.signatures.of, self.equations))
        how_many = Counter(kinds)
        made: dict[Any, Input] = {}
        symbols: dict[object, int] = {}
        for at, (equation, kind) in enumerate(zip(self.equations, kinds, strict=True)):
            place = self._place(equation) if how_many[kind] > 1 else ()
            symbol = symbols.setdefault((kind, place), len(symbols))
            yield Step(symbol, tuple(_inputs(equation, made)))
            made.update((each, Input(at, which)) for which, each in enumerate(equation.outvars))


def _inputs(equation: Any, made: dict[Any, Input]) -> Iterator[Input]:
    for each in equation.invars:
        if levels.is_literal(each):
            yield Input(OUTSIDE, _number(each.val))
        else:
            yield made.get(each) or Input(OUTSIDE, each)
    for name in INDICES.get(equation.primitive.name, ()):
        yield Input(OUTSIDE, equation.params[name])


def _number(value: Any) -> object:
    """A number that was written into an equation, for comparison; NaN is as NaN."""
    return np.asarray(value).tobytes() if np.ndim(value) == 0 else id(value)


def _computes(equation: Any) -> bool:
    """Whether it does more than move data."""
    if equation.primitive.name in levels.CALLS:
        inside = levels.inner_jaxprs(equation)
        return any(_computes(each) for jaxpr in inside for each in levels.equations_in(jaxpr))
    return equation.primitive.name not in _MOVES
