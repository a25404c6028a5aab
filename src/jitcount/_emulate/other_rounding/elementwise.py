"""Operations on each number: rounded the other way, or moved by some ulps.

What is exact stays exact. The remainder of an addition is itself a float (`_remainder_of_sum`, by
Knuth), and the digits that a product has lost are found with integers. Of a quotient and of
functions the remainder is not known: there a result with few digits (0, 1, 0.5, 3) is taken for
exact. A sum or a product moves by an ulp, and only where so much has been cut off that it may: a
fifth of an ulp. All others move by up to what `error_bounds` expects.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount._emulate.other_rounding.formats import DIGITS, dropped_digits, few_digits, unit
from jitcount._numerics.error_bounds import EXPECTED_ULPS

if TYPE_CHECKING:
    from jitcount._emulate.other_rounding.chance import Chance
    from jitcount._jax.rewriting import Array, Builder, Operation

ROUNDED = frozenset({"add", "subtract", "multiply", "square"})
"""Those that every backend rounds to the nearest, unless it fuses or reorders them."""

# Those that `error_bounds` does not name are as far off as the farthest of them.
_OTHERS = max(EXPECTED_ULPS.values())

FUNCTIONS = {
    "divide": EXPECTED_ULPS["divide"],
    "sqrt": EXPECTED_ULPS["sqrt"],
    "rsqrt": EXPECTED_ULPS["rsqrt"],
    "cbrt": EXPECTED_ULPS["rsqrt"],
    "exponential": EXPECTED_ULPS["exp"],
    "exponential_minus_one": EXPECTED_ULPS["expm1"],
    "log": EXPECTED_ULPS["log"],
    "log_plus_one": EXPECTED_ULPS["log1p"],
    "tanh": EXPECTED_ULPS["tanh"],
    "sine": EXPECTED_ULPS["sin"],
    "cosine": EXPECTED_ULPS["cos"],
    "tan": EXPECTED_ULPS["tan"],
    "erf": EXPECTED_ULPS["erf"],
    "logistic": EXPECTED_ULPS["logistic"],
} | dict.fromkeys(
    (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "bessel_i1e", "cosh", "digamma",
        "erf_inv", "erfc", "lgamma", "polygamma", "power", "sinh", "zeta",
    ),
    _OTHERS,
)  # fmt: skip
"""By operation, the ulps that it is off as a rule."""

_RANGES = {
    "tanh": (-1.0, 1.0),
    "sine": (-1.0, 1.0),
    "cosine": (-1.0, 1.0),
    "erf": (-1.0, 1.0),
    "logistic": (0.0, 1.0),
    "erfc": (0.0, 2.0),
}

# Of complex numbers: a root of a sum of squares; a sum of two products.
_ULPS_OF_MODULUS, _ULPS_OF_PRODUCT = EXPECTED_ULPS["sqrt"] + 1, 1.0

# All parts of the ulps are as likely; the largest figures are not reached.
_OF_ULPS = 0.7

# A remainder of a fifth of an ulp and more can become half an ulp, and round to the next float.
_MAGNIFIED = 2.5


def is_exact(name: str, operands: list[Array]) -> bool:
    """Whether nothing is rounded, seen by constants alone: `x * 2`, `x + 0`."""
    numbers = [each.splat for each in operands]
    if name in {"add", "subtract"}:
        return 0.0 in numbers
    if name == "multiply":
        return any(number is not None and _is_power_of_two(number) for number in numbers)
    return name == "divide" and numbers[1] is not None and _is_power_of_two(numbers[1])


def _is_power_of_two(number: float) -> bool:
    return not math.isfinite(number) or math.frexp(abs(number))[0] in {0.0, 0.5}


def moved(
    builder: Builder, chance: Chance, operation: Operation, operands: list[Array], result: Array
) -> Array:
    """The result of an operation as another backend might have rounded it."""
    name = operation.name
    if result.is_complex:
        return _moved_complex(builder, chance, name, operands, result)
    if result.element in {"f16", "bf16"}:
        # Computed in 32 bits, then rounded up or down by chance.
        wide = [builder.convert(each, "f32") for each in operands]
        true = builder.again(operation, wide, "f32")
        return rounded_by_chance(builder, chance, name, true, result.element)
    return _moved_real(builder, chance, name, operands, result)


def _moved_real(
    builder: Builder, chance: Chance, name: str, operands: list[Array], result: Array
) -> Array:
    if name not in ROUNDED:
        low, high = _RANGES.get(name, (-math.inf, math.inf))
        kept = few_digits(builder, result)
        if name == "divide":
            kept = builder.apply("or", kept, _powers_of_two(builder, operands[1]))
        if name == "power":
            kept = builder.apply("or", kept, builder.compare(result, "EQ", operands[0]))
        ulps = _ULPS_OF_MODULUS if name == "abs" else FUNCTIONS[name]
        near = _nearby(builder, chance, name, result, kept, ulps)
        return _between(builder, near, low, high)
    one, other = operands if len(operands) == 2 else operands * 2
    if name in {"multiply", "square"}:
        return _moved_product(builder, chance, one, other, result)
    return _moved_sum(builder, chance, name, one, other, result)


def _moved_sum(
    builder: Builder, chance: Chance, name: str, one: Array, other: Array, result: Array
) -> Array:
    """A sum, or half the time the float on the other side of the true value."""
    remainder = _remainder_of_sum(builder, one, other, result, is_difference=name != "add")
    is_known = builder.compare(remainder, "EQ", remainder)  # not of infinities
    is_chosen = builder.apply("and", _half(builder, chance, name, result), is_known)
    step = builder.full(_MAGNIFIED * chance.scale, remainder)
    beyond = builder.apply("add", result, builder.apply("multiply", remainder, step))
    return builder.select(is_chosen, beyond, result)


def _half(builder: Builder, chance: Chance, name: str, result: Array) -> Array:
    """True for half of the elements."""
    bits = chance.bits(builder, result, name)
    return builder.compare(bits, "LT", builder.full(0, bits))


def _remainder_of_sum(
    builder: Builder, one: Array, other: Array, result: Array, *, is_difference: bool
) -> Array:
    """What rounding has left out of a sum; a float itself."""
    second = builder.apply("subtract", result, one)
    first = builder.apply("subtract", result, second)
    left = builder.apply("subtract", one, first)
    right = (
        builder.apply("add", other, second)
        if is_difference
        else builder.apply("subtract", other, second)
    )
    return builder.apply("subtract" if is_difference else "add", left, right)


def _moved_product(
    builder: Builder, chance: Chance, one: Array, other: Array, result: Array
) -> Array:
    """A product, or half the time a float beside it, by the digits that rounding has cut off."""
    cut = dropped_digits(builder, one, other)
    is_chosen = _half(builder, chance, "multiply", result)
    is_inexact = builder.compare(cut, "NE", builder.full(0, cut))
    is_chosen = builder.apply("and", is_chosen, is_inexact)
    # The digits are an integer with a sign; as many of them as an integer has are half an ulp.
    most = 2.0 ** (31 if cut.element == "i32" else 63)
    step = builder.full(_MAGNIFIED * chance.scale * unit(result.element) / most, result)
    share = builder.apply("multiply", builder.convert(cut, result.element), step)
    beyond = builder.apply("add", result, builder.apply("multiply", result, share))
    return builder.select(is_chosen, beyond, result)


def _nearby(
    builder: Builder, chance: Chance, name: str, result: Array, kept: Array, ulps: float
) -> Array:
    """A number some ulps beside the result; the result itself where it is exact."""
    part = chance.evenly(builder, result, name, _OF_ULPS * 2 * ulps * unit(result.element))
    beside = builder.apply("add", result, builder.apply("multiply", result, part))
    return builder.select(kept, result, beside)


def _powers_of_two(builder: Builder, array: Array) -> Array:
    """Where a product with such a number, or a quotient, is exact."""
    return few_digits(builder, array, digits=1)


def _between(builder: Builder, array: Array, low: float, high: float) -> Array:
    if low > -math.inf:
        array = builder.apply("maximum", array, builder.full(low, array))
    if high < math.inf:
        array = builder.apply("minimum", array, builder.full(high, array))
    return array


def rounded_by_chance(
    builder: Builder, chance: Chance, kind: str, wide: Array, element: str, place: int = 0
) -> Array:
    """Floats of 32 bits in 16: the nearer of the two neighbours is the likelier one."""
    dropped = DIGITS["f32"] - DIGITS[element]
    bits = builder.bits(wide, "i32")
    drawn = chance.bits(builder, wide, kind, place)
    drawn = builder.apply("shift_right_logical", drawn, builder.full(32 - dropped, drawn))
    raised = builder.apply("add", bits, drawn)
    cut = builder.apply("and", raised, builder.full(-(1 << dropped), raised))
    found = builder.bits(cut, "f32")
    is_number = builder.apply("is_finite", wide, element="i1")
    return builder.convert(builder.select(is_number, found, wide), element)


def _moved_complex(
    builder: Builder, chance: Chance, name: str, operands: list[Array], result: Array
) -> Array:
    """The parts of a result: of sums each as it is, of others by what the whole is off."""
    element = result.element[len("complex<") : -1]
    parts = [builder.apply(part, result, element=element) for part in ("real", "imag")]
    if name in {"add", "subtract"}:
        given = [
            [builder.apply(part, each, element=element) for each in operands]
            for part in ("real", "imag")
        ]
        moved_parts = [
            _moved_real(builder, chance, name, each, part)
            for each, part in zip(given, parts, strict=True)
        ]
    else:
        ulps = _ULPS_OF_PRODUCT if name in ROUNDED else FUNCTIONS[name]
        sizes = [builder.apply("abs", part) for part in parts]
        size = builder.apply("maximum", *sizes)
        moved_parts = [
            _beside(builder, chance, f"{name} {at}", part, size, ulps)
            for at, part in enumerate(parts)
        ]
    return builder.apply("complex", *moved_parts, element=result.element)


def _beside(
    builder: Builder, chance: Chance, name: str, part: Array, size: Array, ulps: float
) -> Array:
    share = chance.evenly(builder, part, name, _OF_ULPS * 2 * ulps * unit(part.element))
    beside = builder.apply("add", part, builder.apply("multiply", size, share))
    return builder.select(few_digits(builder, part), part, beside)
