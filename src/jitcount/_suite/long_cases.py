"""Arrays that are longer than a tile, a block or 16 bits: whole numbers, equal to the bit.

A kernel has a different path for each: a second block, a carry to the next, a merge of two, an
index that no longer fits. Each row of the tables has its one odd value at another place.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import weights, whole
from jitcount._suite.jitted import jitted, same_bits

# --- One in many ----------------------------------------------------------------------------------

# At the ends of tiles and blocks, and in the middle of one.
_PLACES = np.array([0, 127, 128, 1023, 1024, 1025, 3500, 4095, 4096, 8191, 8192])
_WIDTH = 8193


def _one_in_each_row(odd: float, others: np.ndarray) -> np.ndarray:
    table = others.reshape(len(_PLACES), _WIDTH).copy()
    table[np.arange(len(_PLACES)), _PLACES] = odd
    return table


_BELOW = _one_in_each_row(-1, -1 - weights(len(_PLACES) * _WIDTH, seed=1))
_HIT = _one_in_each_row(1, np.zeros(len(_PLACES) * _WIDTH, np.float32)) > 0

# Two of each, in different tiles: the first must be found.
_TWICE = np.where(np.roll(_HIT, 2500, 1), np.float32(-1), _BELOW)


def _extremes(length: int) -> list[np.ndarray]:
    """The largest and the smallest values and their places; the largest is in the last tile."""
    values = weights(length, seed=3)
    values[length - 3], values[length // 2 + 1] = 999, -999
    return [values]


# Twos and halves at some places, so few of each that no partial product overflows.
_EDGES = np.unique(np.concatenate([_PLACES, np.arange(0, 100_003, 3331), [100_002]]))


def _factors(length: int) -> np.ndarray:
    values = np.sign(whole(length, seed=4))
    edges = _EDGES[: np.searchsorted(_EDGES, length)]
    values[edges] *= np.where(np.arange(len(edges)) % 3, 2, 0.5)
    return values.astype(np.float32)


ONE_IN_MANY = (
    jitted(
        "extremes-8193",
        "the largest and the smallest of 8,193, wherever they are, and of two the first",
        lambda x, y: [
            *(jnp.max(x, 1), jnp.min(-x, 1), jnp.max(x.T, 0)),
            *(found.astype("int32") for found in (jnp.argmax(y, 1), jnp.argmin(-y, 1))),
        ],
        (_BELOW, _TWICE),
        same_bits(lambda x, y: [
            *(x.max(1), (-x).min(1), x.T.max(0), y.argmax(1), (-y).argmin(1))
        ]),
    ),
    *(
        jitted(
            f"extremes-{length}",
            f"the largest and the smallest of {length:,}, and where they are",
            lambda x: [
                *(jnp.max(x), jnp.min(x)),
                *(found.astype("int32") for found in (jnp.argmax(x), jnp.argmin(x))),
            ],
            partial(_extremes, length),
            same_bits(lambda x: [x.max(), x.min(), x.argmax(), x.argmin()]),
        )
        for length in (1_000_000, 10_000_000)
    ),
    jitted(
        "any-all-8193",
        "one true value among 8,193 is found wherever it is, and one false one",
        lambda x: [jnp.any(x, 1), jnp.all(~x, 1), jnp.any(x[:, :8191], 1), jnp.all(~x[:, :127], 1)],
        (_HIT,),
        same_bits(lambda x: [
            x.any(1), (~x).all(1), x[:, :8191].any(1), (~x[:, :127]).all(1)
        ]),
    ),
    jitted(
        "prod-long-whole",
        "products of 129 to 100,003 factors of both signs, with twos and halves among them",
        lambda x: [jnp.prod(x[:n]) for n in (129, 1025, 8193, 100_003)],
        (_factors(100_003),),
        same_bits(lambda x: [x[:n].prod() for n in (129, 1025, 8193, 100_003)]),
    ),
)  # fmt: skip


# --- Carried on -----------------------------------------------------------------------------------

# Only a few, because compilers of TPUs take long for each.
_AROUND = (4097, 65_537)
_RISING = np.cumsum(whole(8193, most=3, seed=5)).astype(np.float32)
_SIGNS = np.sign(whole(8193, seed=6)).astype(np.float32)


CARRIED = (
    jitted(
        "cumsum-around-blocks",
        "running sums around blocks, forward and backward, looked at after each 31",
        lambda *rows: [jnp.cumsum(x)[30::31] for x in rows]
        + [lax.cumsum(rows[0], reverse=True)[::31]],
        [weights(n, seed=n) for n in _AROUND],
        same_bits(lambda *rows: [
            *(np.cumsum(x)[30::31] for x in rows),
            np.cumsum(rows[0][::-1])[::-1][::31],
        ]),
    ),
    jitted(
        "cumsum-10000000-whole",
        "running sums of 10,000,000, looked at a thousand times and at the end",
        lambda x: [jnp.cumsum(x)[::9999], jnp.cumsum(x)[-3:]],
        lambda: [weights(10_000_000, seed=7)],
        same_bits(lambda x: [np.cumsum(x)[::9999], np.cumsum(x)[-3:]]),
    ),
    jitted(
        "cummax-cumprod-8193",
        "the largest and smallest so far, and running products, over several blocks",
        lambda x, signs: [
            *(lax.cummax(x)[::7], lax.cummin(x, reverse=True)[::7], jnp.cumprod(signs)[::7]),
        ],
        (_RISING, _SIGNS),
        same_bits(lambda x, signs: [
            *(np.maximum.accumulate(x)[::7], np.minimum.accumulate(x[::-1])[::-1][::7]),
            np.cumprod(signs)[::7],
        ]),
    ),
)  # fmt: skip


# --- Places beyond 65,536 -------------------------------------------------------------------------

_FAR = 200_003
_TABLE = np.arange(_FAR, dtype=np.float32)
_INDICES = (whole(4097, most=_FAR // 2, dtype="int32", seed=8) + _FAR // 2) % _FAR
_INDICES[:4] = 65_535, 65_536, _FAR - 1, _FAR - 1
_UPDATES = whole(4097, most=100, seed=9)
_MANY = (whole(10_000, most=40_000, dtype="int32", seed=10) + 40_000) * 2
_KEYS = whole(99_996, most=900, seed=11)


def _added(x: np.ndarray, places: np.ndarray, updates: np.ndarray | float) -> np.ndarray:
    changed = x.copy()
    np.add.at(changed, places, updates)
    return changed


def _stable(x: np.ndarray, *, down: bool = False) -> np.ndarray:
    return np.argsort(-x if down else x, kind="stable")


def _sorted(x: jax.Array) -> list[jax.Array]:
    """All results of one sort, because compilers of TPUs take long for each."""
    order = jnp.argsort(x, stable=True).astype("int32")
    return [x[order][::31], order[::31], *lax.top_k(x, 50)]


FAR = (
    jitted(
        "gather-far",
        "values at places beyond 65,536, and slices that begin there",
        lambda x, i: [
            *(x[i][::2], jnp.take(x, i + 1, mode="fill", fill_value=-1)[::3]),
            lax.dynamic_slice(x, (i[1],), (130,)),
            jnp.arange(_FAR, dtype="int32")[65_530:65_545],
            lax.dynamic_update_slice(x, -x[:5], (i[1] + 65_537,))[131_070:131_080],
        ],
        (_TABLE, _INDICES),
        same_bits(lambda x, i: [
            *(x[i][::2], np.where(i + 1 < _FAR, x[np.minimum(i + 1, _FAR - 1)], -1)[::3]),
            x[65_536 : 65_536 + 130],
            np.arange(65_530, 65_545),
            np.concatenate([x[131_070:131_073], -x[:5], x[131_078:131_080]]),
        ]),
    ),
    jitted(
        "scatter-far",
        "more values than a block, added to and written at places beyond 65,536",
        lambda x, i, u, many: [
            *(x.at[i].add(u)[i[::4]], x.at[many].add(1.0)[many[::10]]),
            jnp.zeros_like(x).at[(jnp.arange(_FAR) * 7 + 3) % _FAR].set(x)[::97],
        ],
        (_TABLE, _INDICES, _UPDATES, _MANY),
        same_bits(lambda x, i, u, many: [
            *(_added(x, i, u)[i[::4]], _added(x, many, 1.0)[many[::10]]),
            x[np.argsort((np.arange(_FAR) * 7 + 3) % _FAR)][::97],
        ]),
    ),
    jitted(
        "sort-long",
        "99,996 keys with many equal ones, and the 50 largest of them",
        _sorted,
        (_KEYS,),
        same_bits(lambda x: [
            *(np.sort(x)[::31], _stable(x)[::31]),
            *(x[_stable(x, down=True)[:50]], _stable(x, down=True)[:50]),
        ]),
    ),
    jitted(
        "transpose-edges",
        "transposed arrays whose last tiles are not full, in both directions",
        lambda x, y: [x.T, jnp.transpose(y, (2, 0, 1)), jnp.transpose(y, (1, 2, 0))[:, 60:]],
        (
            np.arange(67 * 131, dtype=np.float32).reshape(67, 131),
            np.arange(3 * 33 * 65, dtype=np.float32).reshape(3, 33, 65),
        ),
        same_bits(lambda x, y: [x.T, y.transpose(2, 0, 1), y.transpose(1, 2, 0)[:, 60:]]),
    ),
)  # fmt: skip


LONG_CASES = (*ONE_IN_MANY, *CARRIED, *FAR)
