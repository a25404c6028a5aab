"""Which lines make a loss differ on a TPU, what helps, and how far off the chip itself may be.

Run it with ``python examples/shares.py``. It needs the compiler of that chip, but no TPU.
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
print(emulation.shares(loss, *words, output))
print(emulation.leeway(loss, *words, output))
