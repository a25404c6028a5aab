"""Grades a result: as expected, possible, or wrong.

A result is *as expected* within the bound that holds as a rule (zero if it must be equal to the
bit), *possible* within the proven bound, and *wrong* beyond both. The *share* of a bound that a
result uses is its distance from the reference, divided by that bound. A user's function has one
tolerance, derived or declared: its results are as expected, or wrong. Elements of which no
tolerance exists are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jitcount._numerics.arrays import Array, decode, parts, ulps_between
from jitcount._numerics.expected import BETWEEN_RUNS, EXACT, OF_TOLERANCE, Expected

# The grades of a result.
AS_EXPECTED = "expected"
POSSIBLE = "proven"
WRONG = "wrong"


# Up to here three digits would not show that a bound is exceeded.
_JUST_BEYOND = 1.005


@dataclass(frozen=True, slots=True)
class Worst:
    """The element that uses the largest share of its bound."""

    index: tuple[int, ...]
    found: str
    expected: str
    dtype: str
    ulps: int | None
    likely: float
    """The expected bound of this element: it holds as a rule."""

    bound: float
    """The proven bound of this element."""

    share: float
    """How much of a bound it uses: of the proven one if it is wrong, else of the expected one."""

    grade: str
    """One of `AS_EXPECTED`, `POSSIBLE` and `WRONG`."""

    bound_is: str = ""
    """What the bound of a user's function is, in words; empty for a proven one."""

    def __str__(self) -> str:
        """What is wrong, in one line."""
        at = f"[{', '.join(map(str, self.index))}]" if self.index else "the value"
        ulps = "" if self.ulps is None else f", {self.ulps:,} ulp{'s' * (self.ulps != 1)} apart"
        off = f"{at} is {self.found}, not {self.expected}{ulps}"
        if self.bound == 0:
            return f"{off}; it must be equal to the bit"
        if self.grade == POSSIBLE:
            times = f"suspicious: {self.share:.3g} times what is expected of {self.dtype}"
            return f"{off}; {times} ({self.likely:.3g}), within what is possible ({self.bound:.3g})"
        if math.isinf(self.share):
            return f"{off}; not comparable with {self.bound_is or 'the bound'} {self.bound:.3g}"
        if self.bound_is:
            digits = 3 if self.share > _JUST_BEYOND else 7
            return f"{off}; {self.share:.{digits}g} times {self.bound_is} {self.bound:.3g}"
        return f"{off}; {self.share:.3g} of the bound {self.bound:.3g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade of a result, and how much of its bound it uses."""

    grade: str
    """One of `AS_EXPECTED`, `POSSIBLE` and `WRONG`."""

    share: float
    """How much of the expected bound it uses: 0 if it is right to the last digit, 1 if all."""

    worst: Worst | None = None
    wrong: str = ""
    """What is wrong with its shape or dtype, before any number is compared."""

    excuse: str = ""
    """Why the case allows it to exceed the expected bound; empty if it does not."""

    unjudged: int = 0
    """How many numbers differ that have no tolerance, and are not judged."""

    @property
    def holds(self) -> bool:
        """Whether it passes: a result that is only possible does if the case says why."""
        return self.grade == AS_EXPECTED or (self.grade == POSSIBLE and bool(self.excuse))

    def __str__(self) -> str:
        return self.wrong or str(self.worst)


def judge(value: Array, expected: Expected) -> Verdict:
    """Grade a result by what it must be."""
    if wrong := _wrong_kind(value, expected.dtype, expected.reference.shape):
        return Verdict(WRONG, math.inf, wrong=wrong)
    if expected.numerics == BETWEEN_RUNS:
        return _judge_declared(value, expected.reference, expected)
    bounds = _Bounds(*expected.bounds(), _DERIVED if expected.numerics in OF_TOLERANCE else "")
    return _judge(decode(value), decode(expected.reference), expected, bounds, excuse=expected.may)


def judge_pair(
    one: Array,
    other: Array,
    expected: Expected,
    others: Expected | None = None,
    *,
    same_kind: bool = False,
) -> Verdict:
    """Grade one result of a case by another one; each may use up its own bound.

    Between two devices of the same kind, the case's reason to exceed a bound does not count.

    Args:
        one: the result that the other is held against.
        other: the result that is graded.
        expected: what the first must be.
        others: what the other must be, where each run derives that for itself.
        same_kind: whether both come from devices of the same kind.
    """
    if one.data == other.data and one.dtype == other.dtype and one.shape == other.shape:
        return Verdict(AS_EXPECTED, 0.0)
    if wrong := _wrong_kind(other, one.dtype, one.shape):
        return Verdict(WRONG, math.inf, wrong=wrong)
    widths = [
        each.bounds()[0] for each in (expected, others or expected) if each.numerics in OF_TOLERANCE
    ]
    if not widths and expected.numerics == BETWEEN_RUNS:
        return _judge_declared(other, one, expected)
    likely, bound = expected.bounds()
    if widths:  # where only one run could derive it, the other one's is the same
        both = widths[0] + widths[-1]
        bounds = _Bounds(both, both, _BOTH_DERIVED)
    else:
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):  # a bound near the largest number there is
            bounds = _Bounds(*(np.minimum(2 * each, largest) for each in (likely, bound)))
    excuse = "" if same_kind else expected.may
    return _judge(decode(other), decode(one), expected, bounds, excuse=excuse)


