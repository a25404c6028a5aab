"""What an equation does, as a value that is equal for the copies of one in a loop.

Small numbers that change from copy to copy do not count: one that was written into the equation,
or where a slice begins. What does: the primitive, its other parameters, dtypes and shapes, and for
what has a body, all of that for the body.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitcount._jax import jaxprs
from jitcount._jax.jaxprs import (
    CALLS,
    equations_in,
    inner_jaxprs,
    is_literal,
    open_jaxpr,
    source_of,
)
from jitcount._loops.repeats import OUTSIDE, Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitcount._jax.jaxprs import CodeStack, Source

# By primitive, parameters that a loop would compute from its index; the shapes say the rest.
INDICES = {
    "slice": frozenset({"start_indices", "limit_indices"}),
    "pad": frozenset({"padding_config"}),
}

_PLAIN = (int, float, complex, str, bytes, np.dtype, type(None), type)


class Signatures:
    """The signatures of a program; the bodies that were seen are kept."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._bodies: dict[int, tuple[Any, int, list[int]]] = {}
        """With the jaxpr itself: while it is kept, its id is no other's."""

    def of(self, equation: Any) -> int:
        """A number that is the same for equations that do the same."""
        name = equation.primitive.name
        left_out = INDICES.get(name, frozenset())
        parameters: object = tuple(
            (key, self._value(value))
            for key, value in sorted(equation.params.items())
            if key not in left_out
        )
        if name in CALLS:  # their rules for derivatives are new functions each time
            parameters = tuple(map(self.of_jaxpr, inner_jaxprs(equation)))
        return self._number((name, parameters, shapes_of(equation)))

    def of_jaxpr(self, jaxpr: Any) -> int:
        """The same for a body: what it does, and from what it computes what."""
        return self._body(jaxpr)[1]

    def of_equations(self, jaxpr: Any) -> list[int]:
        """The numbers of a body's equations."""
        return self._body(jaxpr)[2]

    def _body(self, jaxpr: Any) -> tuple[Any, int, list[int]]:
        if id(jaxpr) not in self._bodies:
            numbers = list(map(self.of, equations_in(jaxpr)))
            number = self._number(_written(jaxpr, numbers))
            self._bodies[id(jaxpr)] = jaxpr, number, numbers
        return self._bodies[id(jaxpr)]

    def _value(self, value: Any) -> object:
        """A parameter, as something that can be hashed; of functions and the like their kind."""
        if isinstance(value, _PLAIN):
            return type(value).__name__, value
        if isinstance(value, list | tuple):
            return type(value).__name__, tuple(map(self._value, value))
        if isinstance(value, dict):
            return "dict", tuple((str(key), self._value(each)) for key, each in value.items())
        if (jaxpr := open_jaxpr(value)) is not None:
            return self.of_jaxpr(jaxpr)
        return value if _is_a_value(value) else type(value).__qualname__

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _written(jaxpr: Any, numbers: list[int]) -> object:
    """A body, with the numbers of its equations."""
    names: dict[Any, int] = {}

    def name(value: Any) -> int:
        return -1 if is_literal(value) else names.setdefault(value, len(names))

    heads = tuple((name(each), _shape(each)) for each in (*jaxpr.constvars, *jaxpr.invars))
    equations = tuple(
        (number, tuple(map(name, each.invars)), tuple(map(name, each.outvars)))
        for number, each in zip(numbers, equations_in(jaxpr), strict=True)
    )
    return "jaxpr", heads, equations, tuple(map(name, jaxpr.outvars))


def _is_a_value(value: Any) -> bool:
    """Whether it is equal to others, and not only to itself."""
    equal: Any = type(value).__eq__
    if isinstance(value, types.FunctionType) or equal is object.__eq__:
        return False
    try:
        hash(value)
    except Exception:  # noqa: BLE001 (what it holds may be anything)
        return False
    return True


def shapes_of(equation: Any) -> tuple[object, ...]:
    """Dtype and shape of what an equation takes and makes."""
    return tuple(_shape(each) for each in (*equation.invars, *equation.outvars))


def _shape(value: Any) -> object:
    aval = value.aval
    return getattr(aval, "dtype", type(aval)), getattr(aval, "shape", ())


