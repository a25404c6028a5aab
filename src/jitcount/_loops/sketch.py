"""A program as plain facts: what the search for loops needs of it, and no more.

A sketch is made while the user's call waits, and the search comes later. In between it keeps
nothing of JAX's or of the user's alive: no array, no function, no tracer. Of stacks it keeps the
code of their frames, as JAX does too, but no frame, and no value in one.

What is inside of a call, or of the body of a scan, is a level of its own, since a loop is either in
a function or around its call.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitcount._jax import jaxprs
from jitcount._loops.repeats import OUTSIDE, Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitcount._jax.jaxprs import CodeStack, Source

MOVES = frozenset(
    {"broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "dynamic_slice",
     "expand_dims", "iota", "pad", "reshape", "rev", "slice", "split", "squeeze", "transpose"}
)  # fmt: skip
"""Primitives that move data and compute nothing; JAX makes several for one line: `jnp.stack`."""

INDICES = {
    "slice": frozenset({"start_indices", "limit_indices"}),
    "pad": frozenset({"padding_config"}),
}
"""By primitive, parameters that a loop would compute from its index; the shapes say the rest."""


class EquationKind(NamedTuple):
    """What equations that do the same have in common."""

    number: int
    shapes: tuple[object, ...]
    operations: int
    """How many operations one stands for, with those in bodies of its own."""

    computes: bool
    """Whether it does more than move data."""


class EquationSketch(NamedTuple):
    """What is kept of one equation."""

    kind: EquationKind
    inputs: tuple[Input, ...]
    stack: CodeStack
    is_backward: bool


@dataclass(slots=True)
class JaxprSketch:
    """What is kept of one jaxpr: its equations, without those in bodies of theirs."""

    equations: list[EquationSketch]
    source: Source | None
    is_backward: bool
    """Whether it is inside of an equation that belongs to a backward pass."""

    jaxpr: Any = None
    """The jaxpr itself, if its loops are to be made into scans later."""


# --- What an equation does, as a number -----------------------------------------------------------

_PLAIN = (int, float, complex, str, bytes, np.dtype, type(None), type)


class _Signatures:
    """Numbers that are equal for equations that do the same: for the copies of one in a loop.

    Small numbers that change from copy to copy do not count: one that was written into an equation,
    or where a slice begins. The primitive, its other parameters, dtypes and shapes do, and for what
    has a body, all of that for the body.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._bodies: dict[int, tuple[Any, int, list[int]]] = {}
        """By the id of a jaxpr, which is kept with them so that its id stays its own."""

    def of_equation(self, equation: Any) -> int:
        """The number of an equation, the same for equations that do the same."""
        name = equation.primitive.name
        left_out = INDICES.get(name, frozenset())
        parameters: object = tuple(
            (key, self._value(value))
            for key, value in sorted(equation.params.items())
            if key not in left_out
        )
        if name in jaxprs.CALLS:  # their rules for derivatives are new functions each time
            parameters = tuple(map(self.of_jaxpr, jaxprs.inner_jaxprs(equation)))
        return self._number((name, parameters, _shapes_of(equation)))

    def of_jaxpr(self, jaxpr: Any) -> int:
        """The number of a jaxpr, by what it does and from what it computes what."""
        return self._body(jaxpr)[1]

    def of_equations(self, jaxpr: Any) -> list[int]:
        """The numbers of a jaxpr's equations."""
        return self._body(jaxpr)[2]

    def _body(self, jaxpr: Any) -> tuple[Any, int, list[int]]:
        if id(jaxpr) not in self._bodies:
            numbers = list(map(self.of_equation, jaxprs.equations_in(jaxpr)))
            number = self._number(_written(jaxpr, numbers))
            self._bodies[id(jaxpr)] = jaxpr, number, numbers
        return self._bodies[id(jaxpr)]

    def _value(self, value: Any) -> object:
        """A parameter as something that can be hashed; for functions and the like, their type."""
        if isinstance(value, _PLAIN):
            return type(value).__name__, value
        if isinstance(value, list | tuple):
            return type(value).__name__, tuple(map(self._value, value))
        if isinstance(value, dict):
            return "dict", tuple((str(key), self._value(each)) for key, each in value.items())
        if (jaxpr := jaxprs.open_jaxpr(value)) is not None:
            return self.of_jaxpr(jaxpr)
        return value if _is_a_value(value) else type(value).__qualname__

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _written(jaxpr: Any, numbers: list[int]) -> object:
    """A jaxpr as something that can be hashed, from the numbers of its equations."""
    names: dict[Any, int] = {}

    def name(value: Any) -> int:
        return -1 if jaxprs.is_literal(value) else names.setdefault(value, len(names))

    heads = tuple((name(each), _shape(each)) for each in (*jaxpr.constvars, *jaxpr.invars))
    equations = tuple(
        (number, tuple(map(name, each.invars)), tuple(map(name, each.outvars)))
        for number, each in zip(numbers, jaxprs.equations_in(jaxpr), strict=True)
    )
    return "jaxpr", heads, equations, tuple(map(name, jaxpr.outvars))


