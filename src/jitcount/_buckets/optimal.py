"""The best few sizes for a histogram of lengths, exactly.

With ``best[k][j]`` the least cost of the ``j`` shortest lengths with at most ``k`` sizes, ``W[j]``
their number, and ``c[j]`` what one call costs at the size of the last of them:

    best[k][j] = min over i of  best[k-1][i] + (W[j] - W[i]) * c[j]

A size that is larger costs no less, so an ``i`` beyond ``j`` is never better than ``j`` itself, and
the minimum may run over all of them: it is a Legendre transform, at ``c[j]``, of the points
``(W[i], best[k-1][i])``. Only their lower hull counts, and a binary search finds each minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Places: TypeAlias = NDArray[np.intp]

# A pass over all points pays as long as it removes a good part of them.
_WORTH_A_PASS = 0.98

_MOST_SIZES = 512
"""More programs than this are never planned, however cheap a compile is."""


@dataclass(frozen=True)
class Chosen:
    """Some of the candidates, by place, and what all calls cost at these sizes."""

    places: tuple[int, ...]
    cost: float


def best_places(
    costs: Floats, weights: Floats, k: int | None, price: float = 0.0, most: int = _MOST_SIZES
) -> Chosen:
    """The best of the candidates to serve all of them, each by itself or a later one.

    Args:
        costs: what a call costs at each candidate; none is less than the one before it.
        weights: how many calls there are of each.
        k: the largest number of sizes; None for as many as save more than they cost.
        price: what one more size costs, for `k` of None.
        most: the largest number of sizes for `k` of None.
    """
    layers: list[NDArray[np.int32]] = []
    before = float("inf")
    for best, chosen in _layers(costs, weights):
        cost = float(best[-1])
        if k is None and layers and not before - cost > price:
            break
        layers.append(chosen.astype(np.int32))
        if cost == before or len(layers) >= (most if k is None else k):
            before = cost
            break
        before = cost
    return Chosen(_places(layers), before)


def _layers(costs: Floats, weights: Floats) -> Iterator[tuple[Floats, Places]]:
    """For one size, two, ...: the least costs, and how many candidates come before the last one."""
    total = np.concatenate([[0.0], np.cumsum(weights)])
    at = np.concatenate([costs[:1], costs])  # nothing is served at no cost, whatever is first
    best: Floats = total * at
    chosen: Places = np.zeros(len(total), np.intp)
    own = np.arange(len(total))
    while True:
        yield best, chosen
        hull = lower_hull(total, best)
        slopes = np.diff(best[hull]) / np.diff(total[hull])
        found = np.searchsorted(slopes, at)
        # Slopes are rounded: where two are nearly the same, the neighbour may be the better one.
        near = hull[np.clip(found[:, None] + np.array([-1, 0, 1]), 0, len(hull) - 1)]
        values = best[near] + (total[:, None] - total[near]) * at[:, None]
        pick = values.argmin(axis=1)
        value, place = values[own, pick], near[own, pick]
        is_better = (value < best) & (place < own)
        best, chosen = np.where(is_better, value, best), np.where(is_better, place, own)


def _places(layers: list[NDArray[np.int32]]) -> tuple[int, ...]:
    """The candidates that are sizes: from the last one back to what the one before it serves."""
    places: list[int] = []
    end = len(layers[0]) - 1
    for chosen in reversed(layers):
        begin = int(chosen[end])
        if begin < end:
            places.append(end - 1)
        end = begin
    return tuple(reversed(places))


def lower_hull(x: Floats, y: Floats) -> Places:
    """The places of the points on the lower hull, from left to right; `x` increases.

    >>> lower_hull(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 3.0, 1.0, 2.0])).tolist()
    [0, 2, 3]
    """
    kept = np.arange(len(x))
    while len(kept) > 2:
        slopes = np.diff(y[kept]) / np.diff(x[kept])
        is_corner = np.concatenate([[True], slopes[1:] > slopes[:-1], [True]])
        if is_corner.all():
            return kept
        before, kept = len(kept), kept[is_corner]
        if len(kept) > _WORTH_A_PASS * before:
            return _corners(x, y, kept)
    return kept


def _corners(x: Floats, y: Floats, kept: Places) -> Places:
    """The same, point by point: for points of which a pass removes few at a time."""
    corners: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for place in kept.tolist():
        while len(corners) > 1:
            first, second = corners[-2:]
            rise = (ys[second] - ys[first]) * (xs[place] - xs[second])
            if rise < (ys[place] - ys[second]) * (xs[second] - xs[first]):
                break
            corners.pop()
        corners.append(place)
    return np.array(corners, np.intp)
