"""How far roundings can carry a result, and how far they carry it as a rule.

The *proven* bound holds whatever happens: k roundings one after another are off by at most
gamma(k) = k·u / (1 - k·u), where u is half an ulp (`gamma`, `worst_error`).

The *expected* bound holds as a rule: a rounding goes up as often as down, whatever went before.
That is the model of Higham and Mary ("A new approach to probabilistic rounding error analysis",
SIAM J. Sci. Comput. 41, 2019). Under it the error of a sum is a martingale. Where no more than k
additions follow one after another, the partial sums of each level of the tree are together no
larger than S, the sum of the magnitudes, and from Azuma's inequality follows

    P(error > lambda * sqrt(k) * u * S) <= 2 * exp(-lambda**2 / 2)

to first order in u (Hallman and Ipsen, "Precision-aware deterministic and probabilistic error
bounds for floating point summation", Numer. Math. 155, 2023: k is the height of the tree). The
second order is covered by a factor (`expected_error`). The model needs numbers without a pattern: a
tenth added to itself is rounded the same way each time, and such a sum has only `worst_error`.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes

_finfo: Any = ml_dtypes.finfo

# One result in so many may be a false alarm.
RESULTS = 1e9

# Sums and products that one result may come from, one after another, each with its own chance.
_OPERATIONS = 64

# A TPU holds a 1-D array in tiles of 1,024 numbers (the T(1024) of its programs) and adds tile to
# tile; a GPU has 1,024 threads a block, each with its own sum; XLA:CPU adds windows of 32, or
# blocks of 32,768 in lanes, and then those (found with masks, as FPRev does: one huge number, its
# negative and ones tell which are added first). One by one in a tile, then tile by tile, is longer.
TILE = 1024


def unit_roundoff(dtype: str) -> float:
    """Half an ulp of 1: the relative error of one rounding to the nearest.

    >>> unit_roundoff("float32") == 2**-24, unit_roundoff("bfloat16") == 2**-8
    (True, True)
    """
    return float(_finfo(dtype).eps) / 2


def smallest_normal(dtype: str) -> float:
    """How far off any operation may be on a backend that flushes denormals to zero."""
    return float(_finfo(dtype).tiny)


def gamma(terms: int, dtype: str) -> float:
    """The relative error that so many roundings to a dtype, one after another, can add up to."""
    return worst_error(terms, unit_roundoff(dtype))


def worst_error(roundings: float, unit: float) -> float:
    """The relative error of so many roundings, one after another, if all go the same way.

    >>> worst_error(2, 0.25), worst_error(4, 0.25)
    (1.0, inf)
    """
    relative = roundings * unit
    return relative / (1 - relative) if relative < 1 else math.inf


def expected_error(roundings: float, unit: float, elements: int) -> float:
    """The relative error that so many roundings, one after another, do not exceed as a rule.

    The rule holds for all elements of a result at once.
    """
    first_order = confidence(elements) * math.sqrt(roundings) * unit
    return first_order * (1 + first_order)


def confidence(elements: int) -> float:
    """The lambda for a result of so many elements, so that none of them is a false alarm.

    >>> f"{confidence(1):.2f}, {confidence(10_000):.2f}"
    '7.15, 8.34'
    """
    return math.sqrt(2 * math.log(2 * RESULTS * _OPERATIONS * max(elements, 1)))


def longest_chain(terms: int) -> int:
    """How many additions at most follow one after another when a whole array is summed up.

    >>> longest_chain(0), longest_chain(10), longest_chain(10_000_000)
    (0, 9, 10788)
    """
    return min(max(terms - 1, 0), TILE - 1 + terms // TILE)


# --- Single operations ----------------------------------------------------------------------------
#
# How many ulps they are off, from what is published, not from what a backend happened to return:
#
# - The exhaustive tests of XLA (in its sources, those of unary functions) run every float32 through
#   each function on each platform. They allow 2 ulps for `sqrt`, `rsqrt`, `sin` and `cos`, 4 for
#   `tan`, 1 for `exp` and `expm1` on the CPU, and 20 for all others here.
# - The CUDA C++ Programming Guide, "Mathematical Functions", has the largest errors of NVIDIA's:
#   `expf` 2, `logf` 1, `tanhf` 2, `sinf` 2, `tanf` 4, `erff` 2, `expm1f` 1, `log1pf` 1, `rsqrtf` 2.
#   The fast division of PTX (`div.full`), which XLA may use, is off by 2.

# Rounded to the nearest on all backends: IEEE 754.
_NEAREST = 0.5

EXPECTED_ULPS = {
    "add": _NEAREST,
    "multiply": _NEAREST,
    "divide": 3.0,
    "sqrt": 3.0,
    "rsqrt": 4.0,
    "exp": 4.0,
    "expm1": 4.0,
    "log": 4.0,
    "log1p": 4.0,
    "tanh": 8.0,  # XLA:GPU approximates it by itself, in more steps
    "sin": 4.0,
    "cos": 4.0,
    "tan": 6.0,
    "erf": 4.0,
    # 1 / (1 + exp(-x)): an exponential, a sum and a quotient, one after another.
    "logistic": 4.0 + _NEAREST + 3.0,
}
"""The ulps that an operation is off as a rule.

At least one ulp above the largest published figure, since nothing is published for TPUs.
"""

_IN_XLAS_TESTS = 20.0

LARGEST_ULPS = EXPECTED_ULPS | dict.fromkeys(
    ("exp", "expm1", "log", "log1p", "tanh", "erf", "logistic"), _IN_XLAS_TESTS
)
"""The ulps that an operation is off at most: what XLA's own tests let pass."""
