"""What a result must be: the reference, and two bounds on the distance from it.

The *expected* bound (`likely`) is what chance does to roundings, and holds as a rule; the *proven*
one (`bound`) holds whatever a backend does. `error_bounds` has their theory. What a user's function
must be has neither: one tolerance is derived for each element, where there is one. Of a function
that nothing can be derived for, a bound is declared on the distance between two runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import msgspec
import numpy as np

from jitcount._numerics.arrays import Array, decode, encode, parts
from jitcount._numerics.error_bounds import smallest_normal

if TYPE_CHECKING:
    from jitcount._numerics.rounding import Rounded

_finfo: Any = ml_dtypes.finfo

EXACT = "exact"
REDUCTION = "reduction"
ELEMENTWISE = "elementwise"
MATMUL = "matmul"
COMPOSITE = "composite"
DECLARED = "declared"
DERIVED = "derived"
UNDERIVED = "no tolerance"
BETWEEN_RUNS = "declared between runs"

OF_TOLERANCE = (DERIVED, UNDERIVED)
"""The classes of what `jitcount.tolerance` derives."""

OF_OWN_CASES = (*OF_TOLERANCE, BETWEEN_RUNS)
"""The classes of users' functions; the suite's own cases have none of them."""

CLASSES = {
    EXACT: "equal to the bit on every backend; of NaNs only that they are",
    REDUCTION: "within what chance does to a sum; in any order, within the proven bound",
    ELEMENTWISE: "within a few ulps for each operation",
    MATMUL: "as a reduction, at the declared precision",
    COMPOSITE: "within the bound that follows from those of its operations",
    DECLARED: "within a bound that is declared, not proven",
    DERIVED: "within the tolerance that jitcount.tolerance derives of each element",
    UNDERIVED: "the same, but for the elements of which none exists: left out, and counted",
    BETWEEN_RUNS: "near what another run returns, within a bound that is declared, not derived",
}

_A_RESULT = {EXACT: "an exact result", BETWEEN_RUNS: "a result that is declared between runs"}

# An expected bound that is wider than this part of its value's scale finds nothing.
BLUNT = 1e-3

_NARROW = ("float16", "bfloat16")
_WIDE = ("float64", "complex128")


class Expected(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """What a result must be: reference and bounds, element by element, for a class of numerics."""

    numerics: str
    dtype: str
    reference: Array
    likely: Array | None = None
    """The expected bound of each element; None if the result must be equal to the bit."""

    bound: Array | None = None
    """The proven bound of each element; None if the result must be equal to the bit."""

    may: str = ""
    """Why a backend may exceed the expected bound, though not the proven one; empty if none may."""

    within: float = 0.0
    """What is declared between runs: a share of the largest magnitude in the result."""

    why: str = ""
    """Why elements have no tolerance, or why nothing could be derived."""

    def __post_init__(self) -> None:
        if self.numerics not in CLASSES:
            raise ValueError(f"an unknown class of numerics {self.numerics!r}")
        if not (self.within == 0 or (self.numerics == BETWEEN_RUNS and _is_share(self.within))):
            raise ValueError(f"a declared bound of {self.within!r}")
        if self.numerics in {EXACT, BETWEEN_RUNS}:
            if self.likely or self.bound or self.may:
                raise ValueError(f"{_A_RESULT[self.numerics]} with a bound")
            return
        if self.numerics in OF_TOLERANCE:
            if self.bound or self.may:
                raise ValueError("a derived tolerance with another bound")
            self._require_bound(self.likely, ("float32", "float64"))
            return
        for one in (self.likely, self.bound):
            self._require_bound(one, ("float32",))

    def _require_bound(self, one: Array | None, dtypes: tuple[str, ...]) -> None:
        if one is None or one.dtype not in dtypes:
            raise ValueError(f"a bound of dtype {one and one.dtype}, not {' or '.join(dtypes)}")
        bound = decode(one)
        is_left_out = np.isnan(bound) & (self.numerics == UNDERIVED)
        if not np.all(is_left_out | (np.isfinite(bound) & (bound >= 0))):
            raise ValueError("a bound that is negative or not finite")
        if bound.shape != parts(decode(self.reference)).shape:
            raise ValueError("a bound of another shape than its reference")

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The expected and the proven bound of each element; zeros if it must be equal.

        Elements of which no tolerance exists have NaN.
        """
        if self.likely is None:
            zeros = np.zeros(parts(decode(self.reference)).shape)
            return zeros, zeros
        likely = decode(self.likely).astype(np.float64)
        return likely, likely if self.bound is None else decode(self.bound).astype(np.float64)

    def left_out(self) -> int:
        """How many elements have no tolerance, and are not judged."""
        if self.likely is None or self.numerics != UNDERIVED:
            return 0
        none = np.isnan(decode(self.likely))
        return int(none[..., 0].sum() if self.reference.dtype.startswith("c") else none.sum())


