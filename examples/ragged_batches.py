"""A data loader whose batches have different lengths: one compile for each length.

Run it with ``jitcount run examples/ragged_batches.py``.
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def mean_length(tokens):
    return jnp.mean(jnp.sum(tokens != 0, axis=1))


def batches(count):
    random = np.random.default_rng(0)
    for _ in range(count):
        yield random.integers(1, 100, size=(8, random.integers(20, 40)), dtype=np.int32)


def main():
    total = 0.0
    for batch in batches(12):
        total += float(mean_length(batch))
    print(f"mean length {total / 12:.1f}")


if __name__ == "__main__":
    main()
