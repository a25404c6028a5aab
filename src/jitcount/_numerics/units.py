"""What one rounding of a floating-point type can be off, and so many of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from jitcount._numerics import chances

_finfo: Any = ml_dtypes.finfo


def unit_roundoff(dtype: str) -> float:
    """Half an ulp of 1.

    >>> unit_roundoff("float32") == 2**-24, unit_roundoff("bfloat16") == 2**-8
    (True, True)
    """
    return float(_finfo(dtype).eps) / 2


def smallest_normal(dtype: str) -> float:
    """What a backend that flushes denormals to zero may be off in any operation."""
    return float(_finfo(dtype).tiny)


def gamma(terms: int, dtype: str) -> float:
    """The relative error that so many roundings, one upon another, can add up to."""
    return chances.steady(terms, unit_roundoff(dtype))
