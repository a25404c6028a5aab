"""Reductions and scans of whole numbers: equal to the bit, in any order, on any backend.

Shapes fill no tile, or exceed one by one. Partial sums stay below 2**24: what is
lost, doubled, masked or put elsewhere shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import weights, whole
from jitcount._suite.jitted import jitted, same_bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHAPES = ((7, 127), (9, 1000), (3, 5, 257))


def _filled(*shape: int, seed: int = 1) -> np.ndarray:
    return weights(int(np.prod(shape)), seed=seed).reshape(shape)


_TABLES = [_filled(*shape) for shape in _SHAPES]

# No factor is one, so that each counts.
_FACTORS = np.exp2(np.sign(whole(9, 130, seed=2))) * np.sign(whole(9, 130, seed=3))
_TIES = whole(9, 257, most=2, seed=4)
# Each row of 128 holds numbers and their mirror image, so that its mean is 3.
_HALF = whole(8, 64, most=60, seed=9)
_AROUND_THREE = (np.concatenate([_HALF, -_HALF[:, ::-1]], 1) + 3).ravel()
_WITH_NAN = np.where(np.arange(257) == 255, np.nan, _TIES).astype(np.float32)


def _over_axes(reduce: str, tables: Sequence[np.ndarray], module: object) -> Iterator[np.ndarray]:
    function = getattr(module, reduce)
    for table in tables:
        yield from (function(table, axis) for axis in (*range(table.ndim), None))


REDUCTIONS = (
    jitted(
        "sum-axes-whole",
        "sums along each axis of shapes that fill no tile",
        lambda *tables: list(_over_axes("sum", tables, jnp)),
        _TABLES,
        same_bits(lambda *tables: list(_over_axes("sum", tables, np))),
    ),
    jitted(
        "mean-whole",
        "means of 1,024 and of 64 whole numbers: a division by a power of two is exact",
        lambda x: [jnp.mean(x, 0), jnp.mean(x, 1)],
        (whole(64, 1024, most=64, seed=5),),
        same_bits(lambda x: [x.mean(0), x.mean(1)]),
    ),
    jitted(
        "var-whole",
        "variances of 1,024 whole numbers around 3: all that is rounded is exact",
        lambda x: [jnp.var(x), jnp.var(x.reshape(8, 128), 1), jnp.mean(x)],
        (_AROUND_THREE,),
        same_bits(lambda x: [x.var(), x.reshape(8, 128).var(1), x.mean()]),
    ),
    jitted(
        "prod-whole",
        "products of twos and halves of both signs",
        lambda x: [jnp.prod(x, 0), jnp.prod(x[:, :100], 1)],
        (_FACTORS.astype(np.float32),),
        same_bits(lambda x: [x.prod(0), x[:, :100].prod(1)]),
    ),
    jitted(
        "max-of-negatives",
        "the largest of negative numbers, the smallest of positive ones: padding is no number",
        lambda *tables: [
            *_over_axes("max", [-x for x in tables], jnp),
            *_over_axes("min", tables, jnp),
        ],
        _TABLES[:2],
        same_bits(
            lambda *tables: [
                *_over_axes("max", [-x for x in tables], np),
                *_over_axes("min", tables, np),
            ]
        ),
    ),
    jitted(
        "max-nan",
        "of numbers with a NaN among them the largest and the smallest are NaN, in that row only",
        lambda x: [jnp.max(x, 0), jnp.min(x, 0), jnp.max(x, 1), jnp.min(x)],
        (_WITH_NAN,),
        same_bits(lambda x: [x.max(0), x.min(0), x.max(1), x.min()]),
    ),
    jitted(
        "argmax-ties",
        "of equal ones the first is meant, and of NaNs the first",
        lambda x, y: [
            f(z, axis).astype("int32")
            for z in (x, y)
            for f in (jnp.argmax, jnp.argmin)
            for axis in (0, 1)
        ],
        (_TIES, _WITH_NAN),
        same_bits(
            lambda x, y: [
                f(z, axis) for z in (x, y) for f in (np.argmax, np.argmin) for axis in (0, 1)
            ]
        ),
    ),
    jitted(
        "any-all",
        "one true value in a row that fills no tile is found, and one false one",
        lambda x: [jnp.any(x, 0), jnp.any(x, 1), jnp.all(~x, 0), jnp.all(~x, 1)],
        (np.eye(129, 200, 71, dtype=bool),),
        same_bits(lambda x: [x.any(0), x.any(1), (~x).all(0), (~x).all(1)]),
    ),
    jitted(
        "reduce-window-whole",
        "sums and largest ones of windows, with strides, holes and padding",
        lambda x: [
            lax.reduce_window(-x, -jnp.inf, lax.max, (3, 4), (2, 3), "SAME"),
            lax.reduce_window(x, 0.0, lax.add, (3, 5), (1, 2), "SAME"),
            lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "VALID", window_dilation=(1, 2)),
        ],
        (_filled(9, 131),),
        same_bits(
            lambda x: [
                _windows(-x, (3, 4), -np.inf).max((-2, -1))[::2, ::3],
                _windows(x, (3, 5), 0).sum((-2, -1))[:, ::2],
                x[:, :-4] + x[:, 2:-2] + x[:, 4:],
            ]
        ),
    ),
)


def _windows(x: np.ndarray, window: tuple[int, int], padding: float) -> np.ndarray:
    """The window around each place; "SAME" puts less of its padding in front."""
    strides = (2, 3) if window == (3, 4) else (1, 2)
    widths = []
    for length, size, stride in zip(x.shape, window, strides, strict=True):
        missing = max((-(-length // stride) - 1) * stride + size - length, 0)
        widths.append((missing // 2, missing - missing // 2))
    padded = np.pad(x, widths, constant_values=padding)
    return np.lib.stride_tricks.sliding_window_view(padded, window)


# --- Scans ----------------------------------------------------------------------------------------

_ROWS = [whole(n, most=64, seed=n) for n in (127, 129, 1025)]
_SIGNS = np.sign(whole(257, seed=6))
_STEPS = whole(257, most=16, seed=7)


def _after(one: tuple[jax.Array, ...], other: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Compose two maps x -> a·x + b, which do not commute."""
    return one[0] * other[0], one[1] * other[0] + other[1]


