"""The same sum of two arrays in other ways: by hand, naively, and without jit."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import jitcount

Variant = Callable[[jax.Array, jax.Array], jax.Array]

_hoisted_sum = jax.jit(jnp.sum)


def hoisted_by_hand(x_a: jax.Array, x_b: jax.Array) -> jax.Array:
    """What an expert would write in place: the least that a cached call can cost."""
    return _hoisted_sum(x_a) + _hoisted_sum(x_b)


def wrapper_per_call(x_a: jax.Array, x_b: jax.Array) -> jax.Array:
    """The naive reading of "a jitted sum": a new wrapper at every call."""
    jitted_sum = jax.jit(jnp.sum)
    return jitted_sum(x_a) + jitted_sum(x_b)


def plain(x_a: jax.Array, x_b: jax.Array) -> jax.Array:
    """The sum without a jit of its own."""
    return jnp.sum(x_a) + jnp.sum(x_b)


VARIANTS: dict[str, Variant] = {
    "cache_independent_count": jitcount.cache_independent_count,
    "wrapper-per-call": wrapper_per_call,
    "plain": plain,
}


def array(length: int) -> jax.Array:
    """An array of ones on the device, made without a compile."""
    return jax.device_put(np.ones(length, np.float32))
