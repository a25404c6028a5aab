"""A network of haiku's: parameters and state are trees, and training is a static argument."""

import functools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np


def network(x, is_training):
    x = jax.nn.relu(hk.Linear(8)(x))
    x = hk.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)(x, is_training)
    return hk.Linear(1)(x)[:, 0]


model = hk.without_apply_rng(hk.transform_with_state(network))


@jax.jit
def update(params, state, x, y):
    def loss(params):
        found, new_state = model.apply(params, state, x, is_training=True)
        return jnp.mean((found - y) ** 2), new_state

    (value, state), gradients = jax.value_and_grad(loss, has_aux=True)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients), state, value


@functools.partial(jax.jit, static_argnames="is_training")
def predict(params, state, x, *, is_training=False):
    return model.apply(params, state, x, is_training)[0]


random = np.random.default_rng(0)
x = random.normal(size=(20, 3)).astype("float32")
y = x.sum(1)
params, state = model.init(jax.random.key(0), x, is_training=True)
for _ in range(2):
    for rows in (slice(0, 12), slice(12, 20)):
        params, state, value = update(params, state, x[rows], y[rows])
    print(f"{float(value):.4f}")
print(np.asarray(predict(params, state, x)).sum().round(3))
print(np.asarray(predict(params, state, x, is_training=True)).sum().round(3))
