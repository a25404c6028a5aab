"""A product in several passes: of parts of its inputs, added up."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from jitcount.emulate.arithmetic import BITS, TIES_AWAY
from jitcount.emulate.rules.dots import Axes, Dot, dot
from jitcount.emulate.shapes import Shape
from jitcount.emulate.writing import array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount.emulate.arithmetic import Rounding
    from jitcount.emulate.writing import Value, Writer

    Product = Callable[[Value, Value, str], Value]
    """Of a left and a right, with elements of a type."""

# Up to how many elements of both inputs all passes are made at once. That is one product in place
# of six, compiled in half the time; but it holds more copies of its inputs than one at a time does.
_SMALL = 1 << 20


def in_passes(
    writer: Writer, given: tuple[Value, Value], rounding: Rounding, make: Product, element: str
) -> Value:
    """The sum of the products of parts, the smallest first, so that it keeps what they add."""
    order = rounding.passes[::-1]
    is_small = sum(value.shape.size for value in given) <= _SMALL
    if isinstance(make, Dot) and len(order) > 1 and is_small:
        return make.after(_at_once(make, given, rounding, element))
    lefts, rights = (
        _parts(writer, value, rounding, max(pair[side] for pair in order))
        for side, value in enumerate(given)
    )
    return _added(writer, [make(lefts[one], rights[other], element) for one, other in order])


def _added(writer: Writer, values: Sequence[Value]) -> Value:
    return functools.reduce(lambda one, other: writer.op("add", [one, other], one.shape), values)


def _at_once(make: Dot, given: tuple[Value, Value], rounding: Rounding, element: str) -> Value:
    """All passes as one product, with a batch axis for them; added in the same order."""
    writer, order = make.writer, rounding.passes[::-1]
    left, right = (
        _stacked(writer, value, rounding, [pair[side] for pair in order])
        for side, value in enumerate(make.before(*given))
    )
    axes = Axes([(0, 0), *_moved(make.axes.batch)], _moved(make.axes.contracted))
    made = dot(writer, left, right, axes, element)
    return _added(writer, [writer.taken(made, at) for at in range(len(order))])


def _moved(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(one + 1, other + 1) for one, other in pairs]


def _stacked(writer: Writer, value: Value, rounding: Rounding, which: list[int]) -> Value:
    """Parts of a value, along a first axis.

    Each place computes all parts and takes its own: one small loop, where to join parts would be as
    many copies of all that is fused with them.
    """
    extents = (len(which), *value.shape.extents)
    shape = value.shape.of(extents=extents)
    axes = f"broadcast_dimensions = {array(range(1, len(extents)))}"
    parts = _parts(
        writer, writer.op("broadcast_in_dim", [value], shape, axes), rounding, max(which)
    )
    numbers = writer.constant(np.array(which, np.int32), Shape("s32", (len(which),)))
    first = "broadcast_dimensions = array<i64: 0>"
    places = writer.op("broadcast_in_dim", [numbers], shape.of("s32"), first)
    how = "comparison_direction = #stablehlo<comparison_direction EQ>"
    made = parts[-1]
    for number, part in enumerate(parts[:-1]):
        wanted = writer.full(number, shape.of("s32"))
        is_it = writer.op("compare", [places, wanted], shape.of("pred"), how)
        made = writer.op("select", [is_it, part, made], shape)
    return made


def _parts(writer: Writer, value: Value, rounding: Rounding, last: int) -> list[Value]:
    """A number as the sum of a few of fewer bits."""
    found = [_rounded(writer, value, rounding.to)]
    rest = value
    for _ in range(last):
        rest = writer.op("subtract", [rest, found[-1]], value.shape.of())
        found.append(_rounded(writer, rest, rounding.to))
    return found


def _rounded(writer: Writer, value: Value, to: str) -> Value:
    if value.shape.element == "c64":
        part = value.shape.of("f32")
        real, imaginary = (
            _rounded(writer, writer.op(name, [value], part), to) for name in ("real", "imag")
        )
        return writer.op("complex", [real, imaginary], value.shape.of())
    exponent, mantissa = BITS[to]
    if to in TIES_AWAY:
        return writer.rounded_away(value, mantissa)
    return writer.rounded(value, exponent, mantissa)
