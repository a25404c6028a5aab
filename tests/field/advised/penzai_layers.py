"""Layers that are looked at one by one, each with a jitted lambda of its own, every round."""

import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
weights = [random.normal(size=(6, 6)).astype("float32") for _ in range(2)]
for temperature in (1.0, 2.0, 4.0):
    x = np.ones((3, 6), "float32")
    soften = jax.jit(lambda weight, x, temperature: jnp.tanh(x @ weight / temperature))
    for weight in weights:
        x = soften(weight, x, temperature)
    print(f"{float(np.abs(x).sum()):.3f}")
