"""Sizes for two ragged axes: each axis in turn gets the best ones for those of the other.

That ends where neither can be improved alone, and both together perhaps could be: it is a good plan
and not proven to be the best. Padding is weighed by area: the product of the two sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jitcount._buckets.optimal import best_places
from jitcount._buckets.plan import (
    POWERS,
    UNPADDED,
    Alternative,
    BucketGrid,
    Costs,
    Histogram,
    next_powers,
    plan_of,
    rounded_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jitcount._buckets.plan import Floats, Whole

# Each turn costs less than the one before; more than a few change nothing that matters.
_TURNS = 20

_MOST_OF_AN_AXIS = 64


@dataclass(frozen=True)
class _Axis:
    """One of the two axes: its lengths, and the sizes that they can be padded to."""

    lengths: Whole
    candidates: Whole
    of_length: Whole
    """For each length, the place of the first candidate that holds it."""

    @classmethod
    def of(cls, lengths: Whole, multiple_of: int) -> _Axis:
        candidates, place = np.unique(rounded_up(lengths, multiple_of), return_inverse=True)
        return cls(lengths, candidates, place)

    def best(self, others: Floats, k: int | None, price: float) -> Whole:
        """The best sizes where each call costs its size times what the other axis has."""
        weights = np.bincount(
            self.of_length, weights=others, minlength=len(self.candidates)
        ).astype(np.float64)
        costs = self.candidates.astype(np.float64)
        chosen = best_places(costs, weights, k, price, _MOST_OF_AN_AXIS)
        return self.candidates[list(chosen.places)]

    def padded(self, sizes: Whole) -> Floats:
        """Each length at its size."""
        return sizes[np.searchsorted(sizes, self.lengths)].astype(np.float64)


def plan_grid(
    pairs: Mapping[str, Whole], k: int | None, multiple_of: int, steps: int | None, costs: Costs
) -> BucketGrid:
    """Plan two axes, whose lengths belong together one by one."""
    if not isinstance(costs.step_s, int | float):
        raise ValueError(  # noqa: TRY004 (the type is right, for one axis)
            "plan_buckets takes step_s of two axes as seconds at their largest sizes"
        )
    axes = [_Axis.of(lengths, multiple_of) for lengths in pairs.values()]
    calls = len(axes[0].lengths)
    steps = calls if steps is None else steps
    largest = float(axes[0].candidates[-1]) * float(axes[1].candidates[-1])
    # In elements of a call: what a compile costs, and what an element of each length costs.
    per_element = float(costs.step_s) / largest * steps / calls
    price = costs.compile_s / per_element if per_element else np.inf

    def cost(sizes: list[Whole]) -> float:
        return _area(axes, sizes) + price * len(sizes[0]) * len(sizes[1])

    ways = [(None, None)] if k is None else [(first, k // first) for first in _counts(k)]
    found = [_in_turns(axes, way, price) for way in ways]
    best = min(found, key=cost if k is None else lambda sizes: _area(axes, sizes))
    names = list(pairs)
    # Each axis by itself has no costs of its own: only its sizes and their padding are read.
    alone = replace(costs, step_s=1.0)
    plans = {
        name: plan_of(
            Histogram.of(axis.lengths),
            sizes.tolist(),
            multiple_of,
            steps,
            alone,
            is_k_given=k is not None,
        )
        for name, axis, sizes in zip(names, axes, best, strict=True)
    }
    alternatives = _alternatives(axes, best, multiple_of, costs.compile_s, per_element)
    return BucketGrid(plans, list(alternatives))


def _counts(k: int) -> Iterable[int]:
    """How many sizes the first axis may have: the most for each number left for the second."""
    return sorted({k // (k // first) for first in range(1, k + 1)})


def _in_turns(
    axes: list[_Axis], counts: tuple[int | None, int | None], price: float
) -> list[Whole]:
    sizes = [axis.candidates[-1:] for axis in axes]
    for turn in range(_TURNS):
        this, other = turn % 2, 1 - turn % 2
        found = axes[this].best(
            axes[other].padded(sizes[other]), counts[this], price * len(sizes[other])
        )
        is_same = np.array_equal(found, sizes[this])
        sizes[this] = found
        if is_same and turn > 1:
            break
    return sizes


def _area(axes: list[_Axis], sizes: list[Whole]) -> float:
    first, second = (axis.padded(of) for axis, of in zip(axes, sizes, strict=True))
    return float((first * second).sum())


def _alternatives(
    axes: list[_Axis], best: list[Whole], multiple_of: int, compile_s: float, unit: float
) -> Iterable[Alternative]:
    padded: dict[str, list[Floats]] = {
        "this plan": [axis.padded(sizes) for axis, sizes in zip(axes, best, strict=True)],
        POWERS: [
            rounded_up(next_powers(axis.lengths), multiple_of).astype(np.float64) for axis in axes
        ],
        "one size": [axis.padded(axis.candidates[-1:]) for axis in axes],
        UNPADDED: [axis.lengths.astype(np.float64) for axis in axes],
    }
    useful = float((axes[0].lengths.astype(np.float64) * axes[1].lengths).sum())
    for name, (first, second) in padded.items():
        area = float((first * second).sum())
        compiles = len(np.unique(np.stack([first, second]), axis=1).T)
        if name == "this plan":  # all pairs are compiled in a warm-up, whether they come or not
            compiles = len(best[0]) * len(best[1])
        yield Alternative(
            name=name,
            compiles=compiles,
            padding=1.0 - useful / area,
            compile_s=compiles * compile_s,
            run_s=area * unit,
        )
