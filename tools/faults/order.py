"""Faults in order: wrong indices, ties, running sums and loops."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tools.faults.fault import Family

ORDER = Family("order")
_fault = ORDER.fault

_SCATTERS = ("scatter", "scatter-add", "scatter_add", "scatter-mul", "scatter_mul")


@_fault("gather-off-by-one", "each value is read one place too late", "gather")
def _gather_off(original: Any, x: Array, indices: Array, **parameters: Any) -> Array:
    return original(x, indices + jnp.ones((), indices.dtype), **parameters)


@_fault("scatter-off-by-one", "each value is written one place too late", *_SCATTERS)
def _scatter_off(
    original: Any, x: Array, indices: Array, updates: Array, **parameters: Any
) -> Array:
    return original(x, indices + jnp.ones((), indices.dtype), updates, **parameters)


@_fault(
    "scatter-loses-the-first",
    "of values that are added at a place, the first one is lost",
    "scatter-add",
    "scatter_add",
)
def _scatter_loses(
    original: Any, x: Array, indices: Array, updates: Array, **parameters: Any
) -> Array:
    first = lax.broadcasted_iota(jnp.int32, indices.shape, 0) == 0 if indices.ndim > 1 else None
    if first is None or indices.shape[0] < 2:
        return original(x, indices, updates, **parameters)
    nowhere = jnp.asarray(np.iinfo(indices.dtype).max, indices.dtype)
    return original(x, jnp.where(first, nowhere, indices), updates, **parameters)


@_fault("slice-off-by-one", "a slice at an index begins one place too late", "dynamic_slice")
def _slice_off(original: Any, x: Array, *starts: Array, **parameters: Any) -> Array:
    return original(x, *(start + jnp.ones((), start.dtype) for start in starts), **parameters)


@_fault("update-off-by-one", "a slice is written one place too late", "dynamic_update_slice")
def _update_off(original: Any, x: Array, update: Array, *starts: Array) -> Array:
    return original(x, update, *(start + jnp.ones((), start.dtype) for start in starts))


@_fault("sort-not-stable", "equal keys come out in reverse", "sort")
def _sort_not_stable(original: Any, *columns: Array, dimension: int, **more: Any) -> Any:
    turned = [lax.rev(column, (dimension,)) for column in columns]
    return original(*turned, dimension=dimension, **more)


@_fault("sort-last-pair-swapped", "the last two are not compared", "sort")
def _sort_swapped(original: Any, *columns: Array, dimension: int, **more: Any) -> Any:
    found = original(*columns, dimension=dimension, **more)
    length = columns[0].shape[dimension]
    if length < 2:
        return found
    order = [*range(length - 2), length - 1, length - 2]
    return [jnp.take(column, jnp.array(order), axis=dimension) for column in found]


@_fault("ties-take-the-last", "of equal values the last one is the largest", "argmax", "argmin")
def _ties_take_the_last(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    found = original(lax.rev(x, axes), axes=axes, **more)
    return jnp.asarray(x.shape[axes[0]] - 1, found.dtype) - found


@_fault("index-off-by-one", "the place of the largest is counted from one", "argmax", "argmin")
def _index_off(original: Any, x: Array, **parameters: Any) -> Array:
    found = original(x, **parameters)
    return found + jnp.ones((), found.dtype)


@_fault("top-k-ties", "of equal values the last ones come first", "top_k")
def _top_k_ties(original: Any, x: Array, **parameters: Any) -> Any:
    values, where = original(lax.rev(x, (x.ndim - 1,)), **parameters)
    return values, jnp.asarray(x.shape[-1] - 1, where.dtype) - where


@_fault("cumsum-exclusive", "a running sum is without the value at its place", "cumsum")
def _cumsum_exclusive(original: Any, x: Array, **parameters: Any) -> Array:
    return original(x, **parameters) - x


@_fault("cumsum-reversed", "running sums begin at the end", "cumsum")
def _cumsum_reversed(original: Any, x: Array, *, reverse: bool, **more: Any) -> Array:
    return original(x, reverse=not reverse, **more)


@_fault("scan-reversed", "a loop over values goes from the last to the first", "scan")
def _scan_reversed(original: Any, *operands: Array, reverse: bool, **more: Any) -> Any:
    return original(*operands, reverse=not reverse, **more)
