"""All that adds up: sums, products of matrices, convolutions, windows, scatters.

A sum is moved by what another order of its terms changes: its variance follows from the sum of the
squares (`random_order`), which is computed beside it, by the same operation on squared operands.
Nothing moves where every order has the same result: where there is one term, or where all terms are
whole multiples of a number so large that no partial sum is rounded. What the terms are multiples of
is seen in a part of an array that is large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._emulate.other_rounding.elementwise import rounded_by_chance
from jitcount._emulate.other_rounding.formats import DIGITS, lowest_digit, unit
from jitcount._jax.rewriting import numbers_in
from jitcount._numerics.random_order import variance_factors

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._emulate.other_rounding.chance import Site
    from jitcount._jax.rewriting import Array, Builder, Operation

# A sum of two numbers from -1 to 1, each as likely as any other, has this variance.
_VARIANCE = 2 / 3

# No more of an array's elements are looked at to find out what they are multiples of; but so many
# of each sum, and no more in a row, which XLA would add up in two steps.
_LOOKED_AT, _OF_EACH, _IN_A_ROW = 256, 8, 32

# So many terms of each sum of a product of matrices are squared; the others are taken to be alike.
_SQUARED = 128


def moved_sum(
    site: Site, operation: Operation, operands: list[Array], *, may_be_exact: bool
) -> Array | None:
    """What an operation adds up, as if in another order; None where nothing is rounded."""
    builder, terms = site.builder, terms_of(operation)
    added = [operands[i] for i in _ADDED_UP[operation.name]]
    result = operation.results[0]
    if result is None or terms < 2 or not all(each.is_float or each.is_complex for each in added):
        return None
    wide = max("f32", _real(result), _real(added[0]), key=lambda each: DIGITS[each])
    given = [_in_type(builder, each, wide) for each in added]
    is_wide = _real(result) == wide
    total = result if is_wide else _summed(builder, operation, operands, given, given[0].element)
    part, times = _of_a_part(builder, operation, given)
    squared = [_squared(builder, each) for each in part]
    squares = _summed(builder, operation, operands, squared, wide)
    if times > 1:
        squares = builder.apply("multiply", squares, builder.full(times, squares))
    grain = _grain(builder, operation, given) if may_be_exact else None
    terms_squared = _Squares(squares, terms, grain, times)
    if total.is_complex:
        parts = [builder.part_of(part, total) for part in ("real", "imag")]
        size = builder.apply("abs", total, element=wide)
        moved = [_moved(site, part, size, terms_squared) for part in parts]
        return builder.apply("complex", *moved, element=total.element)
    found = _moved(site, total, total, terms_squared)
    return found if is_wide else rounded_by_chance(site, "sum", found, result.element)


def is_sum(operation: Operation) -> bool:
    """Whether an operation adds up floats."""
    if operation.name not in _ADDED_UP:
        return False
    if operation.name in {"dot_general", "convolution"}:
        return True
    body = operation.body()
    return body == ["stablehlo.add", "stablehlo.return"]


@dataclass(frozen=True, slots=True)
class _Squares:
    """What is known of the terms of a sum."""

    total: Array
    """The sum of their squares."""

    terms: int
    grain: Array | None
    """What all of them are whole multiples of; None where that is nothing."""

    times: float
    """How many times as many terms there are as were squared."""


def _moved(site: Site, total: Array, size: Array, squares: _Squares) -> Array:
    """A sum, or a part of one, moved by what another order may change."""
    builder = site.builder
    single, pairs = variance_factors(squares.terms)
    square = builder.apply("multiply", size, size)
    rest = builder.apply("subtract", square, squares.total)
    variance = builder.apply(
        "add",
        builder.apply("multiply", squares.total, builder.full(single, rest)),
        builder.apply("multiply", rest, builder.full(pairs, rest)),
    )
    variance = builder.apply("maximum", variance, builder.full(0.0, variance))
    farthest = unit(total.element) / math.sqrt(3 * _VARIANCE)
    width = builder.apply("sqrt", variance)
    step = builder.apply("multiply", width, site.around(total, "sum", farthest))
    moved = builder.apply("add", total, step)
    one_term = _is_one_term(builder, square, squares)
    kept = builder.apply("or", one_term, builder.isnt_finite(step))
    if squares.grain is not None:
        kept = builder.apply("or", kept, _is_exact(builder, squares, squares.grain))
        moved = _in_whole_grains(builder, moved, squares.grain)
    return builder.select(kept, total, moved)


def _in_whole_grains(builder: Builder, moved: Array, grain: Array) -> Array:
    """A sum in whole multiples of what its terms are multiples of, whatever was rounded."""
    count = builder.apply("divide", moved, grain)
    size = builder.apply("abs", count)
    is_small = builder.compare(size, "LT", builder.full(2.0 ** DIGITS[moved.element], size))
    whole = builder.apply("multiply", builder.apply("round_nearest_even", count), grain)
    return builder.select(is_small, whole, moved)


def _is_one_term(builder: Builder, square: Array, squares: _Squares) -> Array:
    """Where the square of the sum is the sum of the squares, but for the rounding of both."""
    total = squares.total
    if squares.times > 1:
        square = builder.apply("multiply", square, builder.full(squares.times, square))
    rest = builder.apply("abs", builder.apply("subtract", square, total))
    near = builder.apply("multiply", total, builder.full(8 * unit(total.element), total))
    return builder.compare(rest, "LE", near)


def _is_exact(builder: Builder, squares: _Squares, grain: Array) -> Array:
    """Where no partial sum has more digits than its type.

    The sum of the magnitudes is at most the root of the terms times the sum of the squares, and
    hardly ever less than half of that.
    """
    most = builder.apply("sqrt", squares.total)
    most = builder.apply("multiply", most, builder.full(math.sqrt(squares.terms), most))
    largest = builder.full(2.0 ** (DIGITS[squares.total.element] + 1), grain)
    return builder.compare(most, "LE", builder.apply("multiply", grain, largest))


# --- Which operands are added up, and how many terms a sum has -----------------------------------

_ADDED_UP = {
    "reduce": (0,),
    "reduce_window": (0,),
    "dot_general": (0, 1),
    "convolution": (0, 1),
    "scatter": (0, 2),
}


def _sizes(operation: Operation, operand: int) -> tuple[int, ...]:
    array = operation.operands[operand]
    return array.shape if array else ()


def terms_of(operation: Operation) -> int:
    """How many terms each of the sums has."""
    return _TERMS[operation.name](operation)


def _terms_of_reduce(operation: Operation) -> int:
    return math.prod(_sizes(operation, 0)[i] for i in operation.integers("dimensions"))


def _terms_of_dot(operation: Operation) -> int:
    return math.prod(_sizes(operation, 0)[i] for i in _contracted(operation, "lhs"))


def _contracted(operation: Operation, side: str) -> list[int]:
    """The dimensions of a factor that a product sums up."""
    text = operation.attribute("dot_dimension_numbers")
    listed = text.partition(f"{side}_contracting_dimensions = [")[2].partition("]")[0]
    return numbers_in(listed)


def _of_a_part(
    builder: Builder, operation: Operation, given: list[Array]
) -> tuple[list[Array], float]:
    """The factors that are squared: of long products the middle, and how much more there is."""
    if operation.name != "dot_general" or terms_of(operation) <= _SQUARED:
        return given, 1.0
    dimensions = [_contracted(operation, side) for side in ("lhs", "rhs")]
    if any(len(each) != 1 for each in dimensions):
        return given, 1.0
    part = []
    for array, (at,) in zip(given, dimensions, strict=True):
        begins, ends = [0] * len(array.shape), list(array.shape)
        begins[at] = (array.shape[at] - _SQUARED) // 2
        ends[at] = begins[at] + _SQUARED
        part.append(builder.part(array, begins, ends))
    return part, terms_of(operation) / _SQUARED


def _terms_of_convolution(operation: Operation) -> int:
    # As it is printed: #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
    kernel = operation.attribute("dimension_numbers").partition("x[")[2].partition("]")[0]
    names = [each.strip() for each in kernel.split(",")]
    sizes = _sizes(operation, 1)
    return math.prod(size for name, size in zip(names, sizes, strict=True) if name != "o")


def _terms_of_window(operation: Operation) -> int:
    return math.prod(operation.integers("window_dimensions"))


_TERMS: dict[str, Callable[[Operation], int]] = {
    "reduce": _terms_of_reduce,
    "reduce_window": _terms_of_window,
    "dot_general": _terms_of_dot,
    "convolution": _terms_of_convolution,
    # How many updates meet in one place is not known: two, and what was there.
    "scatter": lambda _: 3,
}


def _summed(
    builder: Builder, operation: Operation, operands: list[Array], given: list[Array], element: str
) -> Array:
    """The same sum of other terms."""
    changed = list(operands)
    for i, array in zip(_ADDED_UP[operation.name], given, strict=True):
        changed[i] = array
    if operation.name in {"reduce", "reduce_window"}:
        changed[1] = builder.full(0.0, operands[1], element)
    reduces = "" if operation.name in {"dot_general", "convolution"} else "add"
    return builder.again(operation, changed, element, reduces=reduces)


def _grain(builder: Builder, operation: Operation, given: list[Array]) -> Array:
    """What all terms are whole multiples of, in the shape of the sum."""
    result = operation.results[0]
    assert result is not None  # noqa: S101 (the same)
    if operation.name == "reduce":
        dimensions = operation.integers("dimensions")
        return _lowest(builder, _part(builder, given[0], dimensions), dimensions)
    lowest = [_lowest(builder, _part(builder, each, range(len(each.shape)))) for each in given]
    both = builder.apply(
        "multiply" if operation.name in {"dot_general", "convolution"} else "minimum",
        *(lowest if len(lowest) == 2 else [lowest[0], lowest[0]]),
    )
    return builder.broadcast(both, result.shape, [])


def _lowest(builder: Builder, array: Array, dimensions: list[int] | None = None) -> Array:
    every = list(range(len(array.shape))) if dimensions is None else dimensions
    if array.is_complex:
        parts = [builder.part_of(part, array) for part in ("real", "imag")]
        digits = builder.apply("minimum", *(lowest_digit(builder, part) for part in parts))
    else:
        digits = lowest_digit(builder, array)
    return builder.reduce(digits, math.inf, "minimum", every) if every else digits


def _part(builder: Builder, array: Array, dimensions: range | list[int]) -> Array:
    """The middle of an array that is large, along some dimensions."""
    begins, ends = [0] * len(array.shape), list(array.shape)
    size = array.size
    if not size:
        return array
    for i in sorted(dimensions, key=lambda each: -array.shape[each]):
        kept = min(array.shape[i], max(_OF_EACH, array.shape[i] * _LOOKED_AT // size), _IN_A_ROW)
        begins[i] = (array.shape[i] - kept) // 2
        ends[i] = begins[i] + kept
        size = size // array.shape[i] * kept
    whole = tuple(ends) == array.shape
    return array if whole else builder.part(array, begins, ends)


def _squared(builder: Builder, array: Array) -> Array:
    if array.is_complex:
        array = builder.apply("abs", array, element=_real(array))
    return builder.apply("multiply", array, array)


def _real(array: Array) -> str:
    return array.element[len("complex<") : -1] if array.is_complex else array.element


def _in_type(builder: Builder, array: Array, element: str) -> Array:
    if array.is_complex or array.element == element:
        return array
    return builder.convert(array, element)
