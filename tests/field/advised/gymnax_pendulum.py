"""An environment that is stepped from Python, outside of jit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class State(NamedTuple):
    angle: jax.Array
    speed: jax.Array
    time: jax.Array


class Parameters(NamedTuple):
    gravity: float = 10.0
    length: float = 1.0
    steps: int = 20


class Pendulum:
    def reset(self, key, params):
        high = jnp.array([jnp.pi, params.length])
        angle, speed = jax.random.uniform(key, shape=(2,), minval=-high, maxval=high)
        state = State(angle, speed, jnp.zeros((), jnp.int32))
        return self.observe(state), state

    def step(self, key, state, action, params):
        torque = jnp.clip(action, -2.0, 2.0) + 0.01 * jax.random.normal(key)
        wrapped = ((state.angle + jnp.pi) % (2 * jnp.pi)) - jnp.pi
        reward = -(wrapped**2 + 0.1 * state.speed**2 + 0.001 * torque**2)
        force = 3 * params.gravity / (2 * params.length) * jnp.sin(state.angle) + 3.0 * torque
        speed = jnp.clip(state.speed + 0.05 * force, -8.0, 8.0)
        state = State(state.angle + 0.05 * speed, speed, state.time + 1)
        done = state.time >= params.steps
        return self.observe(state), state, reward, done

    def observe(self, state):
        return jnp.array([jnp.cos(state.angle), jnp.sin(state.angle), state.speed])


env, params = Pendulum(), Parameters()
keys = jax.random.split(jax.random.key(0), 4)
observation, state = env.reset(keys[0], params)
for key in keys[1:]:
    observation, state, reward, done = env.step(key, state, np.float32(0.5), params)
    print(f"{float(reward):.3f}", bool(done))
