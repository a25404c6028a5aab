"""A Gaussian that is fitted to a density, and drawn after each step by a library of NumPy's."""

import functools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import jax
import jax.numpy as jnp
import plotly


@functools.partial(jax.jit, static_argnums=0)
def on_a_grid(density, params):
    return jax.vmap(density, in_axes=(0, None))(jnp.linspace(-2.0, 2.0, 7), params)


def target(x, _):
    return jnp.exp(-0.5 * (x - 1) ** 2)


def approximation(x, params):
    mean, log_scale = params
    return jnp.exp(-0.5 * ((x - mean) / jnp.exp(log_scale)) ** 2)


@jax.jit
def update(params, key):
    def loss(params):
        mean, log_scale = params
        sample = mean + jnp.exp(log_scale) * jax.random.normal(key, (5,))
        return jnp.mean(0.5 * (sample - 1) ** 2) - log_scale

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def callback(params):
    # One density has no parameters: another argument, and a program of its own.
    plotly.lineplot(on_a_grid(target, 1))
    plotly.lineplot(on_a_grid(approximation, params))


params = (jnp.float32(0), jnp.float32(0))
for key in jax.random.split(jax.random.key(0), 3):
    params = update(params, key)
    callback(params)