def exactly(values: np.ndarray) -> Expected:
    """The expectation of a result that is the same to the bit on every backend."""
    return Expected(numerics=EXACT, dtype=values.dtype.name, reference=encode(values))


def within(numerics: str, reference: Rounded, may: str = "") -> Expected:
    """The expectation of a result that stays within the bounds of its reference."""
    _require_teeth(reference)
    return Expected(
        numerics=numerics,
        dtype=reference.dtype,
        reference=encode(reference.values),
        likely=_rounded_up(reference.likely),
        bound=_rounded_up(reference.errors),
        may=may,
    )


def within_complex(numerics: str, real: Rounded, imaginary: Rounded) -> Expected:
    """The expectation of a complex64 result: real and imaginary part each within their bounds."""
    both = real, imaginary
    for part in both:
        _require_teeth(part)
    return Expected(
        numerics=numerics,
        dtype="complex64",
        reference=encode(real.values + 1j * imaginary.values),
        likely=_rounded_up(np.stack([part.likely for part in both], axis=-1)),
        bound=_rounded_up(np.stack([part.errors for part in both], axis=-1)),
    )


def derived(dtype: str, reference: np.ndarray, width: np.ndarray, why_none: str = "") -> Expected:
    """The expectation of a result whose tolerance was derived; where that is NaN, none exists.

    The parts of a complex number may each be off by its tolerance.
    """
    exists = np.isfinite(width)
    widths = np.where(exists, width, 0.0)
    if reference.dtype.kind == "c":
        widths, exists = (np.stack([each, each], axis=-1) for each in (widths, exists))
    # A float64 is far more precise than the smallest float32.
    bounds = encode(widths) if dtype in _WIDE else _rounded_up(widths)
    has_none = not np.all(exists)
    if has_none:
        bounds = encode(np.where(exists, decode(bounds), np.nan).astype(bounds.dtype))
    return Expected(
        numerics=UNDERIVED if has_none else DERIVED,
        dtype=dtype,
        reference=encode(reference),
        likely=bounds,
        why=(why_none or "its tolerance is not finite") if has_none else "",
    )


DEFAULT_WITHIN = 1e-5
"""The share of the largest magnitude by which two runs may differ, where none is declared."""


def between_runs(values: np.ndarray, within: float | None, why: str) -> Expected:
    """The expectation of a result that only another run's can be held against.

    Args:
        values: what this run returned.
        within: how far apart both may be, as a share of the largest magnitude in them; of integers
            and booleans nothing. If None, 1e-5, or one step of a dtype that has fewer digits.
        why: why no tolerance could be derived.
    """
    is_whole = values.dtype.kind in "biu"
    if within is None and not is_whole:
        within = max(DEFAULT_WITHIN, float(_finfo(values.dtype).eps))
    return Expected(
        numerics=BETWEEN_RUNS,
        dtype=values.dtype.name,
        reference=encode(values),
        within=0.0 if is_whole or within is None else within,
        why=why,
    )


def _is_share(within: float) -> bool:
    return 0 <= within < float("inf")


def _rounded_up(bounds: np.ndarray) -> Array:
    """Bounds as float32, which has digits enough; no bound becomes smaller."""
    with np.errstate(over="ignore"):
        narrow = bounds.astype(np.float32)
    raised = np.where(narrow < bounds, np.nextafter(narrow, np.float32(np.inf)), narrow)
    return encode(np.asarray(np.minimum(raised, np.finfo(np.float32).max), np.float32))


def _require_teeth(reference: Rounded) -> None:
    """Refuse a check that cannot fail."""
    if reference.dtype in _NARROW:
        return
    allowed = BLUNT * reference.scale + 16 * smallest_normal(reference.dtype)
    if np.any(reference.likely > allowed):
        raise ValueError(
            f"an expected bound of {np.max(reference.likely):.3g} for what came out of "
            f"{np.max(reference.scale):.3g}: it would let anything pass"
        )
