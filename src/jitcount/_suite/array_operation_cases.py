"""Every operation that moves, sorts or reduces arrays: all widths, sizes, and indices out of range.

A long result is returned as a checksum: the sum of its bits, each times its own odd number, in
uint32. What an unstable sort does with equal keys is in none of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from jitcount._numerics.expected import ELEMENTWISE, exactly, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.arguments import LONG
from jitcount._suite.data import spread, whole
from jitcount._suite.jitted import jitted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._numerics.expected import Expected
    from jitcount._suite.case import Case

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

# Types of each width, and truth values.
_WIDTHS = (np.dtype("float32"), np.dtype("int32"), _BFLOAT16, np.dtype("uint8"), np.dtype("bool"))


def numbers(dtype: np.dtype, *shape: int, seed: int = 40) -> np.ndarray:
    """Numbers that every type holds, few of them equal; of truth values no pattern."""
    drawn = spread(*shape, dtype="float64", seed=seed)
    if dtype.kind == "b":
        return drawn > 0
    return np.floor((drawn + 0.5) * 250).astype(dtype)


def _all(found: Sequence[np.ndarray]) -> list[Expected]:
    return [exactly(np.array(one)) for one in found]


# --- Moving ---------------------------------------------------------------------------------------


def _moved(x: Any) -> list[Any]:
    """Each way to move an array, by its primitive."""
    value = x[0, 0]
    return [
        lax.slice(x, (1, 3), (8, 128), (2, 5)),
        lax.slice(x, (8, 0), (9, 129)),
        lax.slice(x, (4, 5), (4, 9)),
        lax.rev(x, (0,)),
        lax.rev(x, (0, 1)),
        lax.transpose(x, (1, 0)),
        lax.transpose(lax.reshape(x, (3, 3, 129)), (2, 0, 1)),
        lax.reshape(x, (129, 9)),
        lax.reshape(x, (27, 43), (1, 0)),
        lax.squeeze(lax.reshape(x, (9, 1, 129, 1)), (1, 3)),
        lax.broadcast_in_dim(x, (2, 9, 3, 129), (1, 3)),
        lax.broadcast_in_dim(value, (7,), ()),
        lax.concatenate([x, x[3:5], x[:0]], 0),
        lax.concatenate([x[:, :7], x, x[:, 60:]], 1),
        lax.pad(x, value, ((1, 2, 0), (0, 3, 2))),
        lax.pad(x, value, ((-1, -2, 0), (-3, 1, 1))),
        *lax.split(x, (3, 5, 1), axis=0),
        getattr(lax, "tile", jnp.tile)(x[:3], (2, 3)),
        getattr(lax, "stack", jnp.stack)([x[0], x[3], x[1]], 1),
        *_unstacked(lax.transpose(x[:2], (1, 0))),
        jnp.copy(x),
        lax.select_n(x[:1, ::-1] > x[:1], x[1:2], x[2:3]),
    ]


def _unstacked(x: Any) -> Any:
    return lax.unstack(x, 1) if hasattr(lax, "unstack") else jnp.unstack(x, axis=1)


def _moved_by_hand(x: np.ndarray) -> list[np.ndarray]:
    padded = np.full((12, 388), x[0, 0])
    padded[1:10, 0:385:3] = x
    cropped = np.full((6, 255), x[0, 0])
    cropped[:, :254] = np.insert(x[1:7], slice(1, 129), x[0, 0], axis=1)[:, 3:]
    return [
        x[1:8:2, 3:128:5],
        x[8:9],
        x[4:4, 5:9],
        x[::-1],
        x[::-1, ::-1],
        x.T,
        x.reshape(3, 3, 129).transpose(2, 0, 1),
        x.reshape(129, 9),
        x.T.reshape(27, 43),
        x,
        np.broadcast_to(x[None, :, None], (2, 9, 3, 129)),
        np.full(7, x[0, 0]),
        np.concatenate([x, x[3:5]]),
        np.concatenate([x[:, :7], x, x[:, 60:]], 1),
        padded,
        cropped,
        *np.split(x, (3, 8)),
        np.tile(x[:3], (2, 3)),
        np.stack([x[0], x[3], x[1]], 1),
        *(x[0], x[1]),
        x,
        np.where(x[:1, ::-1] > x[:1], x[2:3], x[1:2]),
    ]


# Starts before, at, beside and past the ends, and the largest there are.
_STARTS = np.array(
    [
        -(2**31),
        -1000,
        -130,
        -129,
        -128,
        -3,
        -1,
        0,
        1,
        63,
        123,
        124,
        125,
        128,
        129,
        130,
        200,
        2**31 - 1,
    ],
    np.int32,
)
_LENGTH = 5


def _sliced(x: Any, update: Any, starts: Any, narrow: Any, unsigned: Any) -> list[Any]:
    """Slices that begin anywhere, and arrays with some written over from anywhere."""
    zero = jnp.zeros((), starts.dtype)
    return [
        jnp.stack([lax.dynamic_slice(x, (zero, at), (9, _LENGTH)) for at in starts]),
        jnp.stack([lax.dynamic_slice(x, (at, zero + 7), (4, 1)) for at in starts]),
        jnp.stack([lax.dynamic_slice(x[0], (at,), (_LENGTH,)) for at in narrow]),
        jnp.stack([lax.dynamic_slice(x[0], (at,), (_LENGTH,)) for at in unsigned]),
        jnp.stack([lax.dynamic_update_slice(x[0], update, (at,)) for at in starts]),
        jnp.stack([lax.dynamic_update_slice(x[0], update, (at,)) for at in unsigned]),
        lax.dynamic_slice(x, (starts[3], starts[5]), (9, 129)),
        lax.dynamic_slice(x, (starts[3], starts[5]), (0, 3)),
    ]


def _begin(start: int, size: int, length: int) -> int:
    """Where a slice begins: a negative start counts from the end, then all of it must be inside."""
    return min(max(start + size * (start < 0), 0), size - length)


def _sliced_by_hand(x: np.ndarray, update: np.ndarray, *all_starts: np.ndarray) -> list[np.ndarray]:
    starts, narrow, unsigned = all_starts

    def cut(row: np.ndarray, start: int, length: int) -> np.ndarray:
        at = _begin(int(start), len(row), length)
        return row[at : at + length]

    def written(start: int) -> np.ndarray:
        at = _begin(int(start), 129, len(update))
        return np.concatenate([x[0, :at], update, x[0, at + len(update) :]])

    return [
        np.stack([cut(x.T, at, _LENGTH).T for at in starts]),
        np.stack([cut(x, at, 4)[:, 7:8] for at in starts]),
        np.stack([cut(x[0], at, _LENGTH) for at in narrow]),
        np.stack([cut(x[0], at, _LENGTH) for at in unsigned]),
        np.stack([written(at) for at in starts]),
        np.stack([written(at) for at in unsigned]),
        x,
        x[:0, :3],
    ]


def _of_slices() -> list[np.ndarray]:
    narrow = np.array([0, 1, 3, 100, 124, 125, 127], np.int8)
    unsigned = np.array([0, 1, 124, 125, 129, 2**31, 2**32 - 1], np.uint32)
    some = numbers(np.dtype("float32"), 9, 129)
    return [some, -np.arange(1, 8, dtype=np.float32), _STARTS, narrow, unsigned]


# --- Gathers and scatters -------------------------------------------------------------------------

_MODE = lax.GatherScatterMode
# Rows and columns, each in range, just outside, and far outside.
_WHERE = (
    np.array(
        np.meshgrid(
            [-(2**31), -9, -1, 0, 4, 8, 9, 100, 2**31 - 1],
            [-129, -2, -1, 0, 64, 126, 127, 128, 129, 2**31 - 1],
        )
    )
    .reshape(2, -1)
    .T.astype(np.int32)
)
_WINDOW = 2


def _gathered(x: Any, where: Any) -> list[Any]:
    """Windows of one row and two columns, and whole rows, from anywhere."""
    windows = lax.GatherDimensionNumbers((1,), (0,), (0, 1))
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    inside = jnp.clip(where, 0, np.array([8, 127]))
    gather = partial(lax.gather, x)
    return [
        gather(where, windows, (1, _WINDOW), mode=_MODE.CLIP),
        gather(where, windows, (1, _WINDOW), mode=_MODE.FILL_OR_DROP, fill_value=1),
        gather(inside, windows, (1, _WINDOW), mode=_MODE.PROMISE_IN_BOUNDS),
        gather(where[::10, :1], rows, (1, 129), mode=_MODE.CLIP),
        gather(where[:0], windows, (1, _WINDOW), mode=_MODE.CLIP),
    ]


def _gathered_by_hand(x: np.ndarray, where: np.ndarray) -> list[np.ndarray]:
    wide = where.astype(np.int64)
    inside = np.clip(wide, 0, [8, 129 - _WINDOW])
    is_inside = (inside == wide).all(1)
    columns = inside[:, 1:] + np.arange(_WINDOW)
    found = x[inside[:, :1], columns]
    return [
        found,
        np.where(is_inside[:, None], found, np.array(1, x.dtype)),
        found,
        x[np.clip(wide[::10, 0], 0, 8)],
        found[:0],
    ]


def _scattered(x: Any, where: Any, distinct: Any, updates: Any) -> list[Any]:
    """Windows written, added, multiplied; what is not wholly inside is dropped, or moved inside."""
    windows = lax.ScatterDimensionNumbers((1,), (0,), (0, 1))
    drop: dict[str, Any] = {"mode": _MODE.FILL_OR_DROP}
    clip: dict[str, Any] = {"mode": _MODE.CLIP}
    new = updates[: len(distinct)]
    subtract = getattr(lax, "scatter_sub", None) or (
        lambda a, i, u, d, **m: lax.scatter_add(a, i, -u, d, **m)
    )
    return [
        lax.scatter(x, distinct, new, windows, **drop, unique_indices=True),
        lax.scatter(x, distinct, new, windows, **clip),
        lax.scatter_add(x, where, updates, windows, **drop),
        lax.scatter_add(x, where, updates, windows, **clip),
        subtract(x, where, updates, windows, **drop),
        lax.scatter_mul(x, where, updates, windows, **drop),
        lax.scatter_min(x, where, updates, windows, **drop),
        lax.scatter_max(x, where, updates, windows, **clip),
        lax.scatter_add(x, where[:0], updates[:0], windows, **drop),
    ]  # fmt: skip


def _scattered_by_hand(
    x: np.ndarray, where: np.ndarray, distinct: np.ndarray, updates: np.ndarray
) -> list[np.ndarray]:
    def put(places: np.ndarray, combine: Callable[[Any, Any], Any], *, moved: bool) -> np.ndarray:
        result = x.copy()
        for (row, column), update in zip(places.astype(np.int64), updates, strict=False):
            at = np.clip([row, column], 0, [8, 129 - _WINDOW])
            if moved or (at == [row, column]).all():
                part = result[at[0], at[1] : at[1] + _WINDOW]
                with np.errstate(over="ignore"):
                    part[:] = combine(part, update)
        return result

    def last(_: Any, update: Any) -> Any:
        return update

    return [
        put(distinct, last, moved=False),
        put(distinct, last, moved=True),
        put(where, np.add, moved=False),
        put(where, np.add, moved=True),
        put(where, np.subtract, moved=False),
        put(where, np.multiply, moved=False),
        put(where, np.minimum, moved=False),
        put(where, np.maximum, moved=True),
        x,
    ]


def _of_scatters(dtype: np.dtype) -> list[np.ndarray]:
    where = np.concatenate([_WHERE, [[4, 64], [8, 126], [8, 126]]]).astype(np.int32)
    distinct = np.array([[0, 0], [8, 127], [9, 3], [4, 60], [2, -5], [3, 129]], np.int32)
    # Powers of two with signs, so that products are exact; a few of them only.
    updates = np.resize(np.array([1, 2, -1, 1, -2, 1, 1, 4, -1], dtype), (len(where), _WINDOW))
    return [whole(9, 129, most=8, seed=44).astype(dtype), where, distinct, updates]


# --- Reductions and running ones ------------------------------------------------------------------


def _reductions(x: Any) -> list[Any]:
    """Each reduction over all of an array, over nothing of it, and over its first axis."""
    every = tuple(range(x.ndim))
    ways = (every, (), (0,)) if x.ndim == 2 else (every, ())
    if x.dtype == bool:
        return [
            each(x, axes)
            for each in (lax.reduce_and, lax.reduce_or, lax.reduce_xor)
            for axes in ways
        ]
    found = []
    for axes in ways:
        found += [lax.reduce_sum(x, axes), lax.reduce_max(x, axes), lax.reduce_min(x, axes)]
        found += [lax.reduce_prod(_factors(jnp, x), axes)]
        if x.dtype.kind in "iu":
            found += [each(x, axes) for each in (lax.reduce_and, lax.reduce_or, lax.reduce_xor)]
    if x.size:
        flat = x if x.ndim == 2 else x.reshape(-1)
        found += [lax.argmax(flat, 0, np.int32), lax.argmin(flat, 0, np.int32)]
        found += [lax.argmax(x.reshape(-1), 0, np.int32)]
    return found


def _factors(module: Any, x: Any) -> Any:
    """Ones and twos, or signs if there are many: their product is exact."""
    return module.where(x > x.dtype.type(125), 1, 2 if x.size < 8 else -1).astype(x.dtype)


def _reductions_by_hand(x: np.ndarray) -> list[np.ndarray]:
    every = tuple(range(x.ndim))
    ways: tuple[tuple[int, ...], ...] = (every, (), (0,)) if x.ndim == 2 else (every, ())
    if x.dtype == bool:
        folds = (np.logical_and, np.logical_or, np.logical_xor)
        return [np.asarray(_folded_over(fold, x, axes)) for fold in folds for axes in ways]
    is_float = x.dtype.kind not in "iu"
    wide = x.astype(np.float64 if is_float else np.int64)
    signs = _factors(np, x).astype(wide.dtype)
    low, high = (-np.inf, np.inf) if is_float else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    found: list[np.ndarray] = []
    for axes in ways:
        results = [wide.sum(axes), wide.max(axes, initial=low), wide.min(axes, initial=high)]
        results += [signs.prod(axes)]
        if not is_float:
            bits = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
            results += [_folded_over(fold, x, axes) for fold in bits]
        with np.errstate(over="ignore"):
            found += [np.asarray(one).astype(x.dtype) for one in results]
    if x.size:
        found += [np.asarray(find(wide, 0), np.int32) for find in (np.argmax, np.argmin)]
        found += [np.asarray(wide.argmax(), np.int32)]
    return found


def _folded_over(fold: Any, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """A ufunc's reduction, which takes one axis at a time for some types."""
    if not axes:
        return x
    return fold.reduce(x if axes == (0,) else x.ravel())


