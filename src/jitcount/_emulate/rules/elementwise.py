"""Operations on each element by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.rules.perturb import perturbed_function
from jitcount._emulate.translate import rule
from jitcount._hlo.parser import NARROW

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value

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

_WIDEST = 64  # bits of a whole number


@rule(*_NAMES)
def _elementwise(context: Context) -> Value:
    """Operands of one type, as StableHLO wants; 16 bits are computed in float32, and rounded."""
    writer, opcode, shape = context.writer, context.opcode, context.result
    is_wide, arrays = context.translation.is_wide, context.arrays
    inner = shape.element
    if inner in NARROW and (is_wide or opcode not in _EXACT):
        inner = "f32"
    elif opcode == "abs" and arrays[0].shape.element in {"c64", "c128"}:
        return writer.op("abs", arrays, shape)
    given = [writer.convert(each, inner) for each in arrays]
    if opcode == "clamp":
        given = [_spread(context, each) for each in given]
    result = writer.op(_NAMES[opcode], given, shape.replace(inner))
    result = perturbed_function(context, opcode, result)
    return result if is_wide else writer.convert(result, shape.element)


def _spread(context: Context, value: Value) -> Value:
    """A scalar at every place of the result."""
    extents = context.result.extents
    if value.shape.extents == extents:
        return value
    return context.writer.broadcast(value, value.shape.replace(extents=extents), ())


@rule("is-finite", "real", "imag", "complex")
def _other_result(context: Context) -> Value:
    return context.same()


@rule("mulhi")
def _upper_half(context: Context) -> Value:
    """The upper half of the bits of a product of whole numbers: of one twice as wide."""
    writer, shape, given = context.writer, context.result, context.arrays
    if shape.bits == _WIDEST:
        return writer.op("chlo.mulhi", given, shape)
    wide = f"{shape.element[0]}{2 * shape.bits}"
    product = writer.apply("multiply", *(writer.convert(each, wide) for each in given))
    half = writer.full(shape.bits, product.shape)
    return writer.convert(writer.apply("shift_right_logical", product, half), shape.element)


@rule("select")
def _select(context: Context) -> Value:
    which, *given = context.arrays
    element = context.result.element
    if context.translation.is_wide and element in NARROW:
        element = "f32"
    one, other = (context.writer.convert(each, element) for each in given)
    return context.writer.select(which, one, other)


@rule("compare")
def _compare(context: Context) -> Value:
    widest = max(context.arrays, key=lambda each: each.shape.bits).shape.element
    one, other = (context.writer.convert(each, widest) for each in context.arrays)
    kind = context.attributes.get("type") or _kind(widest)
    return context.writer.compare(one, other, context.attributes["direction"], kind)


def _kind(element: str) -> str:
    if element == "pred" or element.startswith("u"):
        return "UNSIGNED"
    return "SIGNED" if element.startswith("s") else "FLOAT"


@rule("convert")
def _convert(context: Context) -> Value:
    return context.as_declared(context.arrays[0])


@rule("reduce-precision")
def _reduce_precision(context: Context) -> Value:
    (exponent,) = context.numbers("exponent_bits")
    (mantissa,) = context.numbers("mantissa_bits")
    return context.writer.rounded(context.arrays[0], exponent, mantissa)


@rule("stochastic-convert")
def _stochastic(_: Context) -> Value:
    raise ValueError("stochastic rounding")
