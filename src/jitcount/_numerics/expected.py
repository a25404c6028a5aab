"""What a result must be: the reference, and two bounds on the distance from it.

The *expected* bound (`likely`) is what chance does to roundings, and holds as a rule; the *proven*
one (`bound`) holds whatever a backend does. `error_bounds` has their theory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from jitcount._numerics.arrays import Array, decode, encode, parts
from jitcount._numerics.error_bounds import smallest_normal

if TYPE_CHECKING:
    from jitcount._numerics.rounding import Rounded

EXACT = "exact"
REDUCTION = "reduction"
ELEMENTWISE = "elementwise"
MATMUL = "matmul"
COMPOSITE = "composite"
DECLARED = "declared"

CLASSES = {
    EXACT: "equal to the bit on every backend; of NaNs only that they are",
    REDUCTION: "within what chance does to a sum; in any order, within the proven bound",
    ELEMENTWISE: "within a few ulps for each operation",
    MATMUL: "as a reduction, at the declared precision",
    COMPOSITE: "within the bound that follows from those of its operations",
    DECLARED: "within a bound that is declared, not proven",
}

# An expected bound that is wider than this part of its value's scale finds nothing.
BLUNT = 1e-3

_NARROW = ("float16", "bfloat16")


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

    def __post_init__(self) -> None:
        if self.numerics not in CLASSES:
            raise ValueError(f"an unknown class of numerics {self.numerics!r}")
        if self.numerics == EXACT:
            if self.likely or self.bound or self.may:
                raise ValueError("an exact result with a bound")
            return
        shape = parts(decode(self.reference)).shape
        for one in (self.likely, self.bound):
            if one is None or one.dtype != "float32":
                raise ValueError(f"a bound of dtype {one and one.dtype}, not float32")
            bound = decode(one)
            if not np.all(np.isfinite(bound) & (bound >= 0)):
                raise ValueError("a bound that is negative or not finite")
            if bound.shape != shape:
                raise ValueError("a bound of another shape than its reference")

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The expected and the proven bound of each element; zeros if it must be equal."""
        if self.likely is None or self.bound is None:
            zeros = np.zeros(parts(decode(self.reference)).shape)
            return zeros, zeros
        return decode(self.likely).astype(np.float64), decode(self.bound).astype(np.float64)


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
