"""Products, with the target's rounding of their inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount.emulate.arithmetic import BITS, TIES_AWAY
from jitcount.emulate.rules.loosened import loosened_sum
from jitcount.emulate.shapes import NARROW, Shape, flat
from jitcount.emulate.translating import rule
from jitcount.emulate.writing import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.emulate.arithmetic import Rounding
    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Value, Writer

    Product = Callable[[Value, Value, str], Value]
    """Of a left and a right, with elements of a type."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Which axes of a product are multiplied: pairs of a left and a right one."""

    batch: list[tuple[int, int]]
    contracted: list[tuple[int, int]]


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
    lefts = _parts(writer, left, rounding, max(one for one, _ in rounding.passes))
    rights = _parts(writer, right, rounding, max(other for _, other in rounding.passes))
    # The smallest first, so that the sum of the passes keeps what they add.
    total: Value | None = None
    for one, other in reversed(rounding.passes):
        made = make(lefts[one], rights[other], inner)
        total = made if total is None else writer.op("add", [total, made], made.shape)
    assert total is not None  # noqa: S101
    total = _loosened(translation, writer, (lefts[0], rights[0]), total, make)
    return writer.convert(total, result.element)


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
    elements = {value.shape.element for value in given}
    if "f32" not in elements or not elements <= {"f32", "bf16"}:
        return None
    if translation.is_in_loop and not translation.arithmetic.in_loops:
        return None
    asked = instruction.attributes.get("operand_precision", "{default}").strip("{}").split(",")
    order = ("default", "high", "highest")
    precision = max((each.strip() for each in asked), key=order.index)
    return translation.arithmetic.products.get(precision)


def _parts(writer: Writer, value: Value, rounding: Rounding, last: int) -> list[Value]:
    """A number as the sum of a few of fewer bits."""
    found = [_rounded(writer, value, rounding.to)]
    rest = value
    for _ in range(last):
        rest = writer.op("subtract", [rest, found[-1]], value.shape.of())
        found.append(_rounded(writer, rest, rounding.to))
    return found


def _rounded(writer: Writer, value: Value, to: str) -> Value:
    exponent, mantissa = BITS[to]
    if to in TIES_AWAY:
        return writer.rounded_away(value, mantissa)
    return writer.rounded(value, exponent, mantissa)


# --- Dots ---------------------------------------------------------------------------------------


@rule("dot")
def _dot(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    if (algorithm := instruction.attributes.get("algorithm")) is not None:
        raise ValueError(f"a product by the algorithm {algorithm}")
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
        lambda one, other, element: dot(writer, one, other, axes, element),
    )


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
