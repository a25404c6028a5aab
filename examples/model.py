"""Attention over sixteen words, and its loss: a TPU rounds both of its products.

Run it with ``jitcount run --as-if tpu:v5e examples/model.py``.
"""

import jax
import jax.numpy as jnp
import numpy as np


def attention(query, key, value):
    weights = jax.nn.softmax(query @ key.T / 8.0)
    return weights @ value


@jax.jit
def loss(query, key, value):
    return jnp.mean(attention(query, key, value) ** 2)


words = np.random.default_rng(0).normal(size=(3, 16, 64)).astype(np.float32)
print(f"loss {loss(*words):.5f}")
