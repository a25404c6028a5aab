"""Random keys as the numbers that they hold, and back.

`jax.random.key_data` and `wrap_key_data` are public, but a key's dtype does not say in public which
generator it is for: `_impl` does. Where a release has it otherwise, the dtype's name is read.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_BY_TAG = {"fry": "threefry2x32", "rbg": "rbg", "urbg": "unsafe_rbg"}


def is_key(dtype: Any) -> bool:
    """Whether a dtype is that of random keys."""
    return dtype is not None and bool(jnp.issubdtype(dtype, jax.dtypes.extended))


def numbers_of(keys: Any) -> np.ndarray:
    """The numbers that random keys hold, along new last axes."""
    return np.asarray(jax.random.key_data(keys))


def on_host(leaf: Any) -> np.ndarray:
    """An array as NumPy has it; of random keys the numbers that they hold."""
    return numbers_of(leaf) if is_key(getattr(leaf, "dtype", None)) else np.asarray(leaf)


def keys_of(numbers: np.ndarray, dtype: Any) -> Any:
    """Random keys of a dtype that hold these numbers."""
    impl = getattr(dtype, "_impl", None) or _BY_TAG.get(dtype.name[len("key<") : -1])
    return jax.random.wrap_key_data(jnp.asarray(numbers), impl=impl)
