"""Products, with the target's rounding of their inputs."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jitcount._emulate.arithmetic import BITS, BY_ALGORITHM, EXACT, TIES_AWAY
from jitcount._emulate.rules.perturb import loosened_sum
from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array, listed
from jitcount._hlo.parser import NARROW, Shape, flat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._emulate.arithmetic import Rounding
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Writer
    from jitcount._hlo.parser import Instruction


def product(
    translation: Translation,
    writer: Writer,
    instruction: Instruction,
    given: tuple[Value, Value],
    make: Product,
) -> Value:
    """A product as the target computes it: inputs rounded, perhaps in parts, sums in float32."""
    left, right = given
    result = flat(instruction.shapes)[0]
    inner = _inner(left.shape.element, right.shape.element, result.element)
    left, right = writer.convert(left, inner), writer.convert(right, inner)
    rounding = _rounding(translation, instruction, given)
    if rounding is None or not translation.site(instruction, rounding):
        made = _loosened(translation, writer, (left, right), make(left, right, inner), make)
        return writer.convert(made, result.element)
    made = in_passes(writer, (left, right), rounding, make, inner)
    made = _loosened(translation, writer, (left, right), made, make)
    return writer.convert(made, result.element)


def _loosened(
    translation: Translation,
    writer: Writer,
    given: tuple[Value, Value],
    made: Value,
    make: Product,
) -> Value:
    """A product as another order of its sums may have it."""
    if translation.draw == 0 or made.shape.element not in {"f32", "f64"} or not made.shape.size:
        return made
    left, right = (writer.op("abs", [each], each.shape.of()) for each in given)
    terms = math.isqrt(left.shape.size * right.shape.size // made.shape.size)
    return loosened_sum(translation, writer, made, make(left, right, made.shape.element), terms)


def _inner(left: str, right: str, result: str) -> str:
    """In which type products are summed: 16 bits in float32, as every matrix unit does."""
    widest = max((left, right, result), key=lambda element: Shape(element, ()).bits)
    if widest in NARROW or widest.startswith("f8"):
        return "f32"
    return result if result[0] in "suc" else widest


def _rounding(
    translation: Translation, instruction: Instruction, given: tuple[Value, Value]
) -> Rounding | None:
    """Of complex numbers the parts are rounded: cuBLAS takes TF32 for them, too."""
    elements = {value.shape.element for value in given}
    algorithm = instruction.attributes.get("algorithm", "").lower().removeprefix("alg_")
    if algorithm not in {"", "unset"}:
        return _named(translation, algorithm, elements)
    if not ({"f32"} <= elements <= {"f32", "bf16"} or elements == {"c64"}):
        return None
    if translation.is_in_loop and not translation.arithmetic.in_loops:
        return None
    asked = instruction.attributes.get("operand_precision", "{default}").strip("{}").split(",")
    order = ("default", "high", "highest")
    precision = max((each.strip() for each in asked), key=order.index)
    return translation.arithmetic.products.get(precision)


def _named(translation: Translation, algorithm: str, elements: set[str]) -> Rounding | None:
    """What an algorithm does to float32; of three passes and more the parts are not known."""
    if algorithm not in BY_ALGORITHM or elements != {"f32"} or translation.is_in_loop:
        raise ValueError(f"a product by the algorithm {algorithm}")
    return None if translation.arithmetic is EXACT else BY_ALGORITHM[algorithm]


@rule("dot")
def _dot(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    if "sparsity" in instruction.attributes:
        raise ValueError("a sparse product")
    n = instruction.numbers
    axes = Axes(
        list(zip(n("lhs_batch_dims"), n("rhs_batch_dims"), strict=True)),
        list(zip(n("lhs_contracting_dims"), n("rhs_contracting_dims"), strict=True)),
    )
    left, right = operands
    return product(
        translation,
        writer,
        instruction,
        (left, right),
        Dot(writer, axes),
    )


# --- A product in several passes: of parts of its inputs, added up --------------------------------


if TYPE_CHECKING:
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


# --- Products of matrices as StableHLO writes them, without further rounding ----------------------


@dataclass(frozen=True, slots=True)
class Axes:
    """Which axes of a product are multiplied: pairs of a left and a right one."""

    batch: list[tuple[int, int]]
    contracted: list[tuple[int, int]]


def _as_they_are(left: Value, right: Value) -> tuple[Value, Value]:
    return left, right


def _as_it_is(made: Value) -> Value:
    return made


@dataclass(frozen=True, slots=True)
class Dot:
    """How a product of matrices is made, of two values or of many at once."""

    writer: Writer
    axes: Axes
    before: Callable[[Value, Value], tuple[Value, Value]] = _as_they_are
    """What the axes are counted in."""

    after: Callable[[Value], Value] = _as_it_is
    """How the result is to be."""

    def __call__(self, left: Value, right: Value, element: str) -> Value:
        """Of two values."""
        return self.after(dot(self.writer, *self.before(left, right), self.axes, element))


def dot(writer: Writer, left: Value, right: Value, axes: Axes, element: str) -> Value:
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
