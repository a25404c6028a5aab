"""Arguments for every operation, by classes: specials, every binade, sizes around tiles.

Denormals are in none of them: a backend may take them for zeros.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from jitcount._suite.data import spread

_finfo: Any = ml_dtypes.finfo

# Numbers a binade, evenly apart: an error in any two fifths of a binade is met, and where most
# numbers of programs are, from 2**-8 to 2**8, one in any tenth.
_IN_A_BINADE = 5
_IN_A_NEAR_BINADE = 20
_NEAR = 8
_JITTER = 0.2

# More than a block of any compiler.
LONG = 2**20 + 1


def extremes(dtype: Any) -> tuple[float, float]:
    """The largest number of a floating type, and the smallest that is not denormal."""
    return float(_finfo(dtype).max), float(_finfo(dtype).tiny)


def specials(dtype: Any = np.float32) -> np.ndarray:
    """Zeros, infinities, NaN, the largest and the smallest, ones, and ties, of both signs."""
    largest, smallest = extremes(dtype)
    sizes = [0.0, np.inf, largest, smallest, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0]
    return np.array([*sizes, *(-size for size in sizes), np.nan]).astype(dtype)


def binades(
    dtype: Any = np.float32,
    *,
    signs: tuple[int, ...] = (1, -1),
    seed: int = 1,
    count: int = _IN_A_BINADE,
    near: int = _IN_A_NEAR_BINADE,
) -> np.ndarray:
    """Numbers in every binade of a type, evenly spread over each, of these signs.

    There are `count` of each sign in a binade, and `near` between 2**-8 and 2**8.

    >>> x = binades()
    >>> len(x), len(np.unique(np.frexp(x)[1]))
    (3020, 254)
    """
    low, high = int(_finfo(dtype).minexp), int(_finfo(dtype).maxexp)
    exponents = np.arange(low, high)
    counts = np.where(np.abs(exponents + 0.5) < _NEAR, near, count)
    places = np.concatenate([(np.arange(each) + 0.5) / each for each in counts])
    step = np.repeat(1 / np.maximum(counts, 1), counts)
    found = []
    for sign in signs:
        moved = places + _JITTER * step * spread(len(places), dtype="float64", seed=seed + 5 * sign)
        found.append(sign * np.ldexp(1 + moved, np.repeat(exponents, counts)))
    return np.concatenate(found).astype(dtype)


def to_a_tile_but_one(x: np.ndarray, ordinary: np.ndarray) -> np.ndarray:
    """An array mixed without a pattern, with ordinary numbers at its end, which fills no tile.

    Its length is one less than a multiple of 128, so that the rest of any smaller tile is as long
    as it can be, and ends with numbers that most functions are defined for.
    """
    mixed = x[np.argsort(spread(len(x), dtype="float64", seed=14))]
    missing = -(len(x) + len(ordinary) + 1) % 128 + len(ordinary)
    return np.concatenate([mixed, np.resize(ordinary, missing)])
