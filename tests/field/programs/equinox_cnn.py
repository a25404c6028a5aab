"""Convolutions with equinox: two activations are tried, and inference is switched on at the end."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class CNN(eqx.Module):
    conv: eqx.nn.Conv2d
    dropout: eqx.nn.Dropout
    out: eqx.nn.Linear
    activation: object
    name: str = eqx.field(static=True)

    def __init__(self, key, activation, name):
        first, second = jax.random.split(key)
        self.conv = eqx.nn.Conv2d(1, 2, 3, key=first)
        self.dropout = eqx.nn.Dropout(0.3)
        self.out = eqx.nn.Linear(2 * 4 * 4, 3, key=second)
        self.activation = activation
        self.name = name

    def __call__(self, x, key):
        x = self.activation(self.conv(x))
        return self.out(self.dropout(x, key=key).ravel())


@eqx.filter_value_and_grad
def loss(model, x, y, keys):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x, keys), y).mean()


@eqx.filter_jit
def make_step(model, state, x, y, keys):
    value, gradients = loss(model, x, y, keys)
    updates, state = optimizer.update(gradients, state)
    return eqx.apply_updates(model, updates), state, value


@eqx.filter_jit
def evaluate(model, x, keys):
    return jax.vmap(model)(x, keys).mean()


random = np.random.default_rng(0)
X = random.normal(size=(10, 1, 6, 6)).astype("float32")
Y = random.integers(0, 3, size=10)
optimizer = optax.sgd(0.1)
key = jax.random.key(0)
keys = jax.random.split(key, 10)
for activation in (jax.nn.relu, jnp.tanh):
    model = CNN(key, activation, "cnn")
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    for rows in (slice(0, 6), slice(6, 10)):
        model, state, value = make_step(model, state, X[rows], Y[rows], keys[rows])
    print(f"{activation.__name__}: {float(value):.4f}")
print(round(float(evaluate(model, X, keys)), 4))
print(round(float(evaluate(eqx.nn.inference_mode(model), X, keys)), 4))
