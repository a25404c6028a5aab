"""Classes of programs that a released compiler got wrong, as reported in public.

Each case is wider than the program of its report: all starts, sizes and types around it. Where a
release is known to be wrong, `jitcount._miscompiles.known` names these cases.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.case import Case, exactly_these
from jitcount._suite.data import floats, whole
from jitcount._suite.jitted import jitted, same_bits

if TYPE_CHECKING:
    from collections.abc import Sequence


# --- Slices and updates ---------------------------------------------------------------------------

_ROW = whole(10, most=100, dtype="int32", seed=1)
_STARTS = np.array(list(itertools.product((-3, 0, 3, 6, 9, 12), (-1, 0, 1, 2, 5))), np.int32)


def _slice(x: Any, start: Any, size: int) -> Any:
    return lax.dynamic_slice(x, (start,), (size,))


def _slice_by_hand(x: np.ndarray, start: int, size: int) -> np.ndarray:
    start = min(max(start + len(x) * (start < 0), 0), len(x) - size)
    return x[start : start + size]


def _slices_of_slices(x: jax.Array, starts: jax.Array) -> list[jax.Array]:
    """Slices of slices, and of rolled arrays, from many starts, which the compiler does not know.

    With `vmap` they would be gathers.
    """
    return [
        lax.map(lambda ij: _slice(_slice(x, ij[0], 4), ij[1], 2), starts),
        lax.map(lambda ij: _slice(jnp.roll(x, ij[0]), ij[1], 4), starts),
    ]


def _slices_of_slices_by_hand(x: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    pairs = starts.tolist()
    return [
        np.stack([_slice_by_hand(_slice_by_hand(x, i, 4), j, 2) for i, j in pairs]),
        np.stack([_slice_by_hand(np.roll(x, i), j, 4) for i, j in pairs]),
    ]


def _shifted_updates(x: jax.Array) -> list[jax.Array]:
    """An array with a part of itself written over it, one place or more further on."""
    base = x + 1
    moved = [base.at[by:].set(base[:-by]) for by in (1, 2, 7)]
    back = [base.at[:-by].set(base[by:]) for by in (1, 2, 7)]
    return [each.reshape(1, *each.shape) for each in (*moved, *back)]


def _shifted_updates_by_hand(x: np.ndarray) -> list[np.ndarray]:
    base = x + 1
    moved = [np.concatenate([base[:by], base[:-by]]) for by in (1, 2, 7)]
    back = [np.concatenate([base[by:], base[-by:]]) for by in (1, 2, 7)]
    return [each[None] for each in (*moved, *back)]


# --- Indices --------------------------------------------------------------------------------------

_TABLE = whole(300, most=10_000, dtype="int32", seed=2)
_WIDE_INDICES = np.array([0, 127, 128, 200, 255], np.uint8)


def _constant_indices(x: jax.Array) -> list[jax.Array]:
    """Elements at places that are constants of narrow types, with and without their top bit."""
    picked = [_slice(x, jnp.uint8(place), 1) for place in _WIDE_INDICES.tolist()]
    return [jnp.concatenate(picked), x[jnp.asarray(_WIDE_INDICES)]]


_TOKENS = np.broadcast_to(np.arange(5, dtype=np.int32), (2, 5))


def _constant_gathers() -> list[jax.Array]:
    """Programs without arguments: everything is known when they are compiled."""
    tokens = jnp.asarray(_TOKENS)
    return [tokens[:, jnp.arange(5)] + 1, tokens.T[jnp.arange(4, -1, -1)] * 2]


def _scatters_of_narrow_indices(x: jax.Array, places: jax.Array) -> list[jax.Array]:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
    )
    ones = jnp.ones((len(places), 1), x.dtype)
    kinds = [places.astype(kind)[:, None] for kind in ("int8", "uint8", "int16")]
    return [lax.scatter_add(x, kind, ones, numbers) for kind in kinds]


def _scatters_by_hand(x: np.ndarray, places: np.ndarray) -> list[np.ndarray]:
    added = x.copy()
    np.add.at(added, places, 1)
    return [added, added, added]


def _scatter_without_index(x: jax.Array, updates: jax.Array) -> jax.Array:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=()
    )
    return lax.scatter_add(x, jnp.zeros((3, 0), "int32"), updates, numbers)


# --- Windows --------------------------------------------------------------------------------------

_SMALL, _LARGE = whole(8, 8, most=100, seed=3), whole(64, 128, most=100, seed=4)


def _dilated_maxima(*tables: jax.Array) -> list[jax.Array]:
    """The larger of two rows, in columns that are moved apart."""
    return [
        lax.reduce_window(
            x, -jnp.inf, lax.max, (2, 1), (2, 1), ((0, 0), (0, 0)), base_dilation=(1, 2)
        )
        for x in tables
    ]


def _dilated_maxima_by_hand(*tables: np.ndarray) -> list[np.ndarray]:
    found = []
    for x in tables:
        apart = np.full((len(x) // 2, 2 * x.shape[1] - 1), -np.inf)
        apart[:, ::2] = np.maximum(x[::2], x[1::2])
        found.append(apart)
    return found


def _cropped_windows(x: jax.Array) -> list[jax.Array]:
    """Sums of two neighbours, with a zero in front, where columns are cut off before."""
    cropped = [lax.pad(x, jnp.int32(0), [(0, 0, 1), (-by, 0, 0)]) for by in (1, 2)]
    return [
        lax.reduce_window(each, jnp.int32(0), lax.add, (1, 2), (1, 1), ((0, 0), (1, 0)))
        for each in cropped
    ]


def _cropped_windows_by_hand(x: np.ndarray) -> list[np.ndarray]:
    apart = np.zeros((2 * len(x) - 1, x.shape[1]), x.dtype)
    apart[::2] = x
    cropped = [apart[:, by:] for by in (1, 2)]
    return [each + np.pad(each, ((0, 0), (1, 0)))[:, :-1] for each in cropped]


_IMAGE = whole(1, 15, 6, 8, most=200, seed=5)


def _cropped_convolution(x: jax.Array) -> jax.Array:
    """A convolution with the identity that leaves out five columns, and adds one of zeros."""
    kernel = jnp.eye(8, dtype=x.dtype).reshape(1, 1, 8, 8)
    return lax.conv_general_dilated(
        x, kernel, (1, 1), ((0, 0), (-5, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


# --- Loops and folded functions -------------------------------------------------------------------

_LOOPS = ((0, 1, 2), (0, 5, 3), (0, 7, 4), (3, 4, 100), (0, 6, 3))


def _stepped_loops(x: jax.Array) -> list[jax.Array]:
    """Loops whose step does not divide the distance, both known when they are compiled."""
    found: list[jax.Array] = []
    for begin, end, by in _LOOPS:
        found += lax.while_loop(
            lambda at, end=end: at[0] < end,
            lambda at, by=by: (at[0] + by, at[1] + 1),
            (jnp.int32(begin), x[0]),
        )
    return found


def _stepped_loops_by_hand(x: np.ndarray) -> list[np.ndarray]:
    found = []
    for begin, end, by in _LOOPS:
        steps = max(-(-(end - begin) // by), 0)
        found += [np.array(begin + steps * by), x[0] + steps]
    return found


def _angle_of_zeros(x: jax.Array) -> jax.Array:
    """The angle of a zero that the compiler finds out."""
    zero = (x != x[0]).astype("float32") * 0
    never = lax.bitwise_xor(x > 0, x > 0).astype("float32")
    return jnp.stack([lax.atan2(never, never), lax.atan2(zero, zero + 1)])


_LARGEST = float(np.finfo(np.float32).max)


def _inverses(x: jax.Array) -> list[jax.Array]:
    """Functions and their inverses, where the value between is infinite."""
    return [jnp.log(jnp.exp(x[0])), jnp.sqrt(jnp.square(x[1])), jnp.exp(x[0]) * jnp.exp(-2 * x[0])]


# --- Reductions -----------------------------------------------------------------------------------


def _with_nans() -> list[np.ndarray]:
    """Rows of lengths around those where compilers change their way, each with one NaN."""
    rows = []
    for length in (1_025, 4_096, 40_000):
        for place in (0, length - 1):
            row = whole(length, most=1_000, seed=length)
            row[place] = np.nan
            rows.append(row)
    return rows


def _extrema(*rows: jax.Array) -> list[jax.Array]:
    """The smallest and the largest number of each row, and of three equal columns."""
    columns = [jnp.stack([row] * 3, 1) for row in rows]
    return [
        jnp.stack([jnp.min(row) for row in rows]),
        jnp.stack([jnp.max(row) for row in rows]),
        jnp.stack([jnp.min(each, 0) for each in columns]),
        jnp.stack([jnp.max(each, 0) for each in columns]),
    ]


def _all_nan(*rows: np.ndarray) -> list[np.ndarray]:
    one, three = np.full(len(rows), np.nan), np.full((len(rows), 3), np.nan)
    return [one, one, three, three]


# --- Reductions of many axes ----------------------------------------------------------------------

# A compiler that crashes would take the suite with it, and one that hangs would never end.
_RANKS = """
import jax, jax.numpy as jnp, numpy as np
shapes = (3, 1, 2, 2, 8, 8, 8), (2, 2, 3, 2, 3, 2, 3, 2)
for shape in shapes:
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 13
    b = a[::-1] + 1
    for axis in range(len(shape)):
        found = np.asarray(jax.jit(lambda a, b: jnp.sum(a * b, axis))(a, b))
        assert np.array_equal(found, (a.astype(np.float64) * b).sum(axis)), (shape, axis)
