"""Gradients of an embedding, added up in a scan while the batch lies on several devices.

    JAX_NUM_CPU_DEVICES=4 python examples/gradients_by_scatter.py
    JAX_NUM_CPU_DEVICES=4 jitcount run --as-if tpu:v4 examples/gradients_by_scatter.py

All numbers are whole, so there is one right result. The compilers of TPUs and GPUs of JAX 0.10.1 to
0.11.2 make another one: openxla #49143.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

STEPS, BATCH, WORDS, WIDTH = 3, 24, 96, 8

rng = np.random.default_rng(0)
ids = rng.integers(0, WORDS, (STEPS, BATCH))
slopes = rng.integers(-8, 9, (STEPS, BATCH, WIDTH)).astype(np.float32)


@jax.jit
def gradients(table: jax.Array, ids: jax.Array, slopes: jax.Array) -> jax.Array:
    """Add up the gradient of each step's rows of the table."""

    def step(total: jax.Array, batch: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        rows, slope = batch
        return total + jax.grad(lambda table: jnp.sum(table[rows] * slope))(table), None

    return jax.lax.scan(step, jnp.zeros_like(table), (ids, slopes))[0]


mesh = Mesh(np.array(jax.devices()), ("data",))
whole, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))
table = jax.device_put(np.zeros((WORDS, WIDTH), np.float32), whole)
found = np.asarray(gradients(table, *jax.device_put((ids, slopes), spread)))

expected = np.zeros((WORDS, WIDTH), np.float32)
np.add.at(expected, ids, slopes)
off = np.abs(found - expected)
print(f"{np.count_nonzero(off)} of {off.size} gradients are wrong, by up to {off.max():g}")
