"""Operations that only move, pick, order or convert numbers: equal to the bit for all bits.

Denormals, signed zeros, infinities and NaNs are among the numbers: moving one computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from jitcount._suite.data import floats, weights, whole
from jitcount._suite.jitted import jitted, same_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

# Each place has a different number, and some numbers are special.
_ODD = floats(1e-40, -1e-45, -0.0, np.inf, -np.inf, np.nan, 3e38, -1e-38)
_TABLE = (np.arange(9 * 131, dtype=np.float32) - 500).reshape(9, 131)
_TABLE[::4, ::19] = np.resize(_ODD, _TABLE[::4, ::19].shape)
_ROWS = np.array([8, 0, 3, 3, -1, 7], np.int32)
_COLUMNS = np.array([130, 0, 64, 129, 127, 128], np.int32)


MOVES = (
    jitted(
        "move",
        "transposed, turned round, rolled, cut, padded, repeated and put together",
        lambda x: [
            x.T,
            x[::-1, ::3],
            jnp.roll(x, (2, 65), (0, 1)),
            lax.dynamic_slice(x, (np.int32(5), np.int32(100)), (4, 29)),
            lax.pad(x[:, :7], np.float32(-0.0), ((1, 0, 1), (-1, 2, 0))),
            jnp.repeat(x[:2, :5], 3, 1),
            jnp.concatenate([x[3:5, 120:], x[:2, :3]], 1),
            jnp.where(x[:, :65] > 1, x[:, 66:], x[:, :65]),
        ],
        (_TABLE,),
        same_bits(lambda x: [
            x.T,
            x[::-1, ::3],
            np.roll(x, (2, 65), (0, 1)),
            x[5:9, 100:129],
            _padded(x[:, :7]),
            np.repeat(x[:2, :5], 3, 1),
            np.concatenate([x[3:5, 120:], x[:2, :3]], 1),
            np.where(x[:, :65] > 1, x[:, 66:], x[:, :65]),
        ]),
    ),
    jitted(
        "gather",
        "rows, columns and single places; what is out of bounds is filled, or the nearest",
        lambda x, i, j: [
            jnp.take(x, i, 0, mode="wrap")[:, ::7],
            x[i[:4]][:, j],
            x[i[1:3], j[1:3]],
            jnp.take(x[0], j + 1, mode="clip"),
            jnp.take(x[0], j + 1, mode="fill", fill_value=-7),
            jnp.take_along_axis(x[:6], j[:, None], 1),
            lax.dynamic_slice(x, (np.int32(7), j[0]), (3, 4)),
        ],
        (_TABLE, _ROWS, _COLUMNS),
        same_bits(lambda x, i, j: [
            x[i][:, ::7],
            x[i[:4]][:, j],
            x[i[1:3], j[1:3]],
            x[0][np.minimum(j + 1, 130)],
            np.where(j < 130, x[0][np.minimum(j + 1, 130)], -7),
            np.take_along_axis(x[:6], j[:, None].astype(np.int64), 1),
            x[6:9, 127:131],
        ]),
    ),
)  # fmt: skip


def _padded(x: np.ndarray) -> np.ndarray:
    """Pad with a row in front, a hole after each row, a column less in front and two behind."""
    spaced = np.full((2 * x.shape[0], x.shape[1] + 1), -0.0)
    spaced[1::2, :-2] = x[:, 1:]
    return spaced


# --- Scatters -------------------------------------------------------------------------------------

_PLACES = (whole(1025, most=60, dtype="int32", seed=1) + 60) % 119
_BEYOND = np.where(np.arange(1025) % 50 == 7, 500, _PLACES).astype(np.int32)
_ADDED = whole(1025, most=100, seed=2)
_START = weights(119)
_ORDER = np.argsort(whole(119, most=10_000, seed=3), kind="stable").astype(np.int32)


def _scattered(x: np.ndarray, places: np.ndarray, added: np.ndarray) -> list[np.ndarray]:
    inside = places < len(x)
    found = []
    for update in (np.add.at, np.minimum.at, np.maximum.at):
        changed = x.copy()
        update(changed, places[inside], added[inside])
        found.append(changed)
    return found


SCATTERS = (
    jitted(
        "scatter-whole",
        "added, smaller, larger at places that come again; what is out of bounds is dropped",
        lambda x, i, u: [
            x.at[i].add(u, mode="drop"), x.at[i].min(u, mode="drop"), x.at[i].max(u, mode="drop")
        ],
        (_START, _BEYOND, _ADDED),
        same_bits(_scattered),
    ),
    jitted(
        "scatter-set",
        "each place is written once, in another order",
        lambda x, i: [
            jnp.zeros_like(x).at[i].set(x), lax.dynamic_update_slice(x, x[:20], (i[0] * 0 + 110,))
        ],
        (_START, _ORDER),
        same_bits(lambda x, i: [x[np.argsort(i)], np.concatenate([x[:99], x[:20]])]),
    ),
    jitted(
        "segment-sum-whole",
        "sums by group",
        lambda u, i: [jax.ops.segment_sum(u, i, 119), jnp.bincount(i, length=119)],
        (_ADDED, _PLACES),
        same_bits(lambda u, i: [
            np.bincount(i, u, 119), np.bincount(i, minlength=119).astype(np.int32)
        ]),
    ),
)  # fmt: skip


# --- Orders ---------------------------------------------------------------------------------------

_MANY_TIES = [whole(n, most=5, seed=n) for n in (127, 129, 1025)]
_ORDERLESS = np.concatenate([_MANY_TIES[0], floats(np.nan, np.inf, -np.inf, 0.0, -0.0, 0.0, -0.0)])
_KEYS = whole(9, 130, most=3, dtype="int32", seed=5), whole(9, 130, most=2, dtype="int32", seed=6)


def _by_two_keys(first: np.ndarray, second: np.ndarray) -> list[np.ndarray]:
    order = np.stack([np.lexsort((b, a)) for a, b in zip(first, second, strict=True)])
    return [np.take_along_axis(x, order, 1) for x in (first, second)] + [order]


def _largest(x: np.ndarray, count: int) -> list[np.ndarray]:
    order = np.argsort(-x, kind="stable")[:count]
    return [x[order], order]


def _sorted_places(*rows: np.ndarray) -> list[np.ndarray]:
    return [np.argsort(row, kind="stable") for row in rows]


ORDERS = (
    jitted(
        "sort-ties",
        "equal ones keep their order, in lengths around a tile",
        lambda *rows: [jnp.argsort(x, stable=True).astype("int32") for x in rows],
        _MANY_TIES,
        same_bits(_sorted_places),
    ),
    jitted(
        "sort-specials",
        "infinities at the ends and NaN last; zeros of both signs are equal, and keep their order",
        lambda x: [jnp.sort(x, stable=True), jnp.argsort(x, stable=True).astype("int32")],
        (_ORDERLESS,),
        same_bits(lambda x: [np.sort(x, kind="stable"), *_sorted_places(x)]),
    ),
    jitted(
        "sort-two-keys",
        "by one key and then by another, with what belongs to them",
        lambda a, b: lax.sort(
            (a, b, lax.broadcasted_iota("int32", a.shape, 1)), num_keys=2, is_stable=True
        ),
        _KEYS,
        same_bits(_by_two_keys),
    ),
    jitted(
        "top-k-ties",
        "of equal ones those that come first",
        lambda x: lax.top_k(x, 50),
        _MANY_TIES[2:],
        same_bits(lambda x: _largest(x, 50)),
    ),
    jitted(
        "searchsorted",
        "left and right of equal ones",
        lambda x: [
            jnp.searchsorted(jnp.sort(x), x[:20], side=side).astype("int32")
            for side in ("left", "right")
        ],
        _MANY_TIES[2:],
        same_bits(lambda x: [
            np.searchsorted(np.sort(x), x[:20], side=side) for side in ("left", "right")
        ]),
    ),
)  # fmt: skip


# --- Bits and types -------------------------------------------------------------------------------

_NUMBERS = np.concatenate([whole(120, most=2000, seed=7) / 8, floats(0.5, 1.5, 2.5, -0.5, -0.0)])
_INTEGERS = whole(129, most=2**20, dtype="int32", seed=8)
_DIVISORS = whole(129, most=900, dtype="int32", seed=9)
# Halfway between two bfloat16, and near it: rounded to the even one.
_HALFWAY = floats(1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-8, 3.4e38, 257, 259)
_SPECIAL = floats(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5)


def _divided(a: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return [quotient, a - quotient * b, a // b, a % b]


BITS = (
    jitted(
        "round-whole",
        "to the nearest, of two as near ones to the even; up, down; the sign and the size",
        lambda x: [jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x), jnp.sign(x), jnp.abs(x)],
        (_NUMBERS.astype(np.float32),),
        same_bits(lambda x: [
            np.round(x), np.floor(x), np.ceil(x), np.trunc(x), np.copysign(np.sign(x), x), np.abs(x)
        ]),
    ),
    jitted(
        "integers",
        "quotients and remainders of both signs, shifts and bits; what is too large wraps",
        lambda a, b: [
            lax.div(a, b), lax.rem(a, b), a // b, a % b, a * b, a << 14, a >> 3, a & b, a ^ b, ~a,
            lax.population_count(a), lax.clz(a), a.astype("int8"), a.astype("uint16"),
        ],
        (_INTEGERS, _DIVISORS),
        same_bits(lambda a, b: [
            *_divided(a, b), a * b, a << 14, a >> 3, a & b, a ^ b, ~a,
            np.array([(n & 0xFFFFFFFF).bit_count() for n in a.tolist()], np.int32),
            np.array([32 - (n & 0xFFFFFFFF).bit_length() for n in a.tolist()], np.int32),
            a.astype(np.int8), a.astype(np.uint16),
        ]),
    ),
    jitted(
        "convert",
        "to narrower types, halfway to the even one, and to bits and back",
        lambda x, i: [
            x.astype("bfloat16"), (x / 4).astype("float16"), i.astype("float32"),
            lax.bitcast_convert_type(x, jnp.uint32), lax.reduce_precision(x, 8, 10),
            (i.astype("float32") * np.float32(0.25)).astype("int32"),
        ],
        (_HALFWAY, _INTEGERS * 2047),
        lambda x, i: same_bits(lambda *_: _converted(x, i))(x, i),
    ),
    jitted(
        "specials",
        "what infinities, NaN and signed zeros become",
        lambda x: [
            x + np.float32(1), x * np.float32(-2), x - x, jnp.abs(x), jnp.isnan(x), jnp.isinf(x),
            jnp.copysign(np.float32(3), x), jnp.minimum(x, 1), jnp.clip(x, -1, 1),
            x * np.float32(3e38), jnp.signbit(x), x / np.float32(4),
        ],
        (_SPECIAL,),
        lambda x: same_bits(lambda _: _of_specials(x))(x),
    ),
)  # fmt: skip


def _converted(x: np.ndarray, i: np.ndarray) -> list[np.ndarray]:
    with np.errstate(over="ignore"):
        return [
            x.astype(ml_dtypes.bfloat16), (x / 4).astype(np.float16), i.astype(np.float32),
            x.view(np.uint32), _to_ten_bits(x), np.trunc(i.astype(np.float32) / 4).astype(np.int32),
        ]  # fmt: skip


def _to_ten_bits(x: np.ndarray) -> np.ndarray:
    """Round to the ten bits of TF32."""
    bits = x.view(np.uint32).astype(np.uint64)
    bits += np.uint64(0xFFF) + (bits >> np.uint64(13) & np.uint64(1))
    return (bits & np.uint64(0xFFFFE000)).astype(np.uint32).view(np.float32)


def _of_specials(x: np.ndarray) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return [
            x + np.float32(1), x * np.float32(-2), x - x, np.abs(x), np.isnan(x), np.isinf(x),
            np.copysign(np.float32(3), x), np.minimum(x, np.float32(1)),
            np.clip(x, np.float32(-1), np.float32(1)), x * np.float32(3e38),
            np.signbit(x), x / np.float32(4),
        ]  # fmt: skip


MOVING_CASES = (*MOVES, *SCATTERS, *ORDERS, *BITS)
