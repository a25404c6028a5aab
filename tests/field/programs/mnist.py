"""Digits by a small network in plain JAX; the last batch of an epoch is shorter."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
IMAGES = random.normal(size=(80, 64)).astype("float32")
LABELS = random.integers(0, 10, size=80)
BATCH = 32


def init(sizes):
    shapes = itertools.pairwise(sizes)
    return [
        {"w": jnp.asarray(random.normal(size=s).astype("float32") / 8), "b": jnp.zeros(s[1])}
        for s in shapes
    ]


def predict(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params, batch):
    chosen = jax.nn.one_hot(batch["y"], 10)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(predict(params, batch["x"])) * chosen, axis=1))


@jax.jit
def step(params, batch, rate):
    value, gradients = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients), value


@jax.jit
def accuracy(params, x, y):
    return jnp.mean(jnp.argmax(predict(params, x), axis=1) == y)


params = init([64, 16, 10])
for epoch in range(3):
    rate = 0.1 if epoch < 2 else np.float32(0.05)  # the schedule came as an array
    for start in range(0, len(IMAGES), BATCH):
        batch = {"x": IMAGES[start : start + BATCH], "y": LABELS[start : start + BATCH]}
        params, value = step(params, batch, rate)
    right = accuracy(params, IMAGES, LABELS)
    print(f"epoch {epoch}: loss {float(value):.4f}, right {float(right):.3f}")