# Empty, one, around tiles of 8 and 128, and two axes; the sums of bfloat16 stay below 256.
_SHAPES = ((0,), (1,), (7,), (8,), (9,), (127,), (129,), (33, 131), (3, 0))
_FEW_SHAPES = ((0,), (1,), (9,), (33, 131))


def _to_reduce(dtype: np.dtype) -> list[np.ndarray]:
    shapes = _SHAPES if dtype == np.float32 else _FEW_SHAPES
    found = []
    for place, shape in enumerate(shapes):
        x = numbers(dtype, *shape, seed=50 + place)
        if dtype == _BFLOAT16:
            x = np.where(np.arange(x.size).reshape(shape) % 97 == 0, 3, 0).astype(dtype)
        if dtype.kind == "b" and x.size > 2:
            x = np.arange(x.size).reshape(shape) == x.size - 1
        found.append(x)
    return [*found, *([~one for one in found] if dtype.kind == "b" else [])]


_ALL_OF = np.array([-np.inf, np.inf, np.nan, 0.0, -3.4e38, 1.0], np.float32)


def _special_rows() -> list[np.ndarray]:
    """Rows of one special only, and rows with one special in front, in the middle, at the end."""
    rows = [np.full(129, value) for value in _ALL_OF]
    for value in (np.nan, np.inf, -np.inf):
        for place in (0, 64, 128):
            row = np.arange(1.0, 130.0)
            row[place] = value
            rows.append(row)
    both = np.arange(1.0, 130.0)
    both[[5, 127]] = np.inf, -np.inf
    return [np.array([*rows, both], np.float32)]


