"""A variational autoencoder: random keys are split for each batch, and images are drawn."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(1e-2)


def init(key):
    first, second = jax.random.split(key)
    return {
        "encoder": 0.1 * jax.random.normal(first, (16, 4)),
        "decoder": 0.1 * jax.random.normal(second, (2, 16)),
    }


def negative_elbo(params, key, x):
    mean, deviation = jnp.split(x @ params["encoder"], 2, axis=1)
    latent = mean + jnp.exp(deviation) * jax.random.normal(key, mean.shape)
    drawn = latent @ params["decoder"]
    divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(2 * deviation) - 1 - 2 * deviation, axis=1)
    return jnp.mean(jnp.sum((drawn - x) ** 2, axis=1) + divergence)


@jax.jit
def train_step(params, state, key, x):
    value, gradients = jax.value_and_grad(negative_elbo)(params, key, x)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, value


@functools.partial(jax.jit, static_argnums=2)
def draw(params, key, count):
    return jax.random.normal(key, (count, 2)) @ params["decoder"]


images = np.random.default_rng(0).normal(size=(20, 16)).astype("float32")
key = jax.random.key(0)
key, mine = jax.random.split(key)
params = init(mine)
state = optimizer.init(params)
for _ in range(2):
    for rows in (slice(0, 8), slice(8, 16), slice(16, 20)):
        key, mine = jax.random.split(key)
        params, state, value = train_step(params, state, mine, images[rows])
    print(f"{float(value):.3f}")
for count in (4, 4, 9):
    key, mine = jax.random.split(key)
    print(draw(params, mine, count).shape)
print(draw(params, jax.random.PRNGKey(0), 4).shape)  # a key of the old kind
