"""A network and an optimiser of jax.example_libraries."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.example_libraries import optimizers, stax

init, predict = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
opt_init, opt_update, get_params = optimizers.momentum(0.1, mass=0.9)


def loss(params, batch):
    inputs, targets = batch
    return -jnp.mean(jnp.sum(predict(params, inputs) * targets, axis=1))


@jax.jit
def update(i, opt_state, batch):
    return opt_update(i, jax.grad(loss)(get_params(opt_state), batch), opt_state)


random = np.random.default_rng(0)
x = random.normal(size=(20, 4)).astype("float32")
y = np.eye(2, dtype="float32")[random.integers(0, 2, size=20)]
_, params = init(jax.random.key(0), (-1, 4))
opt_state = opt_init(params)
step = 0
for _ in range(3):
    for rows in (slice(0, 12), slice(12, 20)):
        opt_state = update(step, opt_state, (x[rows], y[rows]))
        step += 1
print(round(float(loss(get_params(opt_state), (x, y))), 3))