"""
_PATIENCE_S = 60.0


def _reductions_of_many_axes() -> Sequence[jax.Array]:
    command = [sys.executable, "-c", _RANKS]
    try:
        run = subprocess.run(  # noqa: S603
            command, timeout=_PATIENCE_S, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"it did not end within {_PATIENCE_S:.0f} s") from None
    if run.returncode < 0:
        raise RuntimeError(f"it was ended by {signal.Signals(-run.returncode).name}")
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1])
    return [jax.device_put(np.int32(run.returncode))]


def _not_on_a_cpu() -> str:
    platform = jax.devices()[0].platform
    return (
        "" if platform == "cpu" else f"it needs a second process, which cannot use the {platform}"
    )


REPORTED_CASES = (
    jitted(
        "slice-of-slice",
        "a dynamic slice of a dynamic slice: each start is moved inside by itself",
        _slices_of_slices,
        (_ROW, _STARTS),
        same_bits(_slices_of_slices_by_hand),
    ),
    jitted(
        "update-of-itself",
        "an array with a shifted part of itself written over it",
        _shifted_updates,
        (whole(8, 16, most=100, dtype="int32", seed=8),),
        same_bits(_shifted_updates_by_hand),
    ),
    jitted(
        "constant-index",
        "elements at constant places of a narrow unsigned type",
        _constant_indices,
        (_TABLE,),
        same_bits(lambda x: [x[_WIDE_INDICES], x[_WIDE_INDICES]]),
    ),
    jitted(
        "constant-gather",
        "gathers that are known when they are compiled",
        _constant_gathers,
        (),
        same_bits(lambda: [_TOKENS + 1, _TOKENS.T[::-1] * 2]),
    ),
    jitted(
        "narrow-index-scatter",
        "scatters with indices of 8 and 16 bits into more places than 8 bits count",
        _scatters_of_narrow_indices,
        (_TABLE, np.array([3, 50, 100, 127], np.int32)),
        same_bits(_scatters_by_hand),
    ),
    jitted(
        "scatter-without-index",
        "all updates of a scatter that says no place",
        _scatter_without_index,
        (np.array([10], np.int32), np.array([[1], [2], [4]], np.int32)),
        same_bits(lambda x, updates: [x + updates.sum()]),
    ),
    jitted(
        "window-dilated",
        "maxima of windows in an array that is spread out",
        _dilated_maxima,
        (_SMALL, _LARGE),
        same_bits(_dilated_maxima_by_hand),
    ),
    jitted(
        "window-of-cropped",
        "sums of windows in an array that was cut before",
        _cropped_windows,
        (whole(1, 9, most=1000, dtype="int32", seed=9),),
        same_bits(_cropped_windows_by_hand),
    ),
    jitted(
        "convolution-cropped",
        "a convolution with negative padding in front",
        _cropped_convolution,
        (_IMAGE,),
        same_bits(lambda x: [np.pad(x[:, :, 5:], ((0, 0), (0, 0), (0, 1), (0, 0)))]),
    ),
    jitted(
        "loop-steps",
        "loops whose step does not divide the distance",
        _stepped_loops,
        (whole(1, most=9, dtype="int32", seed=11),),
        same_bits(_stepped_loops_by_hand),
    ),
    jitted(
        "angle-of-zeros",
        "the angle of a zero that the compiler finds out is zero",
        _angle_of_zeros,
        (whole(5, most=9, seed=10),),
        same_bits(lambda x: [np.zeros((2, len(x)))]),
    ),
    jitted(
        "inverse-past-overflow",
        "the inverse of what is infinite is infinite, and not what it began with",
        _inverses,
        (floats(89.0, _LARGEST),),
        lambda _: exactly_these(np.inf, np.inf, np.nan)(),
    ),
    jitted(
        "extrema-of-nan",
        "the smallest and the largest of numbers with a NaN is NaN, however many they are",
        _extrema,
        _with_nans,
        same_bits(_all_nan),
    ),
    Case(
        id="reductions-of-rank-8",
        claim="products summed along each of seven and eight axes, in a process of their own",
        program=_reductions_of_many_axes,
        expected=exactly_these(0),
        compiles={},
        unsupported=_not_on_a_cpu,
    ),
)
