"""Roots by Newton's method: each is sought by a loop that JAX compiles, outside of jit."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def root_find(function, guess, wanted):
    def residual(x):
        return function(x) - wanted

    def goes_on(carry):
        steps, x = carry
        return (steps < 20) & (jnp.max(jnp.abs(residual(x))) > 1e-4)

    def newton(carry):
        steps, x = carry
        return steps + 1, x - jnp.linalg.solve(jax.jacfwd(residual)(x), residual(x))

    return lax.while_loop(goes_on, newton, (0, guess))


def coupled(x):
    return jnp.array([x[0] ** 2 + x[1], jnp.sin(x[0]) + x[1] ** 3])


guess = np.array([1.0, 1.0], "float32")
for wanted in np.array([[2.0, 1.5], [2.5, 1.8], [3.0, 2.0]], "float32"):
    steps, found = root_find(coupled, guess, wanted)
    print(int(steps), f"{float(found[0]):.3f} {float(found[1]):.3f}")
