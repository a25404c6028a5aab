"""What a chip does in a way of its own, moved by as much as that may be off.

An order of summation and the last ulps of a function are the hardware's. In a program that is
*loosened* each sum and each such function is moved, every element up or down by chance, by what
`numerics` says that it is off as a rule. What that does to the result is carried through by the
program itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._hlo.parser import Shape
from jitcount._numerics.error_bounds import (
    EXPECTED_ULPS,
    expected_error,
    longest_chain,
    unit_roundoff,
)

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Writer

_NAMES = {"f32": "float32", "f64": "float64"}

# What `numerics` calls an opcode.
_OPCODES = {
    "divide": "divide",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "cbrt": "rsqrt",
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "log": "log",
    "log-plus-one": "log1p",
    "tanh": "tanh",
    "sine": "sin",
    "cosine": "cos",
    "tan": "tan",
    "erf": "erf",
    "logistic": "logistic",
}

# Those that it does not name are as far off as the farthest of them.
_OTHERS = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "cosh", "sinh"),
        "power",
    }
)


def loosened_function(translation: Translation, writer: Writer, opcode: str, value: Value) -> Value:
    """What a function gave, some ulps off."""
    name = _NAMES.get(value.shape.element)
    if translation.draw == 0 or name is None:
        return value
    if opcode in _OPCODES:
        ulps = EXPECTED_ULPS[_OPCODES[opcode]]
    elif opcode in _OTHERS:
        ulps = max(EXPECTED_ULPS.values())
    else:
        return value
    size = writer.op("abs", [value], value.shape)
    return _moved(translation, writer, value, size, ulps * 2 * unit_roundoff(name))


def loosened_sum(
    translation: Translation, writer: Writer, value: Value, magnitudes: Value, terms: int
) -> Value:
    """A sum of so many terms, off by what another order may change; beside it, their magnitudes."""
    name = _NAMES.get(value.shape.element)
    if name is None or terms < 2:
        return value
    relative = expected_error(longest_chain(terms), unit_roundoff(name), value.shape.size)
    return _moved(translation, writer, value, magnitudes, relative)


def _moved(
    translation: Translation, writer: Writer, value: Value, size: Value, relative: float
) -> Value:
    """Each element up or down, by a part of its size."""
    shape = value.shape
    step = writer.op("multiply", [size, writer.full(relative, shape)], shape)
    back = writer.op("negate", [step], shape)
    step = writer.op("select", [_coins(translation, writer, shape.extents), step, back], shape)
    return writer.op("add", [value, step], shape)


def _coins(translation: Translation, writer: Writer, extents: tuple[int, ...]) -> Value:
    """True or false by chance, for each element; another chance for each draw and each place.

    The number of an element is multiplied and folded, as a hash does; its top bit decides.
    """
    count = 1
    for extent in extents:
        count *= extent
    row = Shape("u32", (count,))
    number = writer.op("iota", [], row, "iota_dimension = 0 : i64")
    seed = (translation.draw * 0x9E3779B9 + next(writer.names) * 0x85EBCA6B) % (1 << 32)
    number = writer.op("add", [number, writer.full(seed, row)], row)
    for factor, shift in ((0x7FEB352D, 15), (0x846CA68B, 16)):
        shifted = writer.op("shift_right_logical", [number, writer.full(16, row)], row)
        number = writer.op("xor", [number, shifted], row)
        number = writer.op("multiply", [number, writer.full(factor, row)], row)
        shifted = writer.op("shift_right_logical", [number, writer.full(shift, row)], row)
        number = writer.op("xor", [number, shifted], row)
    how = (
        "compare_type = #stablehlo<comparison_type UNSIGNED>, "
        "comparison_direction = #stablehlo<comparison_direction GE>"
    )
    half = writer.full(1 << 31, row)
    coins = writer.op("compare", [number, half], row.of("pred"), how)
    return writer.reshape(coins, extents)
