"""A training of plain parameters, whose optimizer is initialised outside of jit."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

random = np.random.default_rng(0)
params = {
    "a": {"w": random.normal(size=(3, 8)).astype("float32"), "b": np.zeros(8, "float32")},
    "b": {"w": random.normal(size=(8, 4)).astype("float32"), "b": np.zeros(4, "float32")},
    "c": {"w": random.normal(size=(4, 1)).astype("float32"), "b": np.zeros(1, "float32")},
}
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))


def loss(params, x, y):
    for layer in params.values():
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean((x[:, 0] - y) ** 2)


@jax.jit
def step(params, state, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, value


x = random.normal(size=(16, 3)).astype("float32")
state = optimizer.init(params)
for _ in range(3):
    params, state, value = step(params, state, x, np.sign(x.sum(1)))
    print(f"{float(value):.3f}")
