"""A server that pads requests to a few lengths, is warmed up for them, and then may not compile."""

import jax
import jax.numpy as jnp
import numpy as np

import jitcount

BUCKETS = (8, 16, 32)


@jax.jit
def answer(weights, tokens, mask):
    scores = jnp.where(mask, weights[tokens], -jnp.inf)
    return jax.nn.softmax(scores) @ jnp.arange(tokens.shape[0])


def serve(weights, request):
    length = next(size for size in BUCKETS if size >= len(request))
    tokens = np.zeros(length, np.int32)
    tokens[: len(request)] = request
    return answer(weights, tokens, np.arange(length) < len(request))


weights = jnp.linspace(0, 1, 50)
for size in BUCKETS:
    serve(weights, [0] * size)
with jitcount.freeze():
    for length in (3, 8, 11, 30, 16, 1):
        print(length, round(float(serve(weights, list(range(length)))), 3))
    try:
        answer(weights, np.zeros(40, np.int32), np.ones(40, bool))
    except jitcount.RecompileError:
        print("refused")