def _of_rows(x: Any) -> list[Any]:
    return [
        lax.reduce_max(x, (1,)),
        lax.reduce_min(x, (1,)),
        lax.reduce_sum(x, (1,)),
        lax.reduce_prod(x[:, :20], (1,)),
        lax.argmax(x, 1, np.int32),
        lax.argmin(x, 1, np.int32),
        lax.cummax(x, 1),
        lax.cummin(x, 1),
        lax.cumsum(x, 1),
    ]


def _first_of(x: np.ndarray, find: Callable[..., np.ndarray]) -> np.ndarray:
    """The place of the first NaN, or else of the first that is largest or smallest."""
    is_nan = np.isnan(x)
    return np.where(is_nan.any(1), is_nan.argmax(1), find(x, 1)).astype(np.int32)


def _of_rows_by_hand(x: np.ndarray) -> list[np.ndarray]:
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        return [
            x.max(1),
            x.min(1),
            wide.sum(1).astype(np.float32),
            np.where(np.abs(p := wide[:, :20].prod(1)) > 3.4e38, np.inf * np.sign(p), p).astype(
                np.float32
            ),
            _first_of(x, np.argmax),
            _first_of(x, np.argmin),
            np.maximum.accumulate(x, 1),
            np.minimum.accumulate(x, 1),
            np.cumsum(wide, 1).astype(np.float32),
        ]


