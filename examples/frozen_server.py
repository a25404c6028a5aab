"""A server that warms up for the sizes it knows, and refuses to compile while it serves."""

import jax
import jax.numpy as jnp
import numpy as np

import jitcount

SIZES = (16, 32)


@jax.jit
def score(request):
    return jnp.tanh(request).sum()


def serve(request):
    try:
        with jitcount.freeze():
            return f"score {float(score(request)):.1f}"
    except jitcount.RecompileError as error:
        return f"refused: {error.causes[0]}"


def main():
    for size in SIZES:
        score(np.zeros(size, np.float32))
    for size in (16, 32, 33):
        print(serve(np.ones(size, np.float32)))


if __name__ == "__main__":
    main()