# --- A program as plain facts: what the search for loops needs of it, and no more -----------------
#
# A sketch is made while the user's call waits, and the search comes when a profile is written. In
# between nothing of JAX's or of the user's is kept alive by it: no array, no function, no tracer.
# Of stacks there is the code of their frames, as JAX keeps it too; no frame, and no value in one.
#
# What is inside of a call, or of the body of a scan, is a level of its own, since a loop is
# either in a function or around its call.


# They move data, and compute nothing. JAX itself makes several of them for one line: `jnp.stack`.
MOVES = frozenset(
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


class Kind(NamedTuple):
    """What equations that do the same share."""

    number: int
    shapes: tuple[object, ...]
    operations: int
    """How many one stands for, with those in bodies of its own."""

    computes: bool
    """Whether it does more than move data."""


class Mark(NamedTuple):
    """What is kept of one equation."""

    kind: Kind
    inputs: tuple[Input, ...]
    stack: CodeStack
    is_backward: bool


@dataclass(slots=True)
class Sketch:
    """The equations of one jaxpr."""

    marks: list[Mark]
    source: Source | None
    is_backward: bool
    """Whether it is inside of what belongs to a backward pass."""

    jaxpr: Any = None
    """Itself, where the loops are to be rolled up later."""


@dataclass(slots=True)
class _Known:
    """What is kept while one program is sketched."""

    signatures: Signatures = field(default_factory=Signatures)
    stacks: jaxprs.Stacks = field(default_factory=jaxprs.Stacks)
    kinds: dict[int, Kind] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    """The numbers of levels that have been sketched."""


def sketches_of(closed_jaxpr: Any, *, keep: bool = False) -> list[Sketch]:
    """The levels of a program, those that do the same once.

    Args:
        closed_jaxpr: the program.
        keep: keep the jaxprs, too.
    """
    return list(_sketches(closed_jaxpr.jaxpr, _Known(), is_backward=False, keep=keep))


def _sketches(jaxpr: Any, known: _Known, *, is_backward: bool, keep: bool) -> Iterator[Sketch]:
    number = known.signatures.of_jaxpr(jaxpr)
    if number in known.seen:  # it is called more than once, or was traced anew for each turn
        return
    known.seen.add(number)
    marks, inner = [], []
    made: dict[Any, Input] = {}
    numbers = known.signatures.of_equations(jaxpr)
    for at, (equation, number) in enumerate(zip(jaxprs.equations_in(jaxpr), numbers, strict=True)):
        is_new = number not in known.kinds
        kind = _kind(equation, number, known)
        is_inside = jaxprs.is_backward(equation)
        marks.append(Mark(kind, (*_inputs(equation, made),), known.stacks.of(equation), is_inside))
        made.update((each, Input(at, which)) for which, each in enumerate(equation.outvars))
        if is_new:  # bodies of the same kind are the same
            inner += [(each, is_inside) for each in jaxprs.inner_jaxprs(equation)]
    yield Sketch(marks, source_of(jaxpr), is_backward, jaxpr if keep else None)
    for inside, is_inside in inner:
        yield from _sketches(inside, known, is_backward=is_backward or is_inside, keep=keep)


def _kind(equation: Any, number: int, known: _Known) -> Kind:
    found = known.kinds.get(number)
    if found is None:
        operations = jaxprs.weight(equation, known.counted)
        found = Kind(number, shapes_of(equation), operations, _computes(equation))
        known.kinds[number] = found
    return found


def _inputs(equation: Any, made: dict[Any, Input]) -> Iterator[Input]:
    """What an equation takes; what comes from outside gets a number when it is first met."""
    for each in equation.invars:
        if jaxprs.is_literal(each):
            yield Input(OUTSIDE, _number(each.val))
        else:
            found = made.get(each)
            if found is None:
                found = made[each] = Input(OUTSIDE, len(made))
            yield found
    for name in INDICES.get(equation.primitive.name, ()):
        yield Input(OUTSIDE, equation.params[name])


def _number(value: Any) -> object:
    """A number that was written into an equation, for comparison; NaN is as NaN."""
    return np.asarray(value).tobytes() if np.ndim(value) == 0 else id(value)


def _computes(equation: Any) -> bool:
    if equation.primitive.name in jaxprs.CALLS:
        inside = jaxprs.inner_jaxprs(equation)
        return any(_computes(each) for jaxpr in inside for each in jaxprs.equations_in(jaxpr))
    return equation.primitive.name not in MOVES