_RUNNING: tuple[tuple[Callable[..., Any], Any], ...] = (
    (lax.cumsum, np.add),
    (lax.cumprod, np.multiply),
    (lax.cummax, np.maximum),
    (lax.cummin, np.minimum),
)
_RUNS = (0, 9, 129)


def _running(*arrays: Any) -> list[Any]:
    return [each(x, reverse=back) for x in arrays for each, _ in _RUNNING for back in (False, True)]


def _running_by_hand(*arrays: np.ndarray) -> list[np.ndarray]:
    found = []
    for x in arrays:
        for _, each in _RUNNING:
            found += [each.accumulate(x), each.accumulate(x[::-1])[::-1]]
    return found


def _to_run() -> list[np.ndarray]:
    """Signs with a few twos and halves among them: running products stay exact."""
    floats = [whole(length, most=1, seed=60) for length in _RUNS]
    for x in floats:
        x[3::32] *= 2
    return [*floats, *(whole(length, most=1, seed=61, dtype="int32") for length in _RUNS[2:])]


def _cumulative_logsumexp(x: np.ndarray) -> list[Expected]:
    found = []
    for one in (x, x[::-1]):
        values = np.logaddexp.accumulate(one.astype(np.float64))
        values = values if one is x else values[::-1]
        # Each is a logarithm of a sum of exponentials, which is relative to the largest.
        off = 2.0**-24 * 8 * (np.abs(values) + np.log2(len(x)) + 2)
        found.append(
            within(ELEMENTWISE, Rounded(values, 4 * off, off, np.abs(values) + 1, "float32"))
        )
    return found


