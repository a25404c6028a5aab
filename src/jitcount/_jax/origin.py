"""Whose code something is: JAX's, or a user's."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path


def _packages() -> Path:
    """The folder that JAX is installed in; it is found without being imported.

    What reads a ledger needs a `CallSite`, and nothing of JAX.
    """
    found = importlib.util.find_spec("jax")
    if found is None or found.origin is None:
        raise ImportError("jitcount needs JAX, which is not installed: pip install jax")
    return Path(found.origin).parents[1]


_PACKAGES = _packages()

JAX_DIRECTORIES = tuple(f"{_PACKAGES / name}{os.sep}" for name in ("jax", "jaxlib"))
"""Where JAX is installed; ``jaxtyping`` beside it begins with the same letters, and is not JAX."""


def is_module_of_jax(name: str) -> bool:
    """Whether a module of this name belongs to JAX.

    >>> is_module_of_jax("jax.numpy"), is_module_of_jax("jaxtyping")
    (True, False)
    """
    return name.partition(".")[0] in {"jax", "jaxlib"}


def is_made_by_jax(fun: object) -> bool:
    """Whether `fun`, found in a jit wrapper, was given to `jax.jit` by JAX and not by a user.

    A user gets hold of JAX's functions by their public names: of ``jax.jit(jnp.sum)`` the function
    is what stands in ``jax.numpy``. Of JAX's own jits it is what the decorator replaced, or a
    function made on the spot for one primitive: nothing stands under that name, or another thing,
    or the name is private.
    """
    if type(fun) is not types.FunctionType or not is_module_of_jax(str(fun.__module__)):
        return False
    if hasattr(fun, "__wrapped__"):  # jax.vmap(jnp.sum), handed to jit by the user
        return False
    public = getattr(sys.modules.get(fun.__module__), fun.__name__, None)
    return fun.__name__.startswith("_") or public is not fun
