"""Two agents learn in turn: a rollout by scan, an update of each agent's own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


class Agent:
    def __init__(self, rate):
        self.rate = rate
        self.weights = jnp.zeros((2, 2))
        self.update = jax.jit(self._update)

    def _update(self, weights, observations, rewards):
        def objective(w):
            chosen = jax.nn.log_softmax(observations @ w)[:, 0]
            return jnp.mean(chosen * (rewards - rewards.mean()))

        return weights + self.rate * jax.grad(objective)(weights)


@functools.partial(jax.jit, static_argnames="steps")
def rollout(weights, key, steps):
    def move(position, key):
        push = jax.nn.softmax(position @ weights)[0] - 0.5
        position = position + 0.1 * push + 0.01 * jax.random.normal(key, (2,))
        return position, (position, -jnp.sum(position**2))

    return jax.lax.scan(move, jnp.ones(2), jax.random.split(key, steps))[1]


agents = [Agent(0.1), Agent(0.5)]
key = jax.random.key(0)
for steps in (8, 8, 12):  # the episodes become longer
    for agent in agents:
        key, mine = jax.random.split(key)
        observations, rewards = rollout(agent.weights, mine, steps)
        agent.weights = agent.update(agent.weights, observations, rewards)
for agent in agents:
    print(np.asarray(agent.weights).round(6).tolist())
