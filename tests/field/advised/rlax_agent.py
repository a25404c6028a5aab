"""An agent that learns from episodes of every length, with a learning rate that is static."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.jit, static_argnames="learning_rate")
def update(weights, observations, rewards, learning_rate):
    def loss(weights):
        values = observations @ weights
        errors = rewards + 0.9 * values[1:] - values[:-1]
        return jnp.sum(errors**2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - learning_rate * gradient, value


random = np.random.default_rng(0)
weights = np.zeros(3, "float32")
for learning_rate in (0.01, 0.005):
    for length in (5, 9, 7, 5):
        observations = random.normal(size=(length + 1, 3)).astype("float32")
        rewards = random.normal(size=length).astype("float32")
        weights, value = update(weights, observations, rewards, learning_rate)
        print(length, f"{float(value):.2f}")
