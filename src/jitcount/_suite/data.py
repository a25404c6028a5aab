"""Numbers for the cases: the same on every machine and with every NumPy.

Whole numbers are small enough for bfloat16, and their sums are small enough for float32. So their
products and sums are exact at every default precision and in any order, or something was lost.
"""

from __future__ import annotations

import os

import numpy as np

# The variable that selects other data of the same kind; `tools.seeds` finds false alarms with it.
SEED = "JITCOUNT_SUITE_SEED"

# float32 can hold all whole numbers up to this one, bfloat16 those up to 256.
LARGEST_SUM = 2**24
_LARGEST = 255


def ones(length: int, dtype: np.dtype | str = "float32") -> np.ndarray:
    """A 1-D array whose sum is its length."""
    return np.ones(length, dtype)


def floats(*values: float) -> np.ndarray:
    """A 1-D float32 array."""
    return np.array(values, np.float32)


def spread(*shape: int, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    """Numbers between -0.5 and 0.5, spread without a pattern.

    >>> spread(3, seed=7).tolist() == spread(10, seed=7)[:3].tolist()
    True
    """
    places = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = places + np.uint64((seed + _shift()) * 0xD1B54A32D192ED03 % 2**64)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)) / 2.0**53 - 0.5).astype(dtype).reshape(shape)


def one_sign(*shape: int, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    """Numbers between 1 and 2, spread without a pattern: in their sum nothing cancels out."""
    return (spread(*shape, dtype="float64", seed=seed) + 1.5).astype(dtype)


def whole(*shape: int, most: int = 8, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    """Whole numbers from -most to most without zero, spread without a pattern.

    >>> whole(6, most=2).tolist()
    [-1.0, -1.0, -2.0, -1.0, 1.0, 1.0]
    """
    drawn = (_hashed(int(np.prod(shape)), seed) % np.uint32(2 * most)).astype(np.int32) - most
    return (drawn + (drawn >= 0)).astype(dtype).reshape(shape)


def weights(length: int, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    """Positive whole numbers, a different one at each position if their sum stays small enough.

    If a number is lost or added twice, the sum shows it.

    >>> weights(4).tolist(), weights(10_000_000).sum(dtype="int64").item() < LARGEST_SUM
    ([1.0, 2.0, 3.0, 4.0], True)
    """
    if length <= _LARGEST:
        return np.arange(1, length + 1).astype(dtype)
    most = min(_LARGEST, max(2, LARGEST_SUM * 7 // 8 // length - 1))  # room for two such sums
    return (1 + _hashed(length, seed) % np.uint32(most)).astype(dtype)


def _hashed(count: int, seed: int) -> np.ndarray:
    """A hash of each place, below 2**24; quick, because long arrays are made of it."""
    mixed = np.arange(1, count + 1, dtype=np.uint32)
    mixed += np.uint32((seed + _shift()) * 0x9E3779B9 % 2**32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    return mixed >> np.uint32(8)


def _shift() -> int:
    return 1000 * int(os.environ.get(SEED, "0"))
