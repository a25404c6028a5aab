"""A classifier of flax linen with dropout: a TrainState, one flag for training and evaluation."""

import functools

import flax.linen as nn
import jax
import numpy as np
import optax
from flax.training.train_state import TrainState


class Classifier(nn.Module):
    classes: int = 3

    @nn.compact
    def __call__(self, x, *, train):
        x = nn.relu(nn.Dense(8)(x))
        x = nn.Dropout(0.2, deterministic=not train)(x)
        return nn.Dense(self.classes)(x)


def logits(state, params, x, key, *, train):
    return state.apply_fn({"params": params}, x, train=train, rngs={"dropout": key})


@jax.jit
def train_step(state, batch, key):
    def loss(params):
        found = logits(state, params, batch["x"], key, train=True)
        return optax.softmax_cross_entropy_with_integer_labels(found, batch["y"]).mean()

    value, gradients = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=gradients), value


@functools.partial(jax.jit, static_argnames="train")
def forward(state, x, key, train):
    return logits(state, state.params, x, key, train=train)


random = np.random.default_rng(0)
x = random.normal(size=(20, 4)).astype("float32")
y = random.integers(0, 3, size=20)
key = jax.random.key(0)

model = Classifier()
params = model.init(key, x, train=False)["params"]
for rate in (0.1, 0.01):  # a search over rates, with an optimiser for each
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(rate))
    for _ in range(2):
        for batch in ({"x": x[:12], "y": y[:12]}, {"x": x[12:], "y": y[12:]}):
            key, mine = jax.random.split(key)
            state, value = train_step(state, batch, mine)
    print(f"rate {rate}: loss {float(value):.4f}")
for train in (True, False):
    print(train, np.asarray(forward(state, x, key, train)).sum().round(3))
