"""Operations on each element by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.rules.perturb import loosened_function
from jitcount._emulate.translate import rule
from jitcount._hlo.parser import NARROW

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Writer
    from jitcount._hlo.parser import Instruction

_NAMES = {
    "abs": "abs",
    "acos": "chlo.acos",
    "acosh": "chlo.acosh",
    "asin": "chlo.asin",
    "asinh": "chlo.asinh",
    "atan": "chlo.atan",
    "atanh": "chlo.atanh",
    "add": "add",
    "and": "and",
    "atan2": "atan2",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "clamp": "clamp",
    "count-leading-zeros": "count_leading_zeros",
    "cosh": "chlo.cosh",
    "cosine": "cosine",
    "divide": "divide",
    "erf": "chlo.erf",
    "exponential": "exponential",
    "exponential-minus-one": "exponential_minus_one",
    "floor": "floor",
    "log": "log",
    "log-plus-one": "log_plus_one",
    "logistic": "logistic",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "multiply",
    "negate": "negate",
    "not": "not",
    "or": "or",
    "popcnt": "popcnt",
    "power": "power",
    "remainder": "remainder",
    "round-nearest-afz": "round_nearest_afz",
    "round-nearest-even": "round_nearest_even",
    "rsqrt": "rsqrt",
    "shift-left": "shift_left",
    "shift-right-arithmetic": "shift_right_arithmetic",
    "shift-right-logical": "shift_right_logical",
    "sign": "sign",
    "sine": "sine",
    "sinh": "chlo.sinh",
    "sqrt": "sqrt",
    "subtract": "subtract",
    "tan": "tan",
    "tanh": "tanh",
    "xor": "xor",
}

# What only moves bits, and never rounds.
_EXACT = frozenset({"abs", "negate", "maximum", "minimum", "clamp", "sign", "ceil", "floor"})


@rule(*_NAMES)
def _elementwise(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    """Operands of one type, as StableHLO wants; 16 bits are computed in float32, and rounded."""
    shape = instruction.shape.of()
    name = _NAMES[instruction.opcode]
    inner = shape.element
    if inner in NARROW and (translation.is_wide or instruction.opcode not in _EXACT):
        inner = "f32"
    elif instruction.opcode == "abs" and operands[0].shape.element in {"c64", "c128"}:
        return writer.op(name, operands, shape)
    given = [writer.convert(operand, inner) for operand in operands]
    if instruction.opcode == "clamp":
        given = [_spread(writer, each, shape.extents) for each in given]
    result = writer.op(name, given, shape.of(inner))
    result = loosened_function(translation, writer, instruction.opcode, result)
    return result if translation.is_wide else writer.convert(result, shape.element)


def _spread(writer: Writer, value: Value, extents: tuple[int, ...]) -> Value:
    if value.shape.extents == extents:
        return value
    shape = value.shape.of(extents=extents)
    return writer.op("broadcast_in_dim", [value], shape, "broadcast_dimensions = array<i64>")


@rule("is-finite", "real", "imag", "complex")
def _other_result(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    name = instruction.opcode.replace("-", "_")
    return writer.op(name, operands, instruction.shape.of())


@rule("select")
def _select(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    which, *given = operands
    shape = instruction.shape.of()
    if translation.is_wide and shape.element in NARROW:
        shape = shape.of("f32")
    given = [writer.convert(each, shape.element) for each in given]
    return writer.op("select", [which, *given], shape)


@rule("compare")
def _compare(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    direction = instruction.attributes["direction"]
    one, other = operands
    widest = max(operands, key=lambda each: each.shape.bits).shape.element
    one, other = writer.convert(one, widest), writer.convert(other, widest)
    kind = instruction.attributes.get("type") or _kind(widest)
    how = (
        f"compare_type = #stablehlo<comparison_type {kind}>, "
        f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    )
    return writer.op("compare", [one, other], instruction.shape.of(), how)


def _kind(element: str) -> str:
    if element == "pred" or element.startswith("u"):
        return "UNSIGNED"
    return "SIGNED" if element.startswith("s") else "FLOAT"


@rule("convert")
def _convert(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    return translation.declared(writer, instruction, operands[0])


@rule("reduce-precision")
def _reduce_precision(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    (exponent,) = instruction.numbers("exponent_bits")
    (mantissa,) = instruction.numbers("mantissa_bits")
    return writer.rounded(operands[0], exponent, mantissa)


@rule("stochastic-convert")
def _stochastic(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    raise ValueError("stochastic rounding")
