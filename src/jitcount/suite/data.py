"""Numbers for the cases: the same on every machine, whichever NumPy made them."""

from __future__ import annotations

import numpy as np


def ones(length: int, dtype: str = "float32") -> np.ndarray:
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
    mixed = places + np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)) / 2.0**53 - 0.5).astype(dtype).reshape(shape)


def one_sign(*shape: int, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    """Numbers between 1 and 2, spread without a pattern: a sum of them is as large as its terms."""
    return (spread(*shape, dtype="float64", seed=seed) + 1.5).astype(dtype)
