"""Several algorithms for one problem, each with a program of its own, and vectorised calls."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["algorithm", "rates"]
)
@dataclass
class State:
    params: object
    algorithm: str
    rates: object


class Rates:
    """Another object for each experiment."""

    step = 0.1


@jax.jit
def step(state):
    def loss(params):
        total = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
        return jnp.sqrt(1 + total) if state.algorithm == "projected" else total

    gradients = jax.grad(loss)(state.params)
    params = jax.tree.map(lambda p, g: p - state.rates.step * g, state.params, gradients)
    return State(params, state.algorithm, state.rates)


@jax.jit
def rotate(angle, points):
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    x, y = points[..., 0], points[..., 1]
    return jnp.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)


start = np.arange(1, 4, dtype="float32")
for algorithm in ("tangent", "projected", "exponential"):
    params = {"logs": start} if algorithm == "exponential" else start
    state = State(params, algorithm, Rates())
    for _ in range(3):
        state = step(state)
    print(algorithm, *np.round(jax.tree.leaves(state.params)[0], 2))

one = rotate(np.float32(0.5), np.ones(2, "float32"))
many = rotate(np.float32(0.5), np.ones((5, 2), "float32"))
each = rotate(np.zeros(5, "float32"), np.ones((5, 2), "float32"))
print(one.shape, many.shape, each.shape)
