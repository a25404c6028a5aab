"""Whether two programs have computed the same: to the bit, or as near as rounding allows."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount.numerics.units import gamma

if TYPE_CHECKING:
    from jitcount.profile.stacking import Held


def read_results(block: bytes) -> list[np.ndarray]:
    """What a compiler's process has computed, each result flat."""
    with np.load(io.BytesIO(block)) as held:
        return [held[name].view(jax.numpy.dtype(name.split(" ")[1])) for name in held.files]


def taken_apart(results: list[np.ndarray], held: Held | None) -> list[np.ndarray]:
    """Results as the program itself has them."""
    if held is None:
        return results
    found: dict[int, np.ndarray] = {}
    for group, each in zip(held, results, strict=True):
        found.update(zip(group, each.reshape(len(group), -1), strict=True))
    return [found[number].ravel() for number in sorted(found)]


def compare(one: list[np.ndarray], other: list[np.ndarray], *, operations: int) -> str:
    """How two results compare; empty where they are not the same."""
    if all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)):
        return "the same bits"
    pairs = zip(one, other, strict=True)
    return "within rounding" if all(_is_near(a, b, operations) for a, b in pairs) else ""


def _is_near(one: np.ndarray, other: np.ndarray, operations: int) -> bool:
    """Whether two arrays are apart by no more than so many roundings of their largest value."""
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    wide, wide_other = one.astype(np.complex128), other.astype(np.complex128)
    is_number = np.isfinite(wide)
    if not np.array_equal(is_number, np.isfinite(wide_other)):
        return False
    scale = np.abs(wide[is_number]).max(initial=0.0)
    kind = {"complex64": "float32", "complex128": "float64"}.get(str(one.dtype), str(one.dtype))
    bound = 2 * gamma(operations, kind) * scale
    return bool(np.all(np.abs(wide - wide_other)[is_number] <= bound))
