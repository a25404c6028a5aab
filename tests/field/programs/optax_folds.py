"""Cross-validation with optax: a schedule, and for each fold a training step of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

random = np.random.default_rng(0)
X = random.normal(size=(23, 5)).astype("float32")
Y = X @ np.arange(5, dtype="float32")


def make_fit(rate):
    schedule = optax.cosine_decay_schedule(rate, 20)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))

    @jax.jit
    def fit_step(params, state, x, y):
        gradients = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    return optimizer, fit_step


@jax.jit
def error(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


folds = np.array_split(np.arange(len(X)), 3)  # of 8, 8 and 7 rows
for number, held_out in enumerate(folds):
    kept = np.setdiff1d(np.arange(len(X)), held_out)
    optimizer, fit_step = make_fit(0.1)
    params = {"w": jnp.zeros(5), "b": jnp.zeros(())}
    state = optimizer.init(params)
    for _ in range(3):
        params, state = fit_step(params, state, X[kept], Y[kept])
    print(number, round(float(error(params, X[held_out], Y[held_out])), 3))
