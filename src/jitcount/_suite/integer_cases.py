"""Integers of 32 bits, which are more than float32 can hold, and what programs decide by them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import whole
from jitcount._suite.jitted import jitted, same_bits

_WIDE = whole(9, 1025, most=2**20, dtype="int32", seed=12) * np.int32(1021)
_UNSIGNED = _WIDE.astype(np.uint32)


def _wrapped(x: np.ndarray | np.int64) -> np.ndarray:
    return np.asarray(x).astype(np.int32)


def _branches(x: jax.Array, which: jax.Array) -> list[jax.Array]:
    """The results of loops that end on a condition, and of branches taken one by one."""
    steps = [lambda v: v + 1, lambda v: v * 2, lambda v: v - 3]
    taken, _ = lax.scan(lambda at, i: (lax.switch(i, steps, at), None), x, which)
    halved = lax.while_loop(lambda s: s[0] > 3, lambda s: (s[0] // 2, s[1] + 1), (x[0], x[1]))
    chosen = lax.cond(x[0] > x[1], lambda v: v + 100, lambda v: -v, x)
    counted = lax.fori_loop(0, x[1], lambda i, total: total + i, x[0])
    return [taken, *halved, chosen, counted]


def _branches_by_hand(x: np.ndarray, which: np.ndarray) -> list[np.ndarray]:
    steps = [lambda v: v + 1, lambda v: v * 2, lambda v: v - 3]
    taken = x
    for i in which:
        taken = steps[i](taken)
    number, count = int(x[0]), int(x[1])
    while number > 3:
        number, count = number // 2, count + 1
    chosen = x + 100 if x[0] > x[1] else -x
    counted = x[0] + sum(range(int(x[1])))
    return [np.asarray(one, np.int32) for one in (taken, number, count, chosen, counted)]


def _random(key: jax.Array) -> list[jax.Array]:
    """What `jax.random` draws: its bits are defined exactly, its floats are rounded."""
    wrapped = jax.random.wrap_key_data(key, impl="threefry2x32")
    return [
        jax.random.bits(wrapped, (1025,), "uint32"),
        jax.random.key_data(jax.random.split(wrapped, 3)),
    ]


def _threefry(key: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return twenty rounds of Threefry (Salmon et al. 2011) for the words 0 and `counts`."""
    third = key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)
    keys = [key[0], key[1], third]
    high, low = np.zeros_like(counts) + keys[0], counts + keys[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            high = high + low
            low = (low << np.uint32(turn) | low >> np.uint32(32 - turn)) ^ high
        high = high + keys[(group + 1) % 3]
        low = low + keys[(group + 2) % 3] + np.uint32(group + 1)
    return high, low


def _random_by_hand(key: np.ndarray) -> list[np.ndarray]:
    high, low = _threefry(key, np.arange(1025, dtype=np.uint32))
    keys = np.stack(_threefry(key, np.arange(3, dtype=np.uint32)), 1)
    return [high ^ low, keys]


INTEGER_CASES = (
    jitted(
        "random-bits",
        "random bits of Threefry, and keys that are split",
        _random,
        (np.array([0x13198A2E, 0x03707344], np.uint32),),
        same_bits(_random_by_hand),
    ),
    jitted(
        "integers-wide",
        "sums and products of whole numbers that float32 does not hold; what is too large wraps",
        lambda x, u: [
            *(jnp.sum(x, dtype="int32"), jnp.sum(x, 0, dtype="int32"), jnp.cumsum(x[0])),
            *(x[:, :5].T @ x[:, :3], jnp.max(x, 1), jnp.argmin(x, 1).astype("int32")),
            *(jnp.sum(u, 1, dtype="uint32"), jnp.prod(x[:, :33], 1, dtype="int32"), jnp.sort(u[0])),
        ],
        (_WIDE, _UNSIGNED),
        same_bits(lambda x, u: [
            *(_wrapped(np.sum(x, dtype=np.int64)), _wrapped(x.sum(0, dtype=np.int64))),
            _wrapped(np.cumsum(x[0].astype(np.int64))),
            _wrapped(x[:, :5].T.astype(np.int64) @ x[:, :3].astype(np.int64)),
            *(x.max(1), x.argmin(1)),
            *(u.sum(1, dtype=np.uint32), x[:, :33].prod(1, dtype=np.int32), np.sort(u[0])),
        ]),
    ),
    jitted(
        "branches",
        "branches, switches and loops that end on a condition",
        _branches,
        (np.array([1_000, 7, -5], np.int32), np.array([0, 2, 1, 1, 0, 2], np.int32)),
        same_bits(_branches_by_hand),
    ),
)  # fmt: skip
