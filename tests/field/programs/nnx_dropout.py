"""A regression with flax nnx: the model is trained, evaluated and trained on."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Regressor(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(3, 8, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.out = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(self.dropout(nnx.relu(self.hidden(x))))


@nnx.jit
def train_step(model, optimizer, x, y):
    value, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
    optimizer.update(model, gradients)
    return value


@nnx.jit
def predict(model, x):
    return model(x)


random = np.random.default_rng(0)
x = random.normal(size=(24, 3)).astype("float32")
y = x.sum(1, keepdims=True)

model = Regressor(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
for epoch in range(2):
    model.train()
    for start in range(0, 24, 16):
        value = train_step(model, optimizer, x[start : start + 16], y[start : start + 16])
    noisy = predict(model, x)
    model.eval()
    print(epoch, round(float(value), 4), round(float(predict(model, x).mean()), 4))
