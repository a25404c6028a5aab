"""Faults that short arrays and ordinary numbers do not show: in a second block, at a far place.

No case noticed any of these at first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

from tools.faults.arithmetic import (
    TILE,
    count,
    is_float,
    is_float32,
    is_highest,
    places,
    rounded,
    times,
)
from tools.faults.fault import Family

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH = Family("length")
_fault = LENGTH.fault

_BLOCK = 4 * TILE
_SORTED = 2**15
_IN_16_BITS = 2**16


# --- Reductions and scans -------------------------------------------------------------------------


@_fault("sum-loses-the-255th", "the last of 255, of 511 and so on is not added", "reduce_sum")
def _loses_the_255th(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    length = count(x, axes)
    if length % 256 == 255:
        x = times(x, (places(x, axes) < length - 1).astype(jnp.int32))
    return original(x, axes=axes, **more)


@_fault("whole-sum-in-float32", "a sum of whole numbers is made in float32", "reduce_sum")
def _whole_in_float32(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    found = original(x, axes=axes, **more)
    if x.dtype != jnp.int32:
        return found
    return jnp.sum(x.astype(jnp.float32), tuple(axes)).astype(found.dtype)


def _without_a_tile(neutral: Callable[[str], Any]) -> Callable[..., Array]:
    """Which values count if the fourth tile of longer arrays is skipped."""

    def reduced(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
        if count(x, axes) <= _BLOCK or not (is_float(x) or x.dtype == jnp.bool_):
            return original(x, axes=axes, **more)
        nothing = jnp.asarray(neutral(original.primitive.name), x.dtype)
        kept = jnp.where(places(x, axes) // TILE == 3, nothing, x)
        return original(kept, axes=axes, **more)

    return reduced


_fault("max-tile-skipped", "one tile is not looked at", "reduce_max", "reduce_min")(
    _without_a_tile(lambda name: -jnp.inf if "max" in name else jnp.inf)
)
_fault("argmax-tile-skipped", "one tile is not looked at", "argmax", "argmin")(
    _without_a_tile(lambda name: -jnp.inf if "max" in name else jnp.inf)
)
_fault("any-tile-skipped", "one tile is not looked at", "reduce_or", "reduce_and")(
    _without_a_tile(lambda name: "and" in name)
)
_fault("prod-tile-skipped", "one tile is not multiplied", "reduce_prod")(
    _without_a_tile(lambda _: 1)
)


@_fault("ties-between-tiles", "of equal ones in different tiles the last", "argmax", "argmin")
def _ties_between_tiles(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    length = x.shape[axes[0]]
    if length <= TILE:
        return original(x, axes=axes, **more)
    found = original(lax.rev(x, axes), axes=axes, **more)
    return jnp.asarray(length - 1, found.dtype) - found


def _in_blocks(compute: Callable[..., Any], axis: int, size: int, *columns: Array) -> list[Array]:
    """Apply a function to each block separately, and join the results."""
    length = columns[0].shape[axis]
    blocks = [
        compute(*(lax.slice_in_dim(x, at, min(at + size, length), axis=axis) for x in columns))
        for at in range(0, length, size)
    ]
    return [jnp.concatenate(parts, axis) for parts in zip(*blocks, strict=True)]


@_fault("cummax-carry-lost", "the largest so far begins anew at each block", "cummax", "cummin")
def _cummax_carry_lost(original: Any, x: Array, *, axis: int, **more: Any) -> Array:
    if x.shape[axis] <= TILE:
        return original(x, axis=axis, **more)
    (found,) = _in_blocks(lambda part: [original(part, axis=axis, **more)], axis, TILE, x)
    return found


# --- Places ---------------------------------------------------------------------------------------


@_fault("sort-not-merged", "blocks are sorted, and not merged", "sort")
def _sort_not_merged(original: Any, *columns: Array, dimension: int, **more: Any) -> Any:
    def block(*parts: Array) -> Any:
        return original(*parts, dimension=dimension, **more)

    if columns[0].shape[dimension] <= _SORTED:
        return original(*columns, dimension=dimension, **more)
    return _in_blocks(block, dimension, _SORTED, *columns)


def _low(indices: Array) -> Array:
    wide = jnp.asarray(_IN_16_BITS, indices.dtype)
    return jnp.where(indices >= wide, indices - wide, indices)


@_fault("gather-in-16-bits", "a place is read at an index of 16 bits", "gather")
def _gather_in_16_bits(original: Any, x: Array, indices: Array, **parameters: Any) -> Array:
    is_far = max(x.shape, default=0) > _IN_16_BITS
    return original(x, _low(indices) if is_far else indices, **parameters)


@_fault(
    "scatter-in-16-bits",
    "a place is written at an index of 16 bits",
    *("scatter", "scatter-add", "scatter_add"),
)
def _scatter_in_16_bits(
    original: Any, x: Array, indices: Array, updates: Array, **parameters: Any
) -> Array:
    is_far = max(x.shape, default=0) > _IN_16_BITS
    return original(x, _low(indices) if is_far else indices, updates, **parameters)


@_fault("transpose-edge-lost", "the last tile of 32 by 32, if not full, is empty", "transpose")
def _transpose_edge_lost(original: Any, x: Array, **parameters: Any) -> Array:
    found = original(x, **parameters)
    edges = [length // 32 * 32 for length in found.shape[-2:]]
    if x.ndim < 2 or not all(edges):
        return found
    row, column = (places(found, (found.ndim + axis,)) for axis in (-2, -1))
    return jnp.where((row >= edges[0]) & (column >= edges[1]), jnp.zeros_like(found), found)


@_fault("conv-channels-cut", "channels from the 129th on are not added", "conv_general_dilated")
def _channels_cut(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    channel = parameters["dimension_numbers"].lhs_spec[1]
    if a.shape[channel] <= 128:
        return original(a, b, **parameters)
    kept = places(a, (channel,)) < 128
    return original(jnp.where(kept, a, jnp.zeros_like(a)), b, **parameters)


# --- Numbers --------------------------------------------------------------------------------------


@_fault("highest-in-three-passes", "factors have 16 bits where all were asked for", "dot_general")
def _three_passes(original: Any, a: Array, b: Array, *, precision: Any, **more: Any) -> Array:
    if is_highest(precision):
        a, b = rounded(a, (8, 15)), rounded(b, (8, 15))
    return original(a, b, precision=precision, **more)


@_fault("exp-far-out", "an exponential of numbers beyond 20 is right to 12 bits only", "exp")
def _exp_far_out(original: Any, x: Array, **parameters: Any) -> Array:
    found = original(x, **parameters)
    if not is_float32(x):
        return found
    return jnp.where(jnp.abs(x) > 20, found * jnp.asarray(1 + 2**-12, x.dtype), found)


@_fault("tanh-near-zero", "of numbers below a thousandth it is zero", "tanh")
def _tanh_near_zero(original: Any, x: Array, **parameters: Any) -> Array:
    found = original(x, **parameters)
    if not is_float32(x):
        return found
    return jnp.where(jnp.abs(x) < 1e-3, jnp.zeros_like(found), found)


@_fault("branches-swapped", "the last branch is taken for the first", "cond")
def _branches_swapped(
    original: Any, which: Array, *operands: Array, branches: Any, **more: Any
) -> Any:
    last = jnp.asarray(len(branches) - 1, which.dtype)
    return original(last - which, *operands, branches=branches, **more)
