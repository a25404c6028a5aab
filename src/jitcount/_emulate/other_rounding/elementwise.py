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
    from jitcount._emulate.other_rounding.chance import Site
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

# Of a complex number: the root of a sum of squares.
_ULPS_OF_MODULUS = EXPECTED_ULPS["sqrt"] + 1

# All parts of the ulps are as likely; what a backend's own function is off comes on top.
_OF_ULPS = 0.5

# A remainder of a fifth of an ulp and more can become half an ulp, and round to the next float.
_MAGNIFIED = 2.5

# The same for a product, whose part this is: an ulp is between one and two units of it.
_OF_PRODUCTS = 1.5


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


def moved(site: Site, operation: Operation, operands: list[Array], result: Array) -> Array:
    """The result of an operation as another backend might have rounded it."""
    name = operation.name
    if result.is_complex:
        return _moved_complex(site, name, operands, result)
    if result.element in {"f16", "bf16"}:
        # Computed in 32 bits, then rounded up or down by chance.
        wide = [site.builder.convert(each, "f32") for each in operands]
        true = site.builder.again(operation, wide, "f32")
        return rounded_by_chance(site, name, true, result.element)
    if name in {"multiply", "square"}:
        return _moved_product(site, operands[0], operands[-1], result)
    if name in {"add", "subtract"}:
        return _moved_sum(site, name, operands, result)
    return _moved_function(site, name, operands, result)


def _moved_function(site: Site, name: str, operands: list[Array], result: Array) -> Array:
    """What a function returns, some ulps beside; as it is where it is exact."""
    builder = site.builder
    kept = few_digits(builder, result)
    if name == "divide":
        kept = builder.apply("or", kept, few_digits(builder, operands[1], digits=1))
    if name == "power":
        kept = builder.apply("or", kept, builder.compare(result, "EQ", operands[0]))
    ulps = _ULPS_OF_MODULUS if name == "abs" else FUNCTIONS[name]
    part = site.evenly(result, name, _OF_ULPS * 2 * ulps * unit(result.element))
    beside = builder.apply("add", result, builder.apply("multiply", result, part))
    beside = builder.select(kept, result, beside)
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    if low > -math.inf:
        beside = builder.apply("maximum", beside, builder.full(low, beside))
    if high < math.inf:
        beside = builder.apply("minimum", beside, builder.full(high, beside))
    return beside


def _moved_sum(site: Site, name: str, operands: list[Array], result: Array) -> Array:
    """A sum, or half the time the float on the other side of the true value."""
    builder = site.builder
    remainder = _remainder_of_sum(builder, name, operands, result)
    is_known = builder.compare(remainder, "EQ", remainder)  # not of infinities
    is_chosen = builder.apply("and", site.half(result, name), is_known)
    step = builder.full(_MAGNIFIED * site.scale, remainder)
    beyond = builder.apply("add", result, builder.apply("multiply", remainder, step))
    return builder.select(is_chosen, beyond, result)


def _remainder_of_sum(builder: Builder, name: str, operands: list[Array], result: Array) -> Array:
    """What rounding has left out of a sum; a float itself."""
    one, other = operands
    second = builder.apply("subtract", result, one)
    first = builder.apply("subtract", result, second)
    left = builder.apply("subtract", one, first)
    if name == "subtract":
        return builder.apply("subtract", left, builder.apply("add", other, second))
    return builder.apply("add", left, builder.apply("subtract", other, second))


def _moved_product(site: Site, one: Array, other: Array, result: Array) -> Array:
    """A product, or half the time a float beside it, by the digits that rounding has cut off."""
    builder = site.builder
    cut = dropped_digits(builder, one, other)
    is_inexact = builder.compare(cut, "NE", builder.full(0, cut))
    is_chosen = builder.apply("and", site.half(result, "multiply"), is_inexact)
    is_chosen = builder.apply("and", is_chosen, builder.is_finite(result))
    # The digits are an integer with a sign: where it is largest, they are half an ulp.
    most = 2.0 ** (31 if cut.element == "i32" else 63)
    step = builder.full(_OF_PRODUCTS * site.scale * unit(result.element) / most, result)
    share = builder.apply("multiply", builder.convert(cut, result.element), step)
    beyond = builder.apply("add", result, builder.apply("multiply", result, share))
    return builder.select(is_chosen, beyond, result)


def rounded_by_chance(site: Site, kind: str, wide: Array, element: str) -> Array:
    """Floats of 32 bits in 16: the nearer of the two neighbours is the likelier one."""
    builder = site.builder
    dropped = DIGITS["f32"] - DIGITS[element]
    bits = builder.bits(wide, "i32")
    drawn = site.bits(wide, kind)
    drawn = builder.apply("shift_right_logical", drawn, builder.full(32 - dropped, drawn))
    raised = builder.apply("add", bits, drawn)
    cut = builder.apply("and", raised, builder.full(-(1 << dropped), raised))
    found = builder.convert(builder.bits(cut, "f32"), element)
    # Neither NaNs nor the largest floats, which would become infinite.
    is_number = builder.apply("and", builder.is_finite(found), builder.is_finite(wide))
    return builder.select(is_number, found, builder.convert(wide, element))


def _moved_complex(site: Site, name: str, operands: list[Array], result: Array) -> Array:
    """The parts of a result: of sums and products each as it is computed."""
    builder = site.builder
    parts = [builder.part_of(part, result) for part in ("real", "imag")]
    if name in ROUNDED:
        reals = [builder.part_of("real", each) for each in operands]
        imaginaries = [builder.part_of("imag", each) for each in operands]
    if name in {"add", "subtract"}:
        both = zip((reals, imaginaries), parts, strict=True)
        moved_parts = [_moved_sum(site, name, given, part) for given, part in both]
    elif name in ROUNDED:
        first, second = reals[0], imaginaries[0]
        third, fourth = reals[-1], imaginaries[-1]
        moved_parts = [
            _of_two_products(site, "subtract", (first, third), (second, fourth)),
            _of_two_products(site, "add", (first, fourth), (second, third)),
        ]
    else:
        size = builder.apply("maximum", *(builder.apply("abs", part) for part in parts))
        farthest = _OF_ULPS * 2 * FUNCTIONS[name] * unit(size.element)
        moved_parts = [_beside(site, name, part, size, farthest) for part in parts]
    return builder.apply("complex", *moved_parts, element=result.element)


def _of_two_products(
    site: Site, name: str, one: tuple[Array, Array], other: tuple[Array, Array]
) -> Array:
    products = [
        _moved_product(site, *factors, site.builder.apply("multiply", *factors))
        for factors in (one, other)
    ]
    return site.builder.apply(name, *products)


def _beside(site: Site, name: str, part: Array, size: Array, farthest: float) -> Array:
    builder = site.builder
    step = builder.apply("multiply", size, site.evenly(part, name, farthest))
    beside = builder.apply("add", part, step)
    kept = builder.apply("or", few_digits(builder, part), builder.isnt_finite(step))
    return builder.select(kept, part, beside)