def _largest_and_place(x: Any) -> list[Any]:
    """A reduction by a function of one's own, of two arrays at once: the largest and its place."""

    def larger(a: Any, b: Any) -> Any:
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    places = lax.broadcasted_iota(np.int32, x.shape, 1)
    start = np.float32(-np.inf), np.int32(2**31 - 1)
    return list(lax.reduce((x, places), start, larger, (1,)))


# --- Sorting --------------------------------------------------------------------------------------


def _sorts(*arrays: Any) -> list[Any]:
    """Keys alone, stably and not; with what belongs to them; by two keys."""
    keys, pairs, distinct, rows = arrays[:-4], arrays[-4], arrays[-3], arrays[-2]
    second = arrays[-1]
    places = lax.iota(np.int32, pairs.shape[0])
    return [
        *(lax.sort(x, dimension=0, is_stable=stable) for x in keys for stable in (True, False)),
        *lax.sort((pairs, places), num_keys=1, is_stable=True),
        *lax.sort((distinct, places), num_keys=1, is_stable=False),
        lax.sort(rows, dimension=0),
        lax.sort(rows, dimension=1, is_stable=False),
        *lax.sort((pairs, second, places), num_keys=2, is_stable=True),
    ]


def _sorts_by_hand(*arrays: np.ndarray) -> list[np.ndarray]:
    keys, pairs, distinct, rows = arrays[:-4], arrays[-4], arrays[-3], arrays[-2]
    second = arrays[-1]
    order, other = (np.argsort(one, kind="stable") for one in (pairs, distinct))
    both = np.lexsort((second, pairs))
    return [
        *(np.sort(x) for x in keys for _ in range(2)),
        *(pairs[order], order.astype(np.int32)),
        *(distinct[other], other.astype(np.int32)),
        np.sort(rows, 0),
        np.sort(rows, 1),
        *(pairs[both], second[both], both.astype(np.int32)),
    ]


def _to_sort() -> list[np.ndarray]:
    specials = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1.2e-38, -1.2e-38, np.nan, 0.5, 0.0])
    drawn = spread(129, seed=62).astype(np.float32)
    drawn[::13] = specials
    keys = [
        drawn, drawn[:7], drawn[:1], drawn[:0],
        *(numbers(dtype, 129, seed=63) for dtype in _WIDTHS[1:]),
        (whole(129, most=2**20, dtype="int32", seed=64) * np.int32(2047)),
    ]  # fmt: skip
    pairs, second = whole(257, most=3, seed=65), whole(257, most=2, dtype="int32", seed=66)
    distinct = np.argsort(spread(257, seed=67)).astype(np.int32) - 100
    return [*keys, pairs, distinct, numbers(np.dtype("float32"), 9, 33, seed=68), second]


_TOPS = (1, 5, 129)


def _tops(*arrays: Any) -> list[Any]:
    return [one for x in arrays for k in _TOPS for one in lax.top_k(x, k)]


def _tops_by_hand(*arrays: np.ndarray) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for x in arrays:
        order = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")
        for k in _TOPS:
            places = order[..., :k]
            found += [np.take_along_axis(x, places, -1), places.astype(np.int32)]
    return found


