"""A state space model as a stack of layers, each vmapped over the features."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn


class Channel(nn.Module):
    """A diagonal state space model of one feature, as a convolution with its kernel."""

    states: int = 4

    @nn.compact
    def __call__(self, signal):
        decay = self.param("decay", nn.initializers.normal(0.5), (self.states,))
        mixing = self.param("mixing", nn.initializers.normal(1.0), (self.states,))
        step = jnp.exp(self.param("log_step", nn.initializers.zeros, ()) - 3)
        times = jnp.arange(signal.shape[0])
        kernel = (0.1 * mixing * jnp.exp(-step * nn.softplus(decay) * times[:, None])).sum(1)
        lags = times[:, None] - times
        return jnp.where(lags >= 0, kernel[lags], 0.0) @ signal


Channels = nn.vmap(
    Channel, in_axes=1, out_axes=1, variable_axes={"params": 0}, split_rngs={"params": True}
)


class Stack(nn.Module):
    layers: int = 2
    width: int = 8

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.width)(x)
        for _ in range(self.layers):
            x = x + nn.Dense(self.width)(nn.gelu(Channels()(nn.LayerNorm()(x))))
        return nn.Dense(1)(nn.LayerNorm()(x))[:, 0]


model = Stack()
optimizer = optax.sgd(1e-3)


@jax.jit
def train_step(params, state, x, y):
    value, gradients = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - y) ** 2))(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, value


x = np.linspace(0, 6, 12, dtype=np.float32)[:, None]
params = model.init(jax.random.key(0), x)
state = optimizer.init(params)
for _ in range(3):
    params, state, value = train_step(params, state, x, np.sin(x[:, 0]))
    print(f"{float(value):.3f}")
