"""How far roundings carry a sum as a rule, where the proven bound says how far they can.

A rounding goes up as often as down, whatever went before: that is the model of Higham and Mary
("A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019). Under it
the error of a sum is a martingale. Where no more than k additions follow one upon another, the
partial sums of each level of the tree are together no larger than S, the sum of the magnitudes,
and Azuma's inequality gives

    P(error > lambda * sqrt(k) * u * S) <= 2 * exp(-lambda**2 / 2)

to first order in u (Hallman and Ipsen, "Precision-aware deterministic and probabilistic error
bounds for floating point summation", Numer. Math. 155, 2023: k is the height of the tree). The
second order is covered by a factor. The model wants numbers without a pattern: a tenth added to
itself is rounded the same way each time. For such a sum `steady` bounds what k roundings can do.
"""

from __future__ import annotations

import math

# One result in so many may be a false alarm.
RESULTS = 1e9

# Sums and products that one result may come out of, one upon another, each with its own chance.
_OPERATIONS = 64

# A TPU holds a 1-D array in tiles of 1,024 numbers (the T(1024) of its programs) and adds tile to
# tile; a GPU has 1,024 threads a block, each with its own sum; XLA:CPU adds windows of 32, or
# blocks of 32,768 in lanes, and then those (asked with masks, as FPRev does: one huge number, its
# negative and ones tell which are added first). One by one in a tile, then tile by tile, is longer.
_TILE = 1024


def certainty(elements: int) -> float:
    """The lambda for a result of so many elements: none of them is a false alarm.

    >>> f"{certainty(1):.2f}, {certainty(10_000):.2f}"
    '7.15, 8.34'
    """
    return math.sqrt(2 * math.log(2 * RESULTS * _OPERATIONS * max(elements, 1)))


def chain(terms: int) -> int:
    """How many additions follow one upon another, at most, where a whole array is summed up.

    >>> chain(0), chain(10), chain(10_000_000)
    (0, 9, 10788)
    """
    return min(max(terms - 1, 0), _TILE - 1 + terms // _TILE)


def likely(roundings: float, unit: float, elements: int) -> float:
    """The relative error that so many roundings, one upon another, do not pass as a rule."""
    first_order = certainty(elements) * math.sqrt(roundings) * unit
    return first_order * (1 + first_order)


def steady(roundings: float, unit: float) -> float:
    """The same where all of them may go the same way.

    >>> steady(2, 0.25), steady(4, 0.25)
    (1.0, inf)
    """
    relative = roundings * unit
    return relative / (1 - relative) if relative < 1 else math.inf