def _to_top() -> list[np.ndarray]:
    ties = whole(5, 129, most=6, seed=70)
    far = np.argsort(spread(129, seed=71)).astype(np.float32) * np.float32(2.0**100)
    far[[3, 77]] = np.inf, -np.inf
    return [ties, far, whole(129, most=2**20, dtype="int32", seed=72) * np.int32(2000)]


# --- Windows --------------------------------------------------------------------------------------

_WINDOWS: tuple[dict[str, Any], ...] = (
    {"window_dimensions": (3,), "window_strides": (2,), "padding": ((1, 2),)},
    {
        "window_dimensions": (5,),
        "window_strides": (1,),
        "padding": ((0, 0),),
        "window_dilation": (3,),
    },
    {
        "window_dimensions": (2,),
        "window_strides": (3,),
        "padding": ((2, 1),),
        "base_dilation": (2,),
    },
)
_FOLDS: tuple[tuple[Any, Callable[..., Any], Callable[..., Any]], ...] = (
    (0, lax.add, np.sum),
    (-np.inf, lax.max, np.max),
    (np.inf, lax.min, np.min),
    (1, lax.mul, np.prod),
)


def _identity(start: float, dtype: np.dtype) -> Any:
    if np.isinf(start) and dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(info.min if start < 0 else info.max, dtype)
    return np.array(start, dtype)


def _windows(x: Any, whole_numbers: Any) -> list[Any]:
    found = [
        lax.reduce_window(one, _identity(start, one.dtype), fold, **how)
        for one in (x, whole_numbers)
        for start, fold, _ in _FOLDS
        for how in _WINDOWS
    ]

    def pooled(one: Any) -> Any:
        # As an image: for one axis, padded, XLA:TPU has no gradient ("currently not implemented").
        image, none = one.reshape(1, -1, 1, 1), (0, 0)
        padding = (none, (1, 1), none, none)
        pools = lax.reduce_window(image, -np.inf, lax.max, (1, 3, 1, 1), (1, 2, 1, 1), padding)
        return pools.reshape(-1)

    steps = 1 + jnp.arange(x.shape[0], dtype=x.dtype)
    values, gradient = jax.vjp(pooled, x)
    _, tangent = jax.jvp(pooled, (x,), (steps,))
    return [*found, *gradient(1 + jnp.arange(values.shape[0], dtype=x.dtype)), tangent]


def _windows_by_hand(x: np.ndarray, whole_numbers: np.ndarray) -> list[np.ndarray]:
    found = []
    for one in (x, whole_numbers):
        for start, _, fold in _FOLDS:
            for how in _WINDOWS:
                low, high = how["padding"][0]
                every = how.get("base_dilation", (1,))[0]
                step = how.get("window_dilation", (1,))[0]
                value = _identity(start, one.dtype)
                spaced = np.full((len(one) - 1) * every + 1, value)
                spaced[::every] = one
                padded = np.concatenate([np.full(low, value), spaced, np.full(high, value)])
                size = how["window_dimensions"][0]
                begins = range(0, len(padded) - (size - 1) * step, how["window_strides"][0])
                parts = [fold(padded[at : at + size * step : step]) for at in begins]
                found.append(np.array(parts, one.dtype))
    padded = np.concatenate([[-np.inf], x, [-np.inf]])
    places = [at - 1 + int(np.argmax(padded[at : at + 3])) for at in range(0, len(padded) - 2, 2)]
    gradient = np.bincount(places, 1.0 + np.arange(len(places)), len(x))
    return [*found, gradient.astype(x.dtype), (1.0 + np.array(places)).astype(x.dtype)]


# --- Past 2**20 -----------------------------------------------------------------------------------


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def checksum(x: Any) -> Any:
    """The sum of an array's bits, each times an odd number of its own, modulo 2**32."""
    bits = x if x.dtype.kind in "bu" else lax.bitcast_convert_type(x, _UNSIGNED[x.dtype.itemsize])
    flat = bits.reshape(-1).astype(np.uint32)
    return lax.reduce_sum(flat * (2 * lax.iota(np.uint32, flat.shape[0]) + 1), (0,))


def checksum_by_hand(x: np.ndarray) -> np.ndarray:
    """The same as `checksum`, by NumPy."""
    bits = np.ascontiguousarray(x).view(_UNSIGNED[x.dtype.itemsize]).ravel().astype(np.uint64)
    odd = 2 * np.arange(len(bits), dtype=np.uint64) + 1
    return np.asarray(np.sum(bits * odd & np.uint64(2**32 - 1)) & np.uint64(2**32 - 1), np.uint32)


_ROWS, _COLUMNS = 1025, 1025  # together more than 2**20


