"""An evolution strategy whose first state is weakly typed in places, and its steps are not."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class State(NamedTuple):
    mean: jax.Array
    scale: jax.Array
    best: jax.Array


def init(dimensions):
    return State(jnp.full(dimensions, 0.5), jnp.full((), 1.0), jnp.asarray(jnp.inf))


@jax.jit
def ask(key, state):
    return state.mean + state.scale * jax.random.normal(key, (8, 2))


@jax.jit
def tell(population, fitness, state):
    best = population[jnp.argmin(fitness)]
    mean = 0.5 * (state.mean + best)
    scale = state.scale * np.float32(0.9)
    return State(mean, scale, jnp.minimum(state.best, jnp.min(fitness)))


@jax.jit
def evaluate(population):
    return jnp.sum((population - 2) ** 2, axis=1)


state = init(2)
for key in np.asarray(jax.random.split(jax.random.PRNGKey(0), 4)):
    population = ask(key, state)
    state = tell(population, evaluate(population), state)
print(f"{float(state.best):.2f}")
