"""Expectation maximisation of a hidden Markov model, around a smoother that scans."""

import jax.numpy as jnp
import numpy as np
from jax import lax


def filter_states(initial, transitions, likelihoods):
    def step(predicted, likelihood):
        weighted = predicted * likelihood
        norm = weighted.sum()
        filtered = weighted / norm
        return filtered @ transitions, (jnp.log(norm), filtered, predicted)

    _, (norms, filtered, predicted) = lax.scan(step, initial, likelihoods)
    return norms.sum(), filtered, predicted


def smooth(initial, transitions, likelihoods):
    value, filtered, predicted = filter_states(initial, transitions, likelihoods)

    def step(smoothed_next, this):
        filtered, predicted_next = this
        relative = jnp.where(predicted_next > 0, smoothed_next / predicted_next, 0.0)
        smoothed = filtered * (transitions @ relative)
        return smoothed, smoothed

    _, smoothed = lax.scan(step, filtered[-1], (filtered[:-1], predicted[1:]), reverse=True)
    return value, jnp.concatenate([smoothed, filtered[-1:]])


random = np.random.default_rng(0)
observed = random.normal(size=20).astype("float32") + np.repeat([0.0, 3.0], 10).astype("float32")
means = np.array([-1.0, 1.0], "float32")
initial = np.full(2, 0.5, "float32")
transitions = np.array([[0.9, 0.1], [0.1, 0.9]], "float32")
for _ in range(3):
    likelihoods = np.exp(-0.5 * (observed[:, None] - means) ** 2)
    value, smoothed = smooth(initial, transitions, likelihoods)
    weights = np.asarray(smoothed)
    means = (weights * observed[:, None]).sum(0) / weights.sum(0)
    print(f"{float(value):.2f} {means[0]:.2f} {means[1]:.2f}")
