"""What floats are made of, and which of them have few digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount._jax.rewriting import Array, Builder

DIGITS = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""The binary digits of a float, by its type."""

_BITS = {"f32": ("i32", 0x7F800000), "f64": ("i64", 0x7FF0000000000000)}


def unit(element: str) -> float:
    """Half an ulp of 1."""
    return 2.0 ** -DIGITS[element]


def few_digits(builder: Builder, array: Array, digits: int = 0) -> Array:
    """Where an array has numbers of no more than so many digits, zeros or infinities.

    Without `digits`, half of those that its type has: 0, 1, 0.5, 3.
    """
    integer, _ = _BITS[array.element]
    digits = digits or DIGITS[array.element] // 2
    bits = builder.bits(array, integer)
    lower = (1 << (DIGITS[array.element] - digits)) - 1
    rest = builder.apply("and", bits, builder.full(lower, bits))
    return builder.compare(rest, "EQ", builder.full(0, rest))


def dropped_digits(builder: Builder, one: Array, other: Array) -> Array:
    """What rounding has cut off the product of two floats, as an integer with a sign.

    Zero where the product is exact. A product has one digit more or one less; that one is left out.
    """
    first, second = (_digits(builder, each) for each in (one, other))
    both = builder.apply("multiply", first, second)  # the lower half of it
    upper = (32 if both.element == "i32" else 64) - (DIGITS[one.element] - 1)
    return builder.apply("shift_left", both, builder.full(upper, both))


def _digits(builder: Builder, array: Array) -> Array:
    """The digits of each float as an integer, with the leading one, which is not stored."""
    integer, _ = _BITS[array.element]
    bits = builder.bits(array, integer)
    leading = DIGITS[array.element] - 1
    digits = builder.apply("and", bits, builder.full((1 << leading) - 1, bits))
    return builder.apply("or", digits, builder.full(1 << leading, digits))


def lowest_digit(builder: Builder, array: Array) -> Array:
    """The value of the last digit that is set, of each number; infinite for zeros."""
    integer, exponent = _BITS[array.element]
    bits, digits = builder.bits(array, integer), _digits(builder, array)
    last = builder.apply("and", digits, builder.apply("negate", digits))
    power = builder.apply("and", bits, builder.full(exponent, bits))
    value = builder.apply(
        "multiply", builder.convert(last, array.element), builder.bits(power, array.element)
    )
    first = builder.full(2.0 ** (1 - DIGITS[array.element]), value)
    value = builder.apply("multiply", value, first)
    is_zero = builder.compare(array, "EQ", builder.full(0.0, array))
    return builder.select(is_zero, builder.full(float("inf"), array), value)