def _is_a_value(value: Any) -> bool:
    """Whether a parameter can be equal to others, and not only to itself."""
    equal: Any = type(value).__eq__
    if isinstance(value, types.FunctionType) or equal is object.__eq__:
        return False
    try:
        hash(value)
    except Exception:  # noqa: BLE001 (what it holds may be anything)
        return False
    return True


def _shapes_of(equation: Any) -> tuple[object, ...]:
    """The dtypes and shapes of an equation's inputs and outputs."""
    return tuple(_shape(each) for each in (*equation.invars, *equation.outvars))


def _shape(value: Any) -> object:
    aval = value.aval
    return getattr(aval, "dtype", type(aval)), getattr(aval, "shape", ())


# --- Sketching a program --------------------------------------------------------------------------


@dataclass(slots=True)
class _Known:
    """What is known so far of a program that is being sketched."""

    signatures: _Signatures = field(default_factory=_Signatures)
    stacks: jaxprs.Stacks = field(default_factory=jaxprs.Stacks)
    kinds: dict[int, EquationKind] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    """The signatures of jaxprs that have been sketched."""


def sketches_of(closed_jaxpr: Any, *, keep: bool = False) -> list[JaxprSketch]:
    """Sketches of a program's jaxprs; those that do the same are sketched once.

    Args:
        closed_jaxpr: the program.
        keep: keep the jaxprs, too.
    """
    return list(_sketches(closed_jaxpr.jaxpr, _Known(), is_backward=False, keep=keep))


def _sketches(jaxpr: Any, known: _Known, *, is_backward: bool, keep: bool) -> Iterator[JaxprSketch]:
    number = known.signatures.of_jaxpr(jaxpr)
    if number in known.seen:  # called more than once, or traced anew for each iteration
        return
    known.seen.add(number)
    equations, inner = [], []
    made: dict[Any, Input] = {}
    numbers = known.signatures.of_equations(jaxpr)
    for at, (equation, number) in enumerate(zip(jaxprs.equations_in(jaxpr), numbers, strict=True)):
        is_new = number not in known.kinds
        kind = _kind(equation, number, known)
        is_inside = jaxprs.is_backward(equation)
        inputs = tuple(_inputs(equation, made))
        equations.append(EquationSketch(kind, inputs, known.stacks.of(equation), is_inside))
        made.update((each, Input(at, which)) for which, each in enumerate(equation.outvars))
        if is_new:  # bodies of the same kind are the same
            inner += [(each, is_inside) for each in jaxprs.inner_jaxprs(equation)]
    yield JaxprSketch(equations, jaxprs.source_of(jaxpr), is_backward, jaxpr if keep else None)
    for inside, is_inside in inner:
        yield from _sketches(inside, known, is_backward=is_backward or is_inside, keep=keep)


def _kind(equation: Any, number: int, known: _Known) -> EquationKind:
    found = known.kinds.get(number)
    if found is None:
        operations = jaxprs.weight(equation, known.counted)
        found = EquationKind(number, _shapes_of(equation), operations, _computes(equation))
        known.kinds[number] = found
    return found


def _inputs(equation: Any, made: dict[Any, Input]) -> Iterator[Input]:
    """The inputs of an equation; what comes from outside gets a number when it is first met."""
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
    """A number that was written into an equation, for comparison; NaN equals NaN."""
    return np.asarray(value).tobytes() if np.ndim(value) == 0 else id(value)


def _computes(equation: Any) -> bool:
    if equation.primitive.name in jaxprs.CALLS:
        inside = jaxprs.inner_jaxprs(equation)
        return any(_computes(each) for jaxpr in inside for each in jaxprs.equations_in(jaxpr))
    return equation.primitive.name not in MOVES
