"""Samples of a posterior with numpyro's NUTS, then again with more data."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(y):
    mean = numpyro.sample("mean", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mean, 1), obs=y)


data = np.linspace(-1, 2, 12, dtype="float32")
sampler = MCMC(NUTS(model), num_warmup=5, num_samples=5, progress_bar=False)
for length, seed in ((8, 0), (12, 1)):
    sampler.run(jax.random.key(seed), data[:length])
    print(length, np.asarray(sampler.get_samples()["mean"]).mean().round(3))
