"""Cases of a project's own: ``jitcount suite examples/cases.py``."""

import jax
import jax.numpy as jnp
import numpy as np

import jitcount

rng = np.random.default_rng(0)
QUERIES, KEYS = (rng.normal(size=(8, 4)).astype(np.float32) for _ in range(2))


@jax.jit
def attend(q, k):
    return jax.nn.softmax(q @ k.T) @ k


jitcount.case(attend, (QUERIES, KEYS), compiles={"attend": 1})


@jitcount.case(compiles={"attend": 2})
def two_lengths():
    return attend(QUERIES, KEYS), attend(QUERIES[:5], KEYS)


@jitcount.case(within=1e-4)
def halve_until_small():
    x = jnp.arange(4.0)
    while float(x.max()) > 0.1:
        x = x / 2
    return x
