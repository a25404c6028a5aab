"""What lies in the last tile, which is not full: a mask that is wrong there loses it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jitcount._suite.jitted import jitted, same_bits

# Each row rises: its last value is the largest, and less its sign the smallest.
_RISING = np.arange(3 * 257, dtype=np.float32).reshape(3, 257)

END_CASES = (
    jitted(
        "extremes-at-the-end",
        "the largest and the smallest are found where they are the last of 257",
        lambda x: [
            *(jnp.max(x, 1), jnp.min(-x, 1)),
            *(found.astype("int32") for found in (jnp.argmax(x, 1), jnp.argmin(-x, 1))),
        ],
        (_RISING,),
        same_bits(lambda x: [x.max(1), (-x).min(1), x.argmax(1), (-x).argmin(1)]),
    ),
)
