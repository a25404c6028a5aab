"""Products, with the target's rounding of their inputs.

A chip rounds what it multiplies to fewer bits, as `arithmetic` says: once, or in several *passes*,
products of parts of the inputs that are added up. `product` writes that around any product that it
is told how to make: a `Dot` of matrices, or a convolution.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jitcount._emulate.arithmetic import BFLOAT16, BITS, BY_ALGORITHM, EXACT, TIES_AWAY
from jitcount._emulate.rules.perturb import perturbed_sum
from jitcount._emulate.translate import rule
from jitcount._emulate.writer import Value, listed
from jitcount._hlo.parser import NARROW, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._emulate.arithmetic import Rounding
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Writer

Make = Callable[[Value, Value, str], Value]
"""Writes a product of a left and a right array, with elements of a type."""


@rule("dot")
def _dot(context: Context) -> Value:
    if "sparsity" in context.attributes:
        raise ValueError("a sparse product")
    n = context.numbers
    axes = Axes(
        list(zip(n("lhs_batch_dims"), n("rhs_batch_dims"), strict=True)),
        list(zip(n("lhs_contracting_dims"), n("rhs_contracting_dims"), strict=True)),
    )
    left, right = context.arrays
    return product(context, (left, right), Dot(context.writer, axes))


def product(context: Context, given: tuple[Value, Value], make: Make) -> Value:
    """A product as the target computes it: inputs rounded, perhaps in parts, sums in float32."""
    writer = context.writer
    left, right = given
    element = context.results[0].element
    inner = _inner(left.shape.element, right.shape.element, element)
    left, right = writer.convert(left, inner), writer.convert(right, inner)
    rounding = _rounding(context, _multiplied({value.shape.element for value in given}, inner))
    if rounding is None:
        context.translation.note_narrowed(context.instruction)
    if rounding is None or not context.translation.note_rounding(context.instruction, rounding):
        made = make(left, right, inner)
    else:
        made = _in_passes(writer, (left, right), rounding, make, inner)
    if context.translation.perturbation_seed:
        made = _perturbed(context, (left, right), made, make)
    return writer.convert(made, element)


def _inner(left: str, right: str, result: str) -> str:
    """The type in which products are summed: 16 bits in float32, as every matrix unit does.

    A whole number beside a float is taken as a float, however wide it is.
    """
    if result[0] in "suc":
        return result
    floats = [element for element in (left, right, result) if _is_float(element)]
    widest = max(floats, key=lambda element: Shape(element, ()).bits)
    return "f32" if widest in NARROW or widest.startswith("f8") else widest


def _is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))


def _multiplied(elements: set[str], inner: str) -> set[str]:
    """The types of what is multiplied: a whole number beside a float was made a float before."""
    if not any(map(_is_float, elements)):
        return elements
    return {element if _is_float(element) else inner for element in elements}


def _rounding(context: Context, elements: set[str]) -> Rounding | None:
    """How the inputs are rounded, if at all; of complex numbers each part (cuBLAS, to TF32)."""
    arithmetic, is_in_loop = context.translation.arithmetic, context.translation.is_in_loop
    algorithm = context.attributes.get("algorithm", "").lower().removeprefix("alg_")
    if algorithm not in {"", "unset"}:
        rounding = _by_algorithm(algorithm, elements, is_in_loop=is_in_loop)
        return None if arithmetic is EXACT else rounding
    if not ({"f32"} <= elements <= {"f32", "bf16"} or elements == {"c64"}):
        return None
    if is_in_loop and not arithmetic.in_loops:
        return None
    asked = context.attributes.get("operand_precision", "{default}").strip("{}").split(",")
    order = ("default", "high", "highest")
    precision = max((each.strip() for each in asked), key=order.index)
    return arithmetic.products.get(precision)


def _by_algorithm(algorithm: str, elements: set[str], *, is_in_loop: bool) -> Rounding | None:
    """How the inputs are rounded where the program names an algorithm.

    Of three passes and more the parts are not known, nor what rounds to an algorithm's type in a
    loop. What has 16 bits that the type holds is not rounded, wherever it is.
    """
    rounding = BY_ALGORITHM.get(algorithm)
    held = frozenset({"bf16"}) if rounding is not None and rounding.to == BFLOAT16 else NARROW
    if algorithm in BY_ALGORITHM and elements <= held:
        return None
    if algorithm not in BY_ALGORITHM or elements != {"f32"} or (is_in_loop and rounding):
        raise ValueError(f"a product by the algorithm {algorithm}")
    return rounding


def _perturbed(context: Context, given: tuple[Value, Value], made: Value, make: Make) -> Value:
    """A product as another order of its sums may have it."""
    if made.shape.element not in {"f32", "f64"} or not made.shape.size:
        return made
    left, right = (context.writer.apply("abs", each) for each in given)
    terms = math.isqrt(left.shape.size * right.shape.size // made.shape.size)
    return perturbed_sum(context, made, make(left, right, made.shape.element), terms)


# --- Products of matrices -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a product that are multiplied: pairs of a left and a right one."""

    batch: list[tuple[int, int]]
    contracted: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Dot:
    """How to make a product of matrices, of two values or of many at once."""

    writer: Writer
    axes: Axes
    before: Callable[[Value, Value], tuple[Value, Value]] = lambda left, right: (left, right)
    """Changes both inputs to the shapes that `axes` are counted in."""

    after: Callable[[Value], Value] = lambda made: made
    """Changes the product to the shape that is wanted."""

    def __call__(self, left: Value, right: Value, element: str) -> Value:
        """Write the product of two values."""
        return self.after(_dot_general(self.writer, *self.before(left, right), self.axes, element))


