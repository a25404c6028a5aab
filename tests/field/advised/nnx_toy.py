"""A toy regression with flax nnx: a model is made, trained and called."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class Block(nnx.Module):
    def __init__(self, width, *, rngs):
        self.linear = nnx.Linear(width, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, x):
        return x + nnx.relu(self.norm(self.linear(x)))


class MLP(nnx.Module):
    def __init__(self, din, width, *, rngs):
        self.first = nnx.Linear(din, width, rngs=rngs)
        self.block = Block(width, rngs=rngs)
        self.last = nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.block(nnx.relu(self.first(x))))


@nnx.jit
def train_step(model, x, y):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    value, gradients = nnx.value_and_grad(loss)(model)
    params = nnx.state(model, nnx.Param)
    nnx.update(model, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients))
    return value


X = np.linspace(0, 1, 16, dtype="float32")[:, None]
Y = 0.8 * X**2 + 0.1

model = MLP(1, 8, rngs=nnx.Rngs(0))
for _ in range(2):
    print(f"{float(train_step(model, X, Y)):.3f}")
    y_pred = model(X)
    print(f"{np.asarray(y_pred).mean():.3f}")