def judge_committed(value: Array, expected: Expected, committed: Expected) -> Verdict:
    """Grade a result by the reference that a project has committed.

    Of two derived tolerances, this run's and that of the reference, the wider one counts. Where one
    of both is declared, it does.
    """
    if wrong := _wrong_kind(value, committed.dtype, committed.reference.shape):
        return Verdict(WRONG, math.inf, wrong=wrong)
    for each in (expected, committed):
        if each.numerics == BETWEEN_RUNS:
            return _judge_declared(value, committed.reference, each)
    widths = np.maximum(expected.bounds()[0], committed.bounds()[0])
    bounds = _Bounds(widths, widths, _DERIVED)
    return _judge(decode(value), decode(committed.reference), committed, bounds)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of each element; NaN where there is none."""

    likely: np.ndarray
    bound: np.ndarray
    are: str = ""
    """What they are, in words, of a user's function."""


_DERIVED = "the derived tolerance"
_BOTH_DERIVED = "both derived tolerances,"


def _judge_declared(value: Array, reference: Array, expected: Expected) -> Verdict:
    """Grade a result by another one, within a share of the largest magnitude in both."""
    found, measure = decode(value), decode(reference)
    largest = max(map(_largest_magnitude, (found, measure)))
    bound = np.full(parts(measure).shape, expected.within * largest)
    are = f"the declared {expected.within:g} of the largest magnitude,"
    return _judge(found, measure, expected, _Bounds(bound, bound, are))


def _largest_magnitude(values: np.ndarray) -> float:
    """The largest magnitude of a finite number in an array; 0 where there is none."""
    wide = parts(values)
    sizes = np.abs(_wide(wide))
    if values.dtype.kind == "c":
        sizes = np.hypot(sizes[..., 0], sizes[..., 1])
    finite = sizes[np.isfinite(sizes)]
    return float(finite.max()) if finite.size else 0.0


def _wrong_kind(value: Array, dtype: str, shape: tuple[int, ...]) -> str:
    if value.shape != shape:
        return f"the shape is {value.shape}, not {shape}"
    if value.dtype != dtype and not _are_both_whole(value.dtype, dtype):
        return f"the dtype is {value.dtype}, not {dtype}"
    return ""


def _are_both_whole(one: str, other: str) -> bool:
    """Whether both are integers of 32 or 64 bits: with x64 on, JAX's have 64, and must be equal."""
    return one.rstrip("3264") == other.rstrip("3264") and one.startswith(("int", "uint"))


def _judge(
    found: np.ndarray,
    reference: np.ndarray,
    expected: Expected,
    bounds: _Bounds,
    *,
    excuse: str = "",
) -> Verdict:
    found, reference = parts(found), parts(reference)
    if not found.size:
        return Verdict(AS_EXPECTED, 0.0)
    unjudged = 0
    if expected.numerics == EXACT:
        as_expected = possible = _exact_shares(found, reference)
    else:
        as_expected = _shares(found, reference, bounds.likely)
        possible = _shares(found, reference, bounds.bound)
        has_none = np.isnan(as_expected)
        unjudged = int(has_none.sum())
        as_expected, possible = (np.where(has_none, 0.0, s) for s in (as_expected, possible))
    share = float(as_expected.max())
    if share == 0:
        return Verdict(AS_EXPECTED, 0.0, unjudged=unjudged)
    grade = WRONG if possible.max() > 1 else POSSIBLE if share > 1 else AS_EXPECTED
    shares = possible if grade == WRONG else as_expected
    place = int(np.argmax(shares))
    index = tuple(map(int, np.unravel_index(place, found.shape)))
    with np.errstate(over="ignore"):  # a reference that its dtype does not hold is infinite there
        one, other = found[index], reference[index].astype(found.dtype)
    finite = bool(np.isfinite(np.float64(one)) and np.isfinite(np.float64(other)))
    worst = Worst(
        index,
        _exact_text(one),
        _exact_text(other),
        expected.dtype,
        ulps_between(one, other) if finite else None,
        float(bounds.likely[index]),
        float(bounds.bound[index]),
        float(shares.ravel()[place]),
        grade,
        bounds.are,
    )
    return Verdict(grade, share, worst, excuse=excuse, unjudged=unjudged)


def _exact_shares(found: np.ndarray, reference: np.ndarray) -> np.ndarray:
    same = found == reference
    if found.dtype.kind not in "biu":
        wide, wide_reference = _wide(found), _wide(reference)
        same &= np.signbit(wide) == np.signbit(wide_reference)
        same |= np.isnan(wide) & np.isnan(wide_reference)
    return np.where(same, 0.0, np.inf)


def _shares(found: np.ndarray, reference: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """How much of its bound each element uses; infinities and NaNs must be in their places.

    NaN for one that differs and has no bound.
    """
    wide, wide_reference = _wide(found), _wide(reference)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        off = np.abs(wide - wide_reference)
        shares = off / bound
    same = (wide == wide_reference) | (np.isnan(wide) & np.isnan(wide_reference))
    both_finite = np.isfinite(wide) & np.isfinite(wide_reference)
    shares = np.where(both_finite, shares, np.where(np.isnan(bound), np.nan, np.inf))
    return np.where(same, 0.0, shares)


def _wide(values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a signalling NaN, of which NumPy would warn
        return values.astype(np.float64)


def _exact_text(number: np.generic) -> str:
    """A short text from which the number can be read back to the bit."""
    if number.dtype.kind in "biu":
        return str(number)
    wide = float(number)
    return f"{wide!r}" if number.dtype.itemsize == 8 else f"{wide:.9g}"
