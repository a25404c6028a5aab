"""The lanes of an evaluation: one array holds the reference and all draws.

The first axis of each array is that of the lanes. Lane 0 is the reference: it is never rounded.
Lane 1 rounds to the nearest, all others round at random: up with the probability of the distance
to the number below. So what is exact in a dtype stays exact, and the mean of the draws is right.
An array that is the same in all lanes has one.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jitcount._tolerance.products import InputRounding

_finfo: Any = ml_dtypes.finfo

REFERENCE, NEAREST, FIRST_DRAW = 0, 1, 2

# What float64 keeps of a number, besides its first bit.
_MANTISSA = 52
_FLOAT32_MANTISSA = 23

# Numbers drawn in advance: most operations need few, and take them from a random place in here.
_POOL = 1 << 18


@dataclass(frozen=True, slots=True)
class Format:
    """The numbers that a dtype of floats has."""

    mantissa: int
    unit: float
    largest: float
    smallest_normal: float
    smallest: float
    beyond: float
    """What is larger than the largest: infinity, or NaN in a dtype that has none."""


@functools.cache
def format_of(dtype: str) -> Format:
    """The numbers of a dtype of floats; of a complex one, those of its parts."""
    dtype = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    found = _finfo(dtype)
    return Format(
        mantissa=int(found.nmant),
        unit=float(found.eps) / 2,
        largest=float(found.max),
        smallest_normal=float(found.tiny),
        smallest=float(found.smallest_subnormal),
        beyond=float(np.asarray(np.inf).astype(getattr(ml_dtypes, dtype, dtype))),
    )


class Lanes:
    """Rounds arrays of lanes, and remembers where the lanes decided differently.

    Args:
        draws: how many lanes round at random.
        seed: of what is random.
        more_bits: how many bits more than its dtype has each number keeps, to see whether the
            scatter shrinks with the roundings; negative for roundings that are larger.
    """

    def __init__(self, draws: int, seed: int = 0, more_bits: int = 0) -> None:
        self.count = draws + FIRST_DRAW
        self.step = 0
        """The number of the step that is being evaluated."""

        self.flips: dict[tuple[int, str], np.ndarray] = {}
        """By step and decision: the lanes in which it came out otherwise than in the reference."""

        self.decided = False
        """Whether anything was decided by numbers that differ between lanes."""

        self.products: InputRounding | None = None
        """What happens to the inputs of products."""

        self.is_watching = False
        """Whether steps are looked at: which of them round, and how many bits they lose."""

        self.rounding: set[int] = set()
        """The steps that have rounded something, if somebody is watching."""

        self.cancelled: dict[int, tuple[float, float, float]] = {}
        """By step, the bits that a sum or difference has lost, from which size to which."""

        self.times = 2.0**-more_bits
        """How much smaller than in its dtype a rounding is."""

        self._more_bits = more_bits
        self._random = np.random.default_rng(seed)
        self._bits = self._random.integers(0, 1 << _MANTISSA, _POOL, np.int64)
        self._shifted: dict[int, np.ndarray] = {}
        self._normals = self._random.standard_normal(_POOL)
        self._at = seed

    # --- What is random ---------------------------------------------------------------------------

    def _start(self, size: int) -> int:
        """A place in the pool from which `size` numbers follow; another one each time."""
        self._at = (self._at * 6364136223846793005 + 1442695040888963407) & ((1 << 63) - 1)
        return (self._at >> 33) % (_POOL - size + 1)

    def bits(self, size: int, below: int) -> np.ndarray:
        """Random whole numbers of so many bits."""
        if size > _POOL >> 2:
            return self._random.integers(0, 1 << below, size, np.int64)
        shifted = self._shifted.get(below)
        if shifted is None:
            shifted = self._shifted[below] = self._bits >> (_MANTISSA - below)
        start = self._start(size)
        return shifted[start : start + size]

    def normals(self, size: int) -> np.ndarray:
        """Normally distributed numbers."""
        if size > _POOL >> 2:
            return self._random.standard_normal(size)
        start = self._start(size)
        return self._normals[start : start + size]

    # --- Rounding ---------------------------------------------------------------------------------

    def moving(self) -> slice:
        """The lanes in which the present step rounds at random."""
        return slice(FIRST_DRAW, None)

    def widened(self, values: np.ndarray) -> np.ndarray:
        """An array of its own with all lanes."""
        if values.shape[0] == self.count:
            return values if values.flags.owndata and values.flags.writeable else values.copy()
        return np.repeat(values, self.count, axis=0)

    def rounded(
        self,
        values: np.ndarray,
        dtype: str,
        coarser: int = 0,
        *,
        grows: bool = True,
        everywhere: bool = False,
    ) -> np.ndarray:
        """Round numbers onto those of a dtype; the array may be changed.

        Args:
            values: float64 or complex128, which nobody else needs.
            dtype: the name of the dtype.
            coarser: for functions that are off by several ulps, how many bits are not right: what
                the dtype does not hold is moved by up to 2 ** (coarser - 1) ulps either way.
            grows: whether they may be too large or too small for the dtype.
            everywhere: whether numbers that the dtype has may be off, too, but for 0, 1/2 and 1.
        """
        if values.dtype == np.complex128:
            # With an axis of its own for the parts: the first one is that of the lanes.
            both = np.ascontiguousarray(values)[..., None].view(np.float64)
            parts = self.rounded(both, dtype, coarser, grows=grows, everywhere=everywhere)
            return parts.view(np.complex128)[..., 0]
        if not values.size:
            return values
        form = format_of(dtype)
        drop = _MANTISSA - form.mantissa
        if drop:
            values = self._on_lattice(values, drop, coarser, everywhere=everywhere)
        else:
            values = self._moved_by_ulps(values, coarser)
        return self._in_range(values, form) if grows and drop else values

    def kept(self, values: np.ndarray, mantissa: int) -> np.ndarray:
        """Numbers of which so many bits are kept, as inputs of products are; a new array."""
        if mantissa >= _FLOAT32_MANTISSA or not values.size:
            return values
        return self._on_lattice(np.array(values), _MANTISSA - mantissa, 0)

    def _on_lattice(
        self, values: np.ndarray, drop: int, coarser: int, *, everywhere: bool = False
    ) -> np.ndarray:
        mask = (1 << drop) - 1
        if values.shape[0] == 1 and not _is_off(values, mask, everywhere=everywhere).any():
            return values
        values = self.widened(values)
        written = values.view(np.int64)
        near, moving = written[NEAREST : NEAREST + 1], written[self.moving()]
        kept = drop - max(self._more_bits, 0)
        coarser -= min(self._more_bits, 0)
        half, below = 1 << (kept - 1), ~((1 << kept) - 1)
        if self.is_watching and (written[NEAREST:] & mask).any():
            self.rounding.add(self.step)
        near += half
        near &= below
        if not moving.size:
            return values
        if coarser:
            drawn = self.bits(moving.size, kept + coarser).reshape(moving.shape)
            inexact = _is_off(values[self.moving()], mask, everywhere=everywhere)
            moving += np.where(inexact, drawn - ((1 << (kept + coarser - 1)) - half), half)
        else:
            moving += self.bits(moving.size, kept).reshape(moving.shape)
        moving &= below
        return values

    def _moved_by_ulps(self, values: np.ndarray, coarser: int) -> np.ndarray:
        """Of float64 nothing tells what was rounded off: whole numbers pass for exact."""
        whole = values == np.rint(values)
        if whole.all():
            return values
        values = self.widened(values)
        if self.is_watching:
            self.rounding.add(self.step)
        moving = values[self.moving()]
        drawn = self.bits(moving.size, 2 + coarser).reshape(moving.shape) - (1 << (1 + coarser))
        moved = moving + np.spacing(moving) * (drawn + 0.5) / 2 * self.times
        moving[...] = np.where(moving == np.rint(moving), moving, moved)
        return values

    def _in_range(self, values: np.ndarray, form: Format) -> np.ndarray:
        """Numbers beyond the largest are infinite; the smallest are rounded to its multiples."""
        size = np.abs(values)
        if not size.max() <= form.largest:
            beyond = size > form.largest
            values[beyond] = np.copysign(form.beyond, values[beyond])
        if size.min() < form.smallest_normal:
            drawn = values[NEAREST:]
            tiny = (size[NEAREST:] < form.smallest_normal) & (drawn != 0)
            if tiny.any():
                drawn[tiny] = np.rint(drawn[tiny] / form.smallest) * form.smallest
        return values

    def scattered(self, values: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        """Move numbers at random by a standard deviation; returns an array of its own."""
        values = self.widened(values)
        moving = values[self.moving()]
        if self.is_watching and np.any(deviation):
            self.rounding.add(self.step)
        if not moving.size:
            return values
        if values.dtype == np.complex128:
            drawn = self.normals(2 * moving.size).view(np.complex128).reshape(moving.shape)
        else:
            drawn = self.normals(moving.size).reshape(moving.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            moving += drawn * np.where(np.isfinite(deviation), deviation * self.times, 0.0)
        return values

    # --- Decisions --------------------------------------------------------------------------------

    def settled(self, values: np.ndarray, decision: str = "") -> np.ndarray:
        """One lane where all lanes agree; else remember which of them decided otherwise."""
        if values.shape[0] == 1:
            return values
        self.decided |= bool(decision)
        first = values[:1]
        same = values == first
        if same.all():
            return first
        if values.dtype.kind in "fc":
            same |= (values != values) & (first != first)  # NaN  # noqa: PLR0124
            if same.all():
                return first
        if decision:
            self.flip(decision, ~same.reshape(len(values), -1).all(1))
        return values

    def flip(self, decision: str, lanes: np.ndarray) -> None:
        """Remember that the present step decided otherwise in some lanes."""
        key = self.step, decision
        self.flips[key] = self.flips[key] | lanes if key in self.flips else lanes


def _is_off(values: np.ndarray, mask: int, *, everywhere: bool) -> np.ndarray:
    """Which numbers a dtype does not have, or has only by chance."""
    if not everywhere:
        return (values.view(np.int64) & mask) != 0
    size = np.abs(values)
    return (size != 0) & (size != 0.5) & (size != 1) & np.isfinite(size)


class OneLineAtATime(Lanes):
    """Lanes in which each draw rounds at one source line alone.

    Args:
        line_of: the line of each step that rounds, by a number.
        lines: the lines to be told apart.
        draws: how many lanes each of them has.
        seed: of what is random.
    """

    def __init__(
        self, line_of: Mapping[int, int], lines: list[int], draws: int, seed: int = 0
    ) -> None:
        super().__init__(draws * len(lines), seed)
        self._line_of = line_of
        places = {line: FIRST_DRAW + draws * at for at, line in enumerate(lines)}
        self._slices = {line: slice(place, place + draws) for line, place in places.items()}
        self._nothing = slice(0, 0)

    def moving(self) -> slice:
        """The lanes of the line that the present step belongs to."""
        return self._slices.get(self._line_of.get(self.step, -1), self._nothing)
