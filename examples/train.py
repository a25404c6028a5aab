import jax
import numpy as np


@jax.jit
def step(w, x):
    return w - 0.1 * (x @ w).mean()


w = np.ones(4, np.float32)
for length in 20, 31, 20, 934, 57:
    w = step(w, np.ones((length, 4), np.float32))
