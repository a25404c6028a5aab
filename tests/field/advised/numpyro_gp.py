"""The scale of a Gaussian process, by a library that calls the model again and again."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import jax.numpy as jnp
import numpy as np
import sampling


def normal(value):
    return -0.5 * (value - 1) ** 2 - jnp.log(jnp.sqrt(2 * jnp.pi))


def kernel(x, length):
    distances = (x[:, None] - x) / length
    return jnp.exp(-0.5 * distances**2) + 0.1 * jnp.eye(x.shape[0])


def model(x, y):
    length = sampling.sample("length", normal, 1.0)
    covariance = kernel(x, length)
    sampling.sample("y", lambda y: -0.5 * y @ jnp.linalg.solve(covariance, y), y)


x = np.linspace(0, 1, 6, dtype="float32")
values, density = sampling.run(model, {"length": jnp.float32(0.5)}, 3, x, np.sin(3 * x))
print(f"{float(values['length']):.2f} {float(density):.2f}")
