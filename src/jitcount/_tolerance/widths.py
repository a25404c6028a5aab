"""From the scatter of the draws to the tolerance of each element.

The tolerance is seven deviations: of the element's own draws, and a little of the whole array's,
since sixteen draws know their deviation to a sixth only. It is never less than twice what rounding
to the nearest made of it.

Where a decision (a branch, a comparison, the place of the largest) came out otherwise in some
draws, and these are far off while the others are not, no tolerance exists. The same where the
scatter does not shrink as it should when every number keeps four bits more: a smooth function's
shrinks sixteen times, that of chaos does not, and that of a jump stays or vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jitcount._tolerance.lanes import FIRST_DRAW, NEAREST, format_of
from jitcount._tolerance.rules.rule import is_inexact

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEVIATIONS = 7.0

# The array's own deviation counts as so many draws more.
_POOLED = 4

_OF_NEAREST = 2.0

# Draws that decided otherwise are off by so many times as much as the others, at a jump.
_JUMP = 16.0
_FEWEST_CALM = 4

# A scatter that shrinks less than this, when numbers keep four bits more, is no rounding's.
_SHRINKS = 3.0

# And one that all but vanishes then was a jump that is now out of reach.
_VANISHES = 160.0

# A result that scatters by this much of its size is looked at again with more bits.
WIDE = 1e-2
_NOISE = 0.5


@dataclass(frozen=True)
class Spread:
    """One result of all draws: what it should be, and how far it scatters."""

    reference: np.ndarray
    width: np.ndarray
    """The tolerance of each element; NaN where none exists."""

    deviation: np.ndarray
    """The deviation of the draws, element by element."""

    is_mixed: np.ndarray
    """Where some draws are finite and others are not."""

    unit: float = 0.0
    """Half an ulp of 1 in the narrowest dtype of floats that it was computed with."""

    @property
    def is_wide(self) -> bool:
        """Whether a good part of the digits is lost somewhere."""
        if self.reference.dtype.kind not in "fc" or not self.reference.size:
            return False
        size = np.abs(self.reference)
        scale = max(float(np.median(size)), float(size.max(initial=0.0)) * WIDE)
        return bool((self.deviation > WIDE * scale).any())

    @property
    def is_noise(self) -> bool:
        """Whether the result as a whole scatters by its own size."""
        if self.reference.dtype.kind not in "fc" or not self.reference.size:
            return False
        typical = float(np.median(np.abs(self.reference)))
        return float(np.median(self.deviation)) > typical * _NOISE


def spread_of(values: np.ndarray, dtype: str, unit: float) -> Spread:
    """The tolerance of a result, by its lanes; `unit` is the largest rounding on the way to it."""
    if not is_inexact(dtype):
        same = (values == values[:1]).all(0)
        nothing = np.zeros(values.shape[1:])
        return Spread(values[0], np.where(same, 0.0, np.nan), nothing, np.zeros_like(same))
    if values.shape[0] == 1:
        nothing = np.zeros(values.shape[1:])
        width = _with_flushed(nothing, values[0], dtype)
        return Spread(values[0], width, nothing, nothing.astype(bool), unit)
    drawn, reference = values[NEAREST:], values[0]
    finite = np.isfinite(drawn).all(0) & np.isfinite(reference)
    agree = _agree(drawn)
    reference = np.where(finite, reference, drawn[0])
    off = np.where(finite, np.abs(np.where(finite, drawn, 0) - np.where(finite, reference, 0)), 0.0)
    deviation = np.sqrt(np.mean(np.square(off[FIRST_DRAW - NEAREST :]), 0))
    draws, pooled = len(drawn) - 1, _pooled(deviation, np.where(finite, np.abs(reference), 0.0))
    both = (draws * np.square(deviation) + _POOLED * np.square(pooled)) / (draws + _POOLED)
    width = np.maximum(_DEVIATIONS * np.sqrt(both), _OF_NEAREST * off[0])
    width = np.where(width > 0, width + format_of(dtype).smallest_normal, width)
    width = _with_flushed(width, reference, dtype)
    mixed = ~finite & ~agree
    width = np.where(finite, width, np.where(agree, 0.0, np.nan))
    return Spread(reference, width, deviation, mixed, unit)


def _with_flushed(width: np.ndarray, reference: np.ndarray, dtype: str) -> np.ndarray:
    """Widths that allow a backend to flush denormals to zero."""
    size = np.abs(reference)
    return np.where(size < format_of(dtype).smallest_normal, np.maximum(width, size), width)


def _pooled(deviation: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The deviation of an element as one of its array: relative to it, where that is less."""
    if not deviation.size:
        return deviation
    relative = np.divide(deviation, size, out=np.zeros(size.shape), where=size > 0)
    return np.minimum(np.median(deviation), np.median(relative) * size)


def _agree(drawn: np.ndarray) -> np.ndarray:
    first = drawn[:1]
    same: np.ndarray = ((drawn == first) | (np.isnan(drawn) & np.isnan(first))).all(0)
    return same


def jumps(
    values: np.ndarray,
    spread: Spread,
    flips: Mapping[tuple[int, str], np.ndarray],
    finer: Spread | None,
) -> np.ndarray:
    """Where a decision that came out otherwise in some draws moves a result far.

    Args:
        values: the lanes of the result.
        spread: what was made of them.
        flips: by decision, the lanes in which it came out otherwise.
        finer: the same result where every number keeps four bits more.
    """
    nowhere = np.zeros(spread.reference.shape, bool)
    if values.dtype.kind not in "fc" or not values.size or values.shape[0] == 1:
        return nowhere
    flipped = np.zeros(len(values), bool)
    for lanes in flips.values():
        flipped |= lanes
    calm, other = ~flipped[FIRST_DRAW:], flipped[FIRST_DRAW:]
    if other.any() and calm.sum() >= _FEWEST_CALM:
        off = np.abs(values[FIRST_DRAW:] - spread.reference)
        off = np.where(np.isfinite(off), off, 0.0)
        usual = np.sqrt(np.mean(np.square(off[calm]), 0))
        usual = usual + (np.median(usual) if usual.size else 0.0) + _smallest_step(spread)
        return np.asarray(off[other].max(0) > _JUMP * usual)
    if finer is None or not (flips or spread.is_wide):
        return nowhere
    moves = finer.deviation > spread.deviation / _SHRINKS
    if flips:
        moves |= (finer.deviation < spread.deviation / _VANISHES) & _is_parted(values, spread)
    return np.asarray(moves & (spread.deviation > _JUMP * _smallest_step(spread)))


def would_jump(spread: Spread, greater: Spread) -> np.ndarray:
    """Where roundings that are eight times as large move a result by far more than that.

    A decision that no draw has changed may be near enough for another backend to change it.
    """
    if spread.reference.dtype.kind not in "fc":
        return np.isnan(greater.width) & ~np.isnan(spread.width)
    moves = greater.deviation > _FAR * spread.deviation
    return np.asarray(moves & (greater.deviation > _FAR * _smallest_step(spread)))


# How many times as far: eight times is what a smooth function does.
_FAR = 100.0


def _is_parted(values: np.ndarray, spread: Spread) -> np.ndarray:
    """Where some draws lie close together, and the others far from them."""
    drawn = values[FIRST_DRAW:]
    parted = np.zeros(spread.reference.shape, bool)
    for centre in (spread.reference, np.median(drawn.real, 0)):
        near = np.abs(drawn - centre) < spread.deviation / _VANISHES
        parted |= near.sum(0) >= _FEWEST_CALM
    return parted


def _smallest_step(spread: Spread) -> np.ndarray:
    return np.abs(spread.reference) * spread.unit
