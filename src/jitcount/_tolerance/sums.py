"""How far the order of additions moves a sum.

Each addition rounds its partial sum, by a variance of u²/3 of its square. In a random order of n
terms the squares of all partial sums add up to A·q + B·(T² - q) in the mean, where q is the sum of
the squares of the terms and T their sum; `_numerics.random_order` has A and B. Data in an order of
its own (sorted, say) may have larger partial sums: those of the given order count as well. Where
all partial sums are exact, whatever their order, nothing moves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from jitcount._numerics.error_bounds import TILE
from jitcount._numerics.random_order import variance_factors
from jitcount._tolerance.lanes import NEAREST, format_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._tolerance.lanes import Lanes

# Of so many terms is looked at first, to see whether a sum could be exact.
_SAMPLE = 8


def summed(lanes: Lanes, terms: np.ndarray, dtype: str) -> np.ndarray:
    """The sums over the last axis, as any order of additions may round them."""
    total = terms.sum(-1)
    count = terms.shape[-1]
    if count < 2 or not total.size:
        return total
    if _is_exact(terms[-1:], lambda size: size.sum(-1), dtype):
        return total
    reference = terms[:1]
    if (reference != 0).sum(-1).max() < 2 and terms.shape[0] == 1:
        return total
    variance = _variance(reference, total[:1], dtype)
    nearest = _one_by_one(terms[min(NEAREST, terms.shape[0] - 1)], total[0], dtype)
    moved = lanes.scattered(total, np.sqrt(variance))
    moved[NEAREST] = nearest
    return lanes.rounded(moved, dtype)


def _variance(terms: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    """The variance of sums over the last axis by their roundings."""
    unit = format_of(dtype).unit
    squares = _square(terms).sum(-1)
    in_any_order = in_random_order(terms.shape[-1], squares, _square(total))
    variance: np.ndarray = unit**2 / 3 * np.maximum(in_any_order, _in_given_order(terms))
    return np.where((terms != 0).sum(-1) < 2, 0.0, variance)


def in_random_order(terms: int, squares: np.ndarray, square_of_sum: np.ndarray) -> np.ndarray:
    """The sum of the squares of all partial sums, in the mean over all orders."""
    own, crossed = variance_factors(terms)
    return own * squares + crossed * np.maximum(square_of_sum - squares, 0.0)


def _in_given_order(terms: np.ndarray) -> np.ndarray:
    """The sum of the squares of all partial sums, tile by tile."""
    partial = np.cumsum(_in_tiles(terms), -1)
    return _square(partial[..., 1:]).sum((-1, -2)) + _square(
        np.cumsum(partial[..., -1], -1)[..., 1:]
    ).sum(-1)


def _in_tiles(terms: np.ndarray) -> np.ndarray:
    count = terms.shape[-1]
    tile = min(count, TILE)
    missing = -count % tile
    if missing:
        terms = np.concatenate([terms, np.zeros((*terms.shape[:-1], missing), terms.dtype)], -1)
    return terms.reshape(*terms.shape[:-1], -1, tile)


def _one_by_one(terms: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    """The sums as float32 adds them one by one: in tiles, or in as many lanes; the one further off.

    A pattern in the data (a tenth, added again and again) is rounded the same way each time, which
    no model of random roundings has.
    """
    if dtype not in ("float32", "complex64"):
        return np.asarray(terms.sum(-1))
    tiles = _in_tiles(terms.astype(dtype))
    found = [np.cumsum(tiles, axis, dtype=dtype) for axis in (-1, -2)]
    ends = (
        np.cumsum(one, -1, dtype=dtype)[..., -1]
        for one in (found[0][..., -1], found[1][..., -1, :])
    )
    one, other = ends
    return np.where(np.abs(one - total) >= np.abs(other - total), one, other)


def _square(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind == "c":
            return values.real**2 + values.imag**2
        return values * values


# --- What is exact --------------------------------------------------------------------------------


def _is_exact(terms: np.ndarray, total: Callable[[np.ndarray], np.ndarray], dtype: str) -> bool:
    """Whether all partial sums of some terms are numbers of the dtype."""
    room = 2.0 ** (format_of(dtype).mantissa + 1)
    sample = terms.ravel()[:_SAMPLE]
    if not np.abs(sample).max(initial=0) <= room * lowest_bit(sample):
        return False
    return bool(np.max(total(np.abs(terms))) <= room * lowest_bit(terms))


def is_exact_product(
    left: np.ndarray, right: np.ndarray, dtype: str, magnitude: Callable[[], float]
) -> bool:
    """Whether all partial sums of products are numbers of the dtype.

    Args:
        left: the factors on one side.
        right: those on the other.
        dtype: what it is computed in.
        magnitude: returns the largest sum of the magnitudes.
    """
    mantissa = format_of(dtype).mantissa
    room = 2.0 ** (mantissa + 1)
    samples = left.ravel()[:_SAMPLE], right.ravel()[:_SAMPLE]
    if mantissa < _TWICE_TWELVE and all(map(_has_many_bits, samples)):
        return False
    most = math.prod(float(np.abs(one).max(initial=0)) for one in samples)
    if not most <= room * math.prod(map(lowest_bit, samples)):
        return False
    return magnitude() <= room * lowest_bit(left) * lowest_bit(right)


# The bits of a float64 beyond its first twelve: with more than these in both factors, a product has
# more than float32 holds.
_BEYOND_TWELVE = (1 << 41) - 1
_TWICE_TWELVE = 24


def _has_many_bits(sample: np.ndarray) -> bool:
    return bool((np.ascontiguousarray(sample).view(np.int64) & _BEYOND_TWELVE).any())


def lowest_bit(values: np.ndarray) -> float:
    """The smallest power of two that all numbers are multiples of; infinite for zeros alone."""
    if values.dtype.kind == "c":
        return min(lowest_bit(values.real), lowest_bit(values.imag))
    values = values[values != 0]
    if not values.size:
        return math.inf
    mantissas, exponents = np.frexp(values)
    with np.errstate(invalid="ignore"):
        whole = (mantissas * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64)) + exponents - 53
    return float(2.0 ** lowest.min())