def _long_moves(x: Any, places: Any, small: Any) -> list[Any]:
    square = x[: _ROWS * _COLUMNS].reshape(_ROWS, _COLUMNS)
    moved = [
        lax.rev(x, (0,)),
        lax.transpose(square, (1, 0)),
        lax.concatenate([x, x[:77]], 0),
        lax.pad(x, np.float32(3), ((5, 6, 0),)),
        lax.slice(x, (3,), (x.shape[0],), (1,)),
        lax.broadcast_in_dim(small, (1025, 1031), (1,)),
        x[places],
        x.at[places].set(1.0, unique_indices=True),
        lax.dynamic_update_slice(x, small, (places[0],)),
        lax.dynamic_slice(x, (places[1],), (2**20 + 3,)),
        lax.select_n(x > 100, x, -x),
        lax.broadcasted_iota(np.float32, (1025, 1027), 0),
        lax.cummax(x),
    ]
    ordered = lax.sort((x.astype(np.int32), lax.iota(np.int32, x.shape[0])), num_keys=1)
    reduced = [lax.reduce_max(x, (0,)), lax.argmax(x, 0, np.int32), lax.argmin(x, 0, np.int32)]
    reduced += [lax.reduce_sum(square, (1,)), lax.reduce_sum(square, (0,)), lax.reduce_min(x, (0,))]
    whole_numbers = x.astype(np.int32)
    reduced += [
        each(whole_numbers, (0,)) for each in (lax.reduce_sum, lax.reduce_xor, lax.reduce_or)
    ]
    return [*(checksum(one) for one in (*moved, *ordered)), *reduced]


def _long_moves_by_hand(x: np.ndarray, places: np.ndarray, small: np.ndarray) -> list[np.ndarray]:
    square = x[: _ROWS * _COLUMNS].reshape(_ROWS, _COLUMNS)
    written = x.copy()
    written[places] = 1.0
    overwritten = x.copy()
    at = min(int(places[0]), len(x) - len(small))
    overwritten[at : at + len(small)] = small
    begin = min(int(places[1]), len(x) - 2**20 - 3)
    ints = x.astype(np.int32)
    order = np.argsort(ints, kind="stable")
    moved = [
        x[::-1], square.T, np.concatenate([x, x[:77]]), np.pad(x, (5, 6), constant_values=3), x[3:],
        np.broadcast_to(small, (1025, 1031)), x[places], written, overwritten,
        x[begin : begin + 2**20 + 3], np.where(x > 100, -x, x),
        np.broadcast_to(np.arange(1025, dtype=np.float32)[:, None], (1025, 1027)),
        np.maximum.accumulate(x), ints[order], order.astype(np.int32),
    ]  # fmt: skip
    reduced = [
        x.max(),
        np.int32(x.argmax()),
        np.int32(x.argmin()),
        square.sum(1, dtype=np.float64).astype(np.float32),
        square.sum(0, dtype=np.float64).astype(np.float32),
        x.min(),
        ints.sum(dtype=np.int64).astype(np.int32),
        np.bitwise_xor.reduce(ints),
        np.bitwise_or.reduce(ints),
    ]
    return [*map(checksum_by_hand, moved), *(np.asarray(one) for one in reduced)]


def _long_of_width(x: Any, places: Any) -> list[Any]:
    """The moves again, for the other widths."""
    square = x[: _ROWS * _COLUMNS].reshape(_ROWS, _COLUMNS)
    moved = [
        lax.rev(x, (0,)),
        lax.transpose(square, (1, 0)),
        lax.concatenate([x, x[:77]], 0),
        lax.pad(x, x[0], ((5, 6, 0),)),
        lax.slice(x, (3,), (x.shape[0],), (1,)),
        lax.broadcast_in_dim(x[:1031], (1025, 1031), (1,)),
        jnp.tile(x[places], 1025),
        x.at[jnp.tile(places, 1025)].get(mode="clip"),
        lax.sort(x),
    ]
    return [checksum(one) for one in moved]


def _long_of_width_by_hand(x: np.ndarray, places: np.ndarray) -> list[np.ndarray]:
    square = x[: _ROWS * _COLUMNS].reshape(_ROWS, _COLUMNS)
    padded = np.concatenate([np.full(5, x[0]), x, np.full(6, x[0])])
    moved = [
        x[::-1],
        square.T,
        np.concatenate([x, x[:77]]),
        padded,
        x[3:],
        np.broadcast_to(x[:1031], (1025, 1031)),
        np.tile(x[places], 1025),
        np.tile(x[places], 1025),
        np.sort(x.astype(np.float32)).astype(x.dtype),
    ]
    return [checksum_by_hand(one) for one in moved]


