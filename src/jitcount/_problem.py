"""The problem that started the project: one jitted sum, called on two shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

# Made once, here. A wrapper made inside the function would share JAX's compile cache, so that the
# compile counts would be the same, but every call would pay for a new wrapper: about five times
# the dispatch (benchmarks/variants.py keeps that version beside this one).
_jitted_sum = jax.jit(jnp.sum)

_ARRAYS = (jax.Array, np.ndarray)


def cache_independent_count(x_a: jax.Array | np.ndarray, x_b: jax.Array | np.ndarray) -> jax.Array:
    """Sum two 1-D arrays of any lengths with one jitted ``jnp.sum``, and add the results.

    `jax.jit` compiles once per shape and dtype: two lengths cost two compiles of ``sum``, a length
    that was seen before costs none. The addition is an eager operation, compiled as ``add``.

    >>> import jax.numpy as jnp
    >>> print(cache_independent_count(jnp.array([1.0, 2.0]), jnp.array([3.0])))
    6.0

    Args:
        x_a: a 1-D array, of any dtype that ``jnp.sum`` takes; it may be empty.
        x_b: another one, of any length; dtypes are mixed by JAX's promotion.

    Returns:
        A 0-d array: ``sum(x_a) + sum(x_b)``.

    Raises:
        TypeError: an argument is not an array.
        ValueError: an argument is an array that is not 1-D.
    """
    _require_1d("x_a", x_a)
    _require_1d("x_b", x_b)
    return _jitted_sum(x_a) + _jitted_sum(x_b)


def _require_1d(name: str, value: object) -> None:
    if not isinstance(value, _ARRAYS):
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        remedy = f"; pass jnp.asarray({name})" if isinstance(value, list | tuple) else ""
        raise TypeError(f"cache_independent_count takes 1-D arrays; {name} is a {kind}{remedy}")
    if value.ndim != 1:
        raise ValueError(
            f"cache_independent_count takes 1-D arrays; {name} has shape {value.shape}"
        )
