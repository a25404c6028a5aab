"""Small models of whole numbers: equal to the bit, however a backend fuses and multiplies."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import whole
from jitcount._suite.jitted import jitted, same_bits

# Every factor of a product stays below 256, so that bfloat16 can hold it.
_INPUT = whole(9, 17, most=1, seed=1)
_FIRST = whole(17, 33, most=1, seed=2)
_SECOND = whole(33, 5, most=2, seed=3)
_WANTED = whole(9, 5, most=1, seed=4)
_STEP = 2.0**-4


def _loss(first: jax.Array, second: jax.Array, x: jax.Array, wanted: jax.Array) -> jax.Array:
    return jnp.sum(jax.nn.relu(x @ first) @ second * wanted)


def training_step(
    x: jax.Array, first: jax.Array, second: jax.Array, wanted: jax.Array
) -> list[jax.Array]:
    """The loss of two layers, and their weights after one step of gradient descent."""
    loss, slopes = jax.value_and_grad(_loss, (0, 1))(first, second, x, wanted)
    return [
        loss,
        *(w - np.float32(_STEP) * s for w, s in zip((first, second), slopes, strict=True)),
    ]


def training_step_by_hand(
    x: np.ndarray, first: np.ndarray, second: np.ndarray, wanted: np.ndarray
) -> list[np.ndarray]:
    """The training step in NumPy, with gradients by hand."""
    before = x @ first
    hidden = np.maximum(before, 0)
    back = (wanted @ second.T) * (before > 0)
    loss = np.sum(hidden @ second * wanted)
    return [loss, first - _STEP * (x.T @ back), second - _STEP * (hidden.T @ wanted)]


_QUERIES, _KEYS = whole(2, 7, 9, most=3, seed=5), whole(2, 13, 9, most=3, seed=6)
_VALUES = whole(2, 13, 5, most=100, seed=7)


def _attention(queries: jax.Array, keys: jax.Array, values: jax.Array) -> list[jax.Array]:
    """Attention with all weight on the key that fits best; of equal keys, on the first."""
    scores = jnp.einsum("bqd,bkd->bqk", queries, keys)
    seen = np.tri(7, 13, 3, dtype=bool)
    best = jnp.argmax(jnp.where(seen, scores, -jnp.inf), -1)
    return [scores, jnp.einsum("bqk,bkv->bqv", jax.nn.one_hot(best, 13, dtype="float32"), values)]


def _attention_by_hand(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray
) -> list[np.ndarray]:
    scores = queries @ keys.swapaxes(1, 2)
    best = np.where(np.tri(7, 13, 3, dtype=bool), scores, -np.inf).argmax(-1)
    return [scores, np.stack([v[b] for v, b in zip(values, best, strict=True)])]


_STEPS = whole(65, 4, 9, most=6, seed=8)
_TURN = whole(9, 9, most=1, seed=9)


def _recurrent(steps: jax.Array, turn: jax.Array) -> jax.Array:
    def one(at: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = jnp.clip(at @ turn + step, -8, 8)
        return after, after

    return lax.scan(one, jnp.zeros(steps.shape[1:], "float32"), steps)[1]


def _recurrent_by_hand(steps: np.ndarray, turn: np.ndarray) -> list[np.ndarray]:
    at, found = np.zeros(steps.shape[1:]), []
    for step in steps:
        at = np.clip(at @ turn + step, -8, 8)
        found.append(at)
    return [np.stack(found)]


COMPOSITE_CASES = (
    jitted(
        "training-step-whole",
        "loss, gradients and new weights of a step of two layers",
        training_step,
        (_INPUT, _FIRST, _SECOND, _WANTED),
        same_bits(training_step_by_hand),
    ),
    jitted(
        "attention-whole",
        "attention that looks at one place only",
        _attention,
        (_QUERIES, _KEYS, _VALUES),
        same_bits(_attention_by_hand),
    ),
    jitted(
        "recurrent-whole",
        "a recurrent layer, step by step",
        _recurrent,
        (_STEPS, _TURN),
        same_bits(_recurrent_by_hand),
    ),
)