def _dot_general(writer: Writer, left: Value, right: Value, axes: Axes, element: str) -> Value:
    """A product without further rounding: batch axes, then those of the left, then the right."""
    lefts = [axis for axis, _ in axes.batch], [axis for axis, _ in axes.contracted]
    rights = [axis for _, axis in axes.batch], [axis for _, axis in axes.contracted]
    extents = [left.shape.extents[axis] for axis in lefts[0]]
    for value, taken in ((left, lefts), (right, rights)):
        used = {*taken[0], *taken[1]}
        extents += [e for axis, e in enumerate(value.shape.extents) if axis not in used]
    parts = {
        "lhs_batching_dimensions": lefts[0],
        "rhs_batching_dimensions": rights[0],
        "lhs_contracting_dimensions": lefts[1],
        "rhs_contracting_dimensions": rights[1],
    }
    numbers = ", ".join(f"{name} = {listed(axes)}" for name, axes in parts.items() if axes)
    how = (
        f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, "
        "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
    )
    return writer.op("dot_general", [left, right], Shape(element, tuple(extents)), how)


# --- Passes ---------------------------------------------------------------------------------------

# Up to how many elements of both inputs all passes are made at once. That is one product in place
# of six, compiled in half the time; but it holds more copies of its inputs than one at a time does.
_SMALL = 1 << 20


def _in_passes(
    writer: Writer, given: tuple[Value, Value], rounding: Rounding, make: Make, element: str
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


def _at_once(make: Dot, given: tuple[Value, Value], rounding: Rounding, element: str) -> Value:
    """All passes as one product, with a batch axis for them; added in the same order."""
    writer, order = make.writer, rounding.passes[::-1]
    left, right = (
        _stacked(writer, value, rounding, [pair[side] for pair in order])
        for side, value in enumerate(make.before(*given))
    )
    batch, contracted = (
        [(one + 1, other + 1) for one, other in pairs]
        for pairs in (make.axes.batch, make.axes.contracted)
    )
    made = _dot_general(writer, left, right, Axes([(0, 0), *batch], contracted), element)
    return _added(writer, [writer.taken(made, at) for at in range(len(order))])


def _added(writer: Writer, values: Sequence[Value]) -> Value:
    return functools.reduce(functools.partial(writer.apply, "add"), values)


def _stacked(writer: Writer, value: Value, rounding: Rounding, which: list[int]) -> Value:
    """Parts of a value, along a first axis.

    Each place computes all parts and takes its own: one small loop, where to join parts would be as
    many copies of all that is fused with them.
    """
    extents = (len(which), *value.shape.extents)
    shape = value.shape.replace(extents=extents)
    copies = writer.broadcast(value, shape, range(1, len(extents)))
    parts = _parts(writer, copies, rounding, max(which))
    numbers = writer.constant(np.array(which, np.int32), Shape("s32", (len(which),)))
    places = writer.broadcast(numbers, shape.replace("s32"), [0])
    made = parts[-1]
    for number, part in enumerate(parts[:-1]):
        is_it = writer.compare(places, writer.full(number, places.shape), "EQ")
        made = writer.select(is_it, part, made)
    return made


def _parts(writer: Writer, value: Value, rounding: Rounding, last: int) -> list[Value]:
    """A number as the sum of a few of fewer bits."""
    found = [_rounded(writer, value, rounding.to)]
    rest = value
    for _ in range(last):
        rest = writer.apply("subtract", rest, found[-1])
        found.append(_rounded(writer, rest, rounding.to))
    return found


def _rounded(writer: Writer, value: Value, to: str) -> Value:
    if value.shape.element == "c64":
        part = value.shape.replace("f32")
        real, imaginary = (
            _rounded(writer, writer.op(name, [value], part), to) for name in ("real", "imag")
        )
        return writer.op("complex", [real, imaginary], value.shape)
    exponent, mantissa = BITS[to]
    if to in TIES_AWAY:
        return writer.rounded_away(value, mantissa)
    return writer.rounded(value, exponent, mantissa)
