"""Which lines make a loss differ on a TPU, what helps, and how far off the chip itself may be.

Run it with ``python examples/error_by_line.py``. It needs that chip's compiler, and no TPU.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jitcount


def attention(query, key, value):
    weights = jax.nn.softmax(query @ key.T / 8.0)
    return weights @ value


@jax.jit
def loss(query, key, value, output):
    return jnp.mean((attention(query, key, value) @ output) ** 2)


random = np.random.default_rng(0)
words = random.normal(size=(3, 256, 64)).astype(np.float32)
output = random.normal(size=(64, 256)).astype(np.float32)

with jitcount.as_if("tpu:v5e") as emulation:
    loss(*words, output)
print(emulation.error_by_line(loss, *words, output))
print(emulation.error_bound(loss, *words, output))
