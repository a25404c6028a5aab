"""Products, with the target's rounding of their inputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount.emulate.arithmetic import BY_ALGORITHM, EXACT
from jitcount.emulate.rules.dots import Axes, Dot
from jitcount.emulate.rules.loosened import loosened_sum
from jitcount.emulate.rules.passes import in_passes
from jitcount.emulate.shapes import NARROW, Shape, flat
from jitcount.emulate.translating import rule

if TYPE_CHECKING:
    from jitcount.emulate.arithmetic import Rounding
    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.rules.passes import Product
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Value, Writer


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
