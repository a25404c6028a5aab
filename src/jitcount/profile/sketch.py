"""A program as plain facts: what the search for loops needs of it, and no more.

A sketch is made while the user's call waits, and the search comes when a profile is written. In
between nothing of JAX's or of the user's is kept alive by it: no array, no function, no tracer. Of
stacks there is the code of their frames, as JAX keeps it too; no frame, and no value in one.

What is inside of a call, or of the body of a scan, is a level of its own, since a loop is either in
a function or around its call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitcount._jax import levels
from jitcount._jax.jaxprs import source_of
from jitcount.profile.repeats import OUTSIDE, Input
from jitcount.profile.signatures import INDICES, Signatures, shapes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitcount._jax.jaxprs import Source
    from jitcount._jax.levels import Stack

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
    stack: Stack
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
    stacks: levels.Stacks = field(default_factory=levels.Stacks)
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
    for at, (equation, number) in enumerate(zip(levels.equations_in(jaxpr), numbers, strict=True)):
        is_new = number not in known.kinds
        kind = _kind(equation, number, known)
        is_inside = levels.is_backward(equation)
        marks.append(Mark(kind, (*_inputs(equation, made),), known.stacks.of(equation), is_inside))
        made.update((each, Input(at, which)) for which, each in enumerate(equation.outvars))
        if is_new:  # bodies of the same kind are the same
            inner += [(each, is_inside) for each in levels.inner_jaxprs(equation)]
    yield Sketch(marks, source_of(jaxpr), is_backward, jaxpr if keep else None)
    for inside, is_inside in inner:
        yield from _sketches(inside, known, is_backward=is_backward or is_inside, keep=keep)


def _kind(equation: Any, number: int, known: _Known) -> Kind:
    found = known.kinds.get(number)
    if found is None:
        operations = levels.weight(equation, known.counted)
        found = Kind(number, shapes_of(equation), operations, _computes(equation))
        known.kinds[number] = found
    return found


def _inputs(equation: Any, made: dict[Any, Input]) -> Iterator[Input]:
    """What an equation takes; what comes from outside gets a number when it is first met."""
    for each in equation.invars:
        if levels.is_literal(each):
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
    if equation.primitive.name in levels.CALLS:
        inside = levels.inner_jaxprs(equation)
        return any(_computes(each) for jaxpr in inside for each in levels.equations_in(jaxpr))
    return equation.primitive.name not in MOVES
