"""Arrays padded to a size, or cut to it: on the host, where no program is compiled for it.

And what stands for an array of another size, where only its type matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._buckets.places import Ragged

    Fill = Callable[[Any], Any]


def fitted(
    leaves: list[Any], ragged: Sequence[Ragged], sizes: Sequence[int], fill: Fill | None = None
) -> list[Any]:
    """The arrays of an argument, with the ragged ones at their sizes.

    Args:
        leaves: all arrays of the argument; this list is changed.
        ragged: which of them are ragged.
        sizes: the size of each length.
        fill: returns for a dtype what to pad with, if not with what each says.
    """
    for one in ragged:
        leaf = leaves[one.leaf]
        value = one.fill if fill is None else fill(leaf.dtype)
        if type(leaf) is np.ndarray:
            leaves[one.leaf] = _on_host(leaf, one.axes, sizes, value)
        elif isinstance(leaf, jax.core.Tracer):
            leaves[one.leaf] = _traced(leaf, one.axes, sizes, value)
        else:
            leaves[one.leaf] = _of_jax(leaf, one, sizes, value)
    return leaves


def _on_host(
    array: np.ndarray, axes: Sequence[tuple[int, int]], sizes: Sequence[int], fill: Any
) -> np.ndarray:
    if len(axes) == 1 and axes[0][0] == 0:  # most are ragged in their first axis
        length, size = len(array), sizes[axes[0][1]]
        if length == size:
            return array
        if length > size:
            return array[:size]
        longer = (size, *array.shape[1:])
        if not fill:  # nearly always: memory that is zero from the beginning costs less
            padded = np.zeros(longer, array.dtype)
        else:
            padded = np.empty(longer, array.dtype)
            padded[length:] = fill
        padded[:length] = array
        return padded
    shape = list(array.shape)
    for axis, number in axes:
        shape[axis] = sizes[number]
    if tuple(shape) == array.shape:
        return array
    kept = tuple(slice(min(pair)) for pair in zip(shape, array.shape, strict=True))
    padded = np.full(shape, fill, array.dtype)
    padded[kept] = array[kept]
    return padded


def _of_jax(array: Any, one: Ragged, sizes: Sequence[int], fill: Any) -> Any:
    """An array of JAX's by way of the host; one that is bound to a device comes back to it."""
    if all(array.shape[axis] == sizes[number] for axis, number in one.axes):
        return array
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        raise TypeError(f"random keys cannot be padded; {one.place} holds {array.dtype}")
    padded = _on_host(np.asarray(array), one.axes, sizes, fill)
    if getattr(array, "committed", False):
        return jax.device_put(padded, array.sharding)
    return padded


def _traced(array: Any, axes: Sequence[tuple[int, int]], sizes: Sequence[int], fill: Any) -> Any:
    """An array under jit, vmap or grad; what it is padded with is a constant of the program."""
    change = [(0, 0, 0)] * array.ndim
    for axis, number in axes:
        change[axis] = (0, sizes[number] - array.shape[axis], 0)  # less than nothing cuts
    if not any(high for _, high, _ in change):
        return array
    return jax.lax.pad(array, np.asarray(fill, array.dtype), change)


def abstract(leaf: Any, shape: tuple[int, ...] | None = None) -> Any:
    """What stands for an array without its memory: the same for JAX, which compiles by types.

    It is an array of NumPy's where it can be: JAX has its own ways with their dtypes, and some
    libraries take a `jax.ShapeDtypeStruct` for no array.
    """
    if not isinstance(leaf, np.ndarray | jax.Array | jax.ShapeDtypeStruct):
        return leaf
    shape = leaf.shape if shape is None else shape
    if isinstance(leaf, np.ndarray):
        return no_array(shape, leaf.dtype)
    is_traced = isinstance(leaf, jax.core.Tracer)
    is_bound = not is_traced and getattr(leaf, "committed", True)
    is_weak = bool(getattr(leaf, "weak_type", False))
    if not is_bound and not is_weak and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return no_array(shape, leaf.dtype)
    sharding = leaf.sharding if is_bound else None
    return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=sharding, weak_type=is_weak)


def no_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array of one element, which is repeated."""
    return np.broadcast_to(np.zeros((), dtype), shape)
