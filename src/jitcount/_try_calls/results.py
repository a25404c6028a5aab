"""Whether two runs of a program got the same results from a call, to the bit or nearly so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

# NumPy's own does not know bfloat16 and float8; it has no types.
_finfo: Any = ml_dtypes.finfo

_SAME = "same bits"


@dataclass(frozen=True)
class Compared:
    """How the results of two runs compare."""

    text: str
    """In words: ``"same bits"``, ``"the results differ by up to 1.2e-07 of their size"``."""

    is_same: bool
    """Whether they are the same, but for rounding."""


def compare(
    before: list[Any], after: list[Any], before_folder: Path, after_folder: Path
) -> Compared:
    """Compare the leaves that two runs wrote down."""
    if not before and not after:
        return Compared("it returns no arrays", is_same=True)
    same_calls = min(_last_call(before), _last_call(after))
    one, other = (
        {(leaf[0], leaf[1]): leaf for leaf in leaves if leaf[0] <= same_calls}
        for leaves in (before, after)
    )
    if one.keys() != other.keys():
        return Compared("another structure of results", is_same=False)
    changed = [(one[key], other[key]) for key in one if one[key][2:5] != other[key][2:5]]
    if not changed:
        return Compared(_SAME, is_same=True)
    types = next(((a, b) for a, b in changed if a[2:4] != b[2:4]), None)
    if types is not None:
        (_, path, *_), _ = types
        kinds = " → ".join(_kind(leaf) for leaf in types)
        return Compared(f"another type of {_named(path)}: {kinds}", is_same=False)
    if any(leaf[5] is None for pair in changed for leaf in pair):
        return Compared("other results, which are too large to compare", is_same=True)
    return _difference(changed, before_folder, after_folder)


def _last_call(leaves: list[Any]) -> int:
    return max((leaf[0] for leaf in leaves), default=0)


def _kind(leaf: Any) -> str:
    return f"{leaf[2]}[{','.join(map(str, leaf[3]))}]"


def _named(path: str) -> str:
    return f"result {path}" if path else "result"


def _difference(changed: list[Any], before_folder: Path, after_folder: Path) -> Compared:
    """How far the values of leaves of one type are from each other, in parts of their size."""
    largest, beyond = 0.0, ""
    for one, other in changed:
        values = _values(one, before_folder), _values(other, after_folder)
        relative = _relative(*values)
        if not relative <= _tolerance(values[0].dtype):
            beyond = beyond or _named(one[1])
        largest = relative if np.isnan(relative) else max(largest, relative)
    if beyond:
        return Compared(f"another {beyond}: {_size(largest)}", is_same=False)
    return Compared(f"the results differ by {_size(largest)}", is_same=True)


def _size(relative: float) -> str:
    if not np.isfinite(relative):
        return "some are not numbers"
    return f"up to {relative:.2g} of their size"


def _values(leaf: Any, folder: Path) -> np.ndarray:
    dtype = jax.numpy.dtype(leaf[2])
    count = int(np.prod(leaf[3], dtype=np.int64))
    with (folder / "values.bin").open("rb") as file:
        file.seek(leaf[5])
        return np.frombuffer(file.read(count * dtype.itemsize), dtype)


def _relative(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, in parts of the largest value."""
    wide, wide_other = (each.astype(np.complex128) for each in (one, other))
    is_number = np.isfinite(wide)
    if not np.array_equal(is_number, np.isfinite(wide_other)):
        return float("nan")
    apart = np.abs(wide - wide_other)[is_number].max(initial=0.0)
    scale = np.abs(wide[is_number]).max(initial=0.0)
    return float(apart / scale) if scale else float(apart > 0)


def _tolerance(dtype: Any) -> float:
    """What rounding in another order may change; beyond half of the digits, it is no rounding."""
    if not jax.numpy.issubdtype(dtype, jax.numpy.inexact):
        return 0.0
    return float(np.sqrt(float(_finfo(dtype).eps)))
