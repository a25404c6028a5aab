"""An equinox network and its training step, with a filtered jit around the step alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


@eqx.filter_jit
def make_step(model, x, y):
    def loss(model):
        return jnp.mean((jax.vmap(model)(x)[:, 0] - y) ** 2)

    value, gradients = eqx.filter_value_and_grad(loss)(model)
    updates = jax.tree.map(lambda g: -0.1 * g, gradients)
    return eqx.apply_updates(model, updates), value


key = jax.random.PRNGKey(5678)
model = eqx.nn.MLP(in_size=2, out_size=1, width_size=8, depth=2, key=key)
x = np.random.default_rng(0).normal(size=(16, 2)).astype("float32")
for _ in range(3):
    model, value = make_step(model, x, x.sum(1))
    print(f"{float(value):.3f}")
