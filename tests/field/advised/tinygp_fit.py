"""A Gaussian process whose scale and noise are fitted; they begin as Python floats."""

import jax
import jax.numpy as jnp
import numpy as np

X = np.linspace(0, 3, 12, dtype="float32")
Y = np.sin(2 * X)


def log_likelihood(scale, noise):
    distances = (X[:, None] - X) / scale
    covariance = jnp.exp(-0.5 * distances**2) + noise * jnp.eye(12)
    factor = jnp.linalg.cholesky(covariance)
    whitened = jax.scipy.linalg.solve_triangular(factor, Y, lower=True)
    return -0.5 * whitened @ whitened - jnp.sum(jnp.log(jnp.diag(factor)))


@jax.jit
def fit_step(scale, noise):
    value, slopes = jax.value_and_grad(log_likelihood, argnums=(0, 1))(scale, noise)
    clipped = [jnp.clip(slope, -1.0, 1.0) * np.float32(0.05) for slope in slopes]
    return scale + clipped[0], noise + jnp.maximum(clipped[1], np.float32(-0.01)), value


scale, noise = 1.0, 0.1
for _ in range(4):
    scale, noise, value = fit_step(scale, noise)
    print(f"{float(value):.2f} {float(scale):.2f}")