def _one_by_one(signs: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    at, places = 0.0, []
    for sign, step in zip(signs, steps, strict=True):
        at = at * sign + step
        places.append(at)
    return [np.cumprod(signs), np.array(places)]


SCANS = (
    jitted(
        "cumsum-whole",
        "running sums of lengths around a tile, forward and backward",
        lambda *rows: [jnp.cumsum(x) for x in rows] + [lax.cumsum(rows[-1], reverse=True)],
        _ROWS,
        same_bits(lambda *rows: [*map(np.cumsum, rows), np.cumsum(rows[-1][::-1])[::-1]]),
    ),
    jitted(
        "cumsum-axes-whole",
        "running sums along each axis of a shape that fills no tile",
        lambda x: [jnp.cumsum(x, 0), jnp.cumsum(x, 1)],
        (_filled(9, 129),),
        same_bits(lambda x: [np.cumsum(x, 0), np.cumsum(x, 1)]),
    ),
    jitted(
        "cumsum-100000-whole",
        "a long running sum, looked at after each 997",
        lambda x: jnp.cumsum(x)[996::997],
        (weights(100_000),),
        same_bits(lambda x: [np.cumsum(x)[996::997]]),
    ),
    jitted(
        "cumprod-cummax-whole",
        "running products of signs, and the largest and smallest so far",
        lambda signs, x: [
            jnp.cumprod(signs),
            lax.cummax(x),
            lax.cummin(x),
            lax.cummax(x, reverse=True),
        ],
        (_SIGNS, whole(257, most=250, seed=8)),
        same_bits(
            lambda signs, x: [
                np.cumprod(signs),
                np.maximum.accumulate(x),
                np.minimum.accumulate(x),
                np.maximum.accumulate(x[::-1])[::-1],
            ]
        ),
    ),
    jitted(
        "associative-scan-whole",
        "steps that may be grouped as one likes, but not swapped",
        lambda a, b: lax.associative_scan(_after, (a, b)),
        (_SIGNS, _STEPS),
        same_bits(_one_by_one),
    ),
    jitted(
        "scan-whole",
        "the same one by one, in a loop",
        lambda a, b: lax.scan(lambda at, s: (at * s[0] + s[1],) * 2, np.float32(0), (a, b))[1],
        (_SIGNS, _STEPS),
        same_bits(lambda a, b: _one_by_one(a, b)[1:]),
    ),
)


# --- The last tile --------------------------------------------------------------------------------

# A mask that is wrong in a tile that is not full loses what lies there. Each row rises: its last
# value is the largest and, negated, the smallest.
_RISING = np.arange(3 * 257, dtype=np.float32).reshape(3, 257)

LAST_TILE = (
    jitted(
        "extremes-at-the-end",
        "the largest and the smallest are found where they are the last of 257",
        lambda x: [
            *(jnp.max(x, 1), jnp.min(-x, 1)),
            *(found.astype("int32") for found in (jnp.argmax(x, 1), jnp.argmin(-x, 1))),
        ],
        (_RISING,),
        same_bits(lambda x: [x.max(1), (-x).min(1), x.argmax(1), (-x).argmin(1)]),
    ),
)


WHOLE_CASES = (*REDUCTIONS, *SCANS, *LAST_TILE)
