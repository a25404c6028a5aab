"""A search that is compiled ahead of time, for each number of roots that it will be asked for."""

import jax
import jax.numpy as jnp
import numpy as np


def search(roots, priors):
    def simulate(_, tree):
        visits, values = tree
        total = visits.sum(1, keepdims=True)
        scores = (values + priors * jnp.sqrt(total)) / (1 + visits)
        chosen = jax.nn.one_hot(jnp.argmax(scores, axis=1), priors.shape[1])
        return visits + chosen, values + chosen * roots[:, None]

    nothing = jnp.zeros_like(priors)
    visits, _ = jax.lax.fori_loop(0, 8, simulate, (nothing, nothing))
    return jnp.argmax(visits, axis=1)


search_of = {}
for count in (1, 4, 16):
    roots = jax.ShapeDtypeStruct((count,), jnp.float32)
    priors = jax.ShapeDtypeStruct((count, 4), jnp.float32)
    search_of[count] = jax.jit(search).lower(roots, priors).compile()

random = np.random.default_rng(0)
for count in (4, 1, 16):
    roots, priors = random.random(count, "float32"), random.random((count, 4), "float32")
    print(np.asarray(search_of[count](roots, priors)).tolist())