def _long_of(dtype: np.dtype) -> list[np.ndarray]:
    x = numbers(dtype, LONG + 2**12, seed=82)
    return [x, np.arange(5, 2**20, 1023).astype(np.int32)]


def _long_arrays() -> list[np.ndarray]:
    length = LONG + 2**12
    x = whole(length, most=120, seed=80)
    x[-3], x[-2] = 200.0, -200.0  # the largest and the smallest are in the last tile
    places = np.concatenate([[length - 9, 2**12], np.arange(5, 2**20, 1021)]).astype(np.int32)
    return [x, places, whole(1031, most=100, seed=81)]


def _case(
    name: str,
    claim: str,
    compute: Callable[..., list[Any]],
    data: Any,
    by_hand: Callable[..., Sequence[np.ndarray]],
) -> Case:
    return jitted(f"op-{name}", claim, compute, data, lambda *arrays: _all(by_hand(*arrays)))


def _for_each(compute: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The results of all arrays, one after another."""
    return lambda *arrays: [found for x in arrays for found in compute(x)]


ARRAY_OPERATION_CASES = (
    *(
        _case(
            f"moves-{dtype.name}",
            f"{dtype.name} cut, turned, reshaped, repeated, padded, put together",
            _moved,
            lambda dtype=dtype: [numbers(dtype, 9, 129)],
            _moved_by_hand,
        )
        for dtype in _WIDTHS
    ),
    _case(
        "slices",
        "slices read and written at places that programs compute: moved inside if they are not",
        _sliced,
        _of_slices,
        _sliced_by_hand,
    ),
    *(
        _case(
            f"gather-{dtype.name}",
            f"windows of {dtype.name} from places in range, beside it and far off",
            _gathered,
            lambda dtype=dtype: [numbers(dtype, 9, 129), _WHERE],
            _gathered_by_hand,
        )
        for dtype in _WIDTHS
    ),
    *(
        _case(
            f"scatter-{dtype}",
            f"windows of {dtype} written and combined at places in range, beside it and far off",
            _scattered,
            lambda dtype=dtype: _of_scatters(np.dtype(dtype)),
            _scattered_by_hand,
        )
        for dtype in ("float32", "int32")
    ),
    *(
        _case(
            f"reduce-{dtype.name}",
            f"each reduction of {dtype.name}, over everything and nothing, of sizes around tiles",
            _for_each(_reductions),
            lambda dtype=dtype: _to_reduce(dtype),
            _for_each(_reductions_by_hand),
        )
        for dtype in _WIDTHS
    ),
    _case(
        "reduce-specials",
        "reductions of infinities only, of NaN, and with one of them anywhere",
        _of_rows,
        _special_rows,
        _of_rows_by_hand,
    ),
    _case(
        "reduce",
        "a reduction by a function of two values",
        _largest_and_place,
        lambda: [whole(9, 129, most=3, seed=56)],
        lambda x: [x.max(1), x.argmax(1).astype(np.int32)],
    ),
    _case(
        "running",
        "running sums, products and extremes, forward and backward, of sizes around tiles",
        _running,
        _to_run,
        _running_by_hand,
    ),
    jitted(
        "op-cumlogsumexp",
        "running logarithms of sums of exponentials, forward and backward",
        lambda x: [lax.cumlogsumexp(x), lax.cumlogsumexp(x, reverse=True)],
        lambda: [spread(129, seed=57) * 160],
        _cumulative_logsumexp,
    ),
    _case(
        "sort",
        "sorts, stable and not, of every width, of infinities and NaN, by one key and by two",
        _sorts,
        _to_sort,
        _sorts_by_hand,
    ),
    _case("top-k", "the largest, and of equal ones the first", _tops, _to_top, _tops_by_hand),
    _case(
        "windows",
        "windows folded by sums, products and extremes, with strides and holes; their gradients",
        _windows,
        lambda: [
            (np.argsort(spread(35, seed=73)) % 4 + np.float32(1)).astype(np.float32)
            + np.arange(35, dtype=np.float32) / 64,
            whole(35, most=3, dtype="int32", seed=74),
        ],
        _windows_by_hand,
    ),
    *(
        _case(
            f"long-{dtype.name}",
            f"more than 2**20 numbers of {dtype.name} moved and sorted",
            _long_of_width,
            lambda dtype=dtype: _long_of(dtype),
            _long_of_width_by_hand,
        )
        for dtype in _WIDTHS[1:]
    ),
    _case(
        "long",
        "more than 2**20 numbers moved, sorted and reduced",
        _long_moves,
        _long_arrays,
        _long_moves_by_hand,
    ),
)
