"""What a result must be, and whether it is: equal to the bit, or within a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from jitcount.numerics.arrays import Array, decode, encode, parts, ulps_between

if TYPE_CHECKING:
    from jitcount.numerics.rounding import Rounded

EXACT = "exact"
REDUCTION = "reduction"
ELEMENTWISE = "elementwise"
MATMUL = "matmul"
COMPOSITE = "composite"
DECLARED = "declared"

CLASSES = {
    EXACT: "equal to the bit on every backend; of NaNs only that they are",
    REDUCTION: "within the proven bound for any order of summation",
    ELEMENTWISE: "within a few ulps for each operation",
    MATMUL: "within the proven bound for the declared precision",
    COMPOSITE: "within the bound that follows from those of its operations",
    DECLARED: "within a bound that is declared, not proven",
}


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a result must be: reference and bound, element by element, for a class of numerics."""

    numerics: str
    dtype: str
    reference: Array
    bound: Array

    def __post_init__(self) -> None:
        if self.numerics not in CLASSES:
            raise ValueError(f"an unknown class of numerics {self.numerics!r}")
        if self.bound.dtype != "float64":
            raise ValueError(f"a bound of dtype {self.bound.dtype}, not float64")
        bound = decode(self.bound)
        if not np.all(np.isfinite(bound) & (bound >= 0)):
            raise ValueError("a bound that is negative or not finite")
        if bound.shape != parts(decode(self.reference)).shape:
            raise ValueError("a bound of another shape than its reference")


def exactly(values: np.ndarray) -> Expected:
    """A result that is the same on every backend."""
    bound = np.zeros(parts(values).shape)
    return Expected(EXACT, values.dtype.name, encode(values), encode(bound))


def within(numerics: str, reference: Rounded) -> Expected:
    """A result that a program computes within its error bound."""
    values, bound = encode(reference.values), encode(reference.errors)
    return Expected(numerics, reference.dtype, values, bound)


def within_complex(numerics: str, real: Rounded, imaginary: Rounded) -> Expected:
    """The same for complex64, part by part."""
    values = real.values + 1j * imaginary.values
    bound = np.stack([real.errors, imaginary.errors], axis=-1)
    return Expected(numerics, "complex64", encode(values), encode(bound))


@dataclass(frozen=True, slots=True)
class Worst:
    """The element that is farthest off, for its bound."""

    index: tuple[int, ...]
    found: str
    expected: str
    ulps: int | None
    bound: float
    share: float

    def __str__(self) -> str:
        """What is wrong, in one line."""
        at = f"[{', '.join(map(str, self.index))}]" if self.index else "the value"
        ulps = "" if self.ulps is None else f", {self.ulps:,} ulp{'s' * (self.ulps != 1)} apart"
        if self.bound == 0:
            return f"{at} is {self.found}, not {self.expected}{ulps}; it must be equal to the bit"
        used = f"{self.share:.3g} of"
        if math.isinf(self.share):
            used = "not comparable with"
        return f"{at} is {self.found}, not {self.expected}{ulps}; {used} the bound {self.bound:.3g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a result holds, and how much of its bound it uses."""

    holds: bool
    share: float
    """0 where it is right to the last digit, 1 where all of the bound is used."""

    worst: Worst | None = None
    wrong: str = ""
    """What is wrong before any number is looked at."""

    def __str__(self) -> str:
        return self.wrong or str(self.worst)


def judge(value: Array, expected: Expected) -> Verdict:
    """Hold a result against what it must be."""
    if wrong := _wrong_kind(value, expected):
        return Verdict(holds=False, share=math.inf, wrong=wrong)
    found, reference = decode(value), decode(expected.reference)
    bound = decode(expected.bound)
    return _judge(found, reference, bound, is_exact=expected.numerics == EXACT)


def judge_pair(one: Array, other: Array, expected: Expected) -> Verdict:
    """Hold two results of the same case against each other: each may use up its own bound."""
    if one.data == other.data and one.dtype == other.dtype:
        return Verdict(holds=True, share=0.0)
    bound = decode(expected.bound)
    both = bound + np.minimum(bound, np.finfo(np.float64).max - bound)  # 2 * bound, but finite
    return _judge(decode(other), decode(one), both, is_exact=expected.numerics == EXACT)


def _wrong_kind(value: Array, expected: Expected) -> str:
    if value.shape != expected.reference.shape:
        return f"the shape is {value.shape}, not {expected.reference.shape}"
    if value.dtype != expected.dtype and not _are_both_whole(value.dtype, expected.dtype):
        return f"the dtype is {value.dtype}, not {expected.dtype}"
    return ""


def _are_both_whole(one: str, other: str) -> bool:
    """With x64 on, JAX's whole numbers have 64 bits: the numbers themselves are compared."""
    return one.rstrip("3264") == other.rstrip("3264") and one.startswith(("int", "uint"))


def _judge(
    found: np.ndarray, reference: np.ndarray, bound: np.ndarray, *, is_exact: bool
) -> Verdict:
    found, reference = parts(found), parts(reference)
    if not found.size:
        return Verdict(holds=True, share=0.0)
    shares = _exact_shares(found, reference) if is_exact else _shares(found, reference, bound)
    place = int(np.argmax(shares))
    share = float(shares.ravel()[place])
    if share == 0:
        return Verdict(holds=True, share=0.0)
    index = np.unravel_index(place, found.shape)
    worst = _worst(tuple(map(int, index)), found, reference, bound, share)
    return Verdict(share <= 1, share, worst)


def _exact_shares(found: np.ndarray, reference: np.ndarray) -> np.ndarray:
    same = found == reference
    if found.dtype.kind not in "biu":
        wide, wide_reference = found.astype(np.float64), reference.astype(np.float64)
        same &= np.signbit(wide) == np.signbit(wide_reference)
        same |= np.isnan(wide) & np.isnan(wide_reference)
    return np.where(same, 0.0, np.inf)


def _shares(found: np.ndarray, reference: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """How much of its bound each element uses; infinite ones and NaNs must be where they should."""
    wide, wide_reference = found.astype(np.float64), reference.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        off = np.abs(wide - wide_reference)
        shares = off / bound
    same = (wide == wide_reference) | (np.isnan(wide) & np.isnan(wide_reference))
    both_finite = np.isfinite(wide) & np.isfinite(wide_reference)
    return np.where(same, 0.0, np.where(both_finite, shares, np.inf))


def _worst(
    index: tuple[int, ...],
    found: np.ndarray,
    reference: np.ndarray,
    bound: np.ndarray,
    share: float,
) -> Worst:
    with np.errstate(over="ignore"):  # a reference that its dtype does not hold is infinite there
        one, other = found[index], reference[index].astype(found.dtype)
    finite = bool(np.isfinite(np.float64(one)) and np.isfinite(np.float64(other)))
    ulps = ulps_between(one, other) if finite else None
    return Worst(index, _exact_text(one), _exact_text(other), ulps, float(bound[index]), share)


def _exact_text(number: np.generic) -> str:
    """A number that reads well and can be read back to the bit."""
    if number.dtype.kind in "biu":
        return str(number)
    wide = float(number)
    return f"{wide!r}" if number.dtype.itemsize == 8 else f"{wide:.9g}"
