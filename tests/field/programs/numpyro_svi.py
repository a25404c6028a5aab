"""Variational inference with numpyro, in mini-batches: the last one is shorter."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal


def model(x, y):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(slope * x, 0.5), obs=y)


random = np.random.default_rng(0)
x = random.normal(size=20).astype("float32")
y = (2 * x).astype("float32")
svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
state = svi.init(jax.random.key(0), x[:12], y[:12])
update = jax.jit(svi.update)
for _ in range(3):
    for rows in (slice(0, 12), slice(12, 20)):
        state, loss = update(state, x[rows], y[rows])
print(f"{float(loss):.3f}")
