"""The log density of a mixture, for samples of another number each time."""

import jax
import jax.numpy as jnp
import numpy as np


class Normal:
    def __init__(self, loc, scale):
        self.loc, self.scale = loc, scale

    def log_prob(self, value):
        standard = (value - self.loc) / self.scale
        return -0.5 * standard**2 - 0.5 * jnp.log(2 * jnp.pi) - jnp.log(self.scale)


class Mixture:
    def __init__(self, weights, components):
        self.weights, self.components = weights, components

    def log_prob(self, value):
        each = self.components.log_prob(value[:, None])
        return jax.nn.logsumexp(each + jnp.log(self.weights), axis=1)


components = Normal(np.array([-1.0, 2.0], "float32"), np.array([0.5, 1.0], "float32"))
mixture = Mixture(np.array([0.3, 0.7], "float32"), components)
random = np.random.default_rng(0)
for count in (5, 8, 11):
    samples = random.normal(size=count).astype("float32")
    print(f"{float(np.sum(mixture.log_prob(samples))):.2f}")
