"""A training loop that compiles twice: the first step gets a Python number, the second an array.

Run it with ``jitcount run examples/weak_type.py``.
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(weight, batch, rate):
    gradient = jax.grad(lambda w: jnp.mean((batch * w - 1.0) ** 2))(weight)
    return weight - rate * gradient


def main():
    batch, rate = np.linspace(0.0, 1.0, 64, dtype=np.float32), np.float32(0.1)
    weight = 0.5  # a Python number is weakly typed; what the step returns is not
    for _ in range(10):
        weight = train_step(weight, batch, rate)
    print(f"weight {float(weight):.3f}")


if __name__ == "__main__":
    main()
