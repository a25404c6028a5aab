"""Faults of structure: values are lost, counted twice or taken from the wrong place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

from tools.faults.arithmetic import (
    LANES,
    TILE,
    as_matrices,
    count,
    is_float,
    places,
    product,
    times,
)
from tools.faults.fault import Family

if TYPE_CHECKING:
    from collections.abc import Callable

STRUCTURE = Family("structure")
_fault = STRUCTURE.fault


def _if(condition: Array) -> Array:
    """How often values count: once if the condition holds, else never."""
    return condition.astype(jnp.int32)


# --- Sums -----------------------------------------------------------------------------------------


def _counted(
    how_often: Callable[[Array, int], Array], concerns: Callable[[int], bool]
) -> Callable[..., Array]:
    """A sum that counts each value as often as a function of its place and of their number says."""

    def summed(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
        length = count(x, axes)
        if concerns(length):
            x = times(x, how_often(places(x, axes), length))
        return original(x, axes=axes, **more)

    return summed


def _is_ragged(length: int) -> bool:
    """Whether the last of several tiles is not full."""
    return length > LANES and length % LANES != 0


_fault("sum-loses-the-end", "the last 1,024 of more values are not added", "reduce_sum")(
    _counted(lambda place, length: _if(place < length - TILE), lambda length: length > TILE)
)
_fault("sum-tile-twice", "a tile of 128 is added twice, where there are two", "reduce_sum")(
    _counted(lambda place, _: 1 + _if(place // LANES == 1), lambda length: length >= 2 * LANES)
)
_fault("sum-lane-skipped", "one lane of 128 is not added", "reduce_sum")(
    _counted(lambda place, _: _if(place % LANES != LANES - 1), lambda length: length >= LANES)
)
_fault("sum-mask-drops-the-end", "a last tile that is not full is not added", "reduce_sum")(
    _counted(lambda place, length: _if(place < length // LANES * LANES), _is_ragged)
)


@_fault("sum-padded-with-ones", "a last tile is filled with ones, not with zeros", "reduce_sum")
def _padded_with_ones(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    total = original(x, axes=axes, **more)
    if not _is_ragged(count(x, axes)):
        return total
    return total + jnp.asarray(-count(x, axes) % LANES, total.dtype)


@_fault("sum-tile-shifted", "the second tile of 128 is read one value too late", "reduce_sum")
def _tile_shifted(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    if x.shape[axes[-1]] <= 2 * LANES:
        return original(x, axes=axes, **more)
    place = lax.broadcasted_iota(jnp.int32, x.shape, axes[-1])
    late = jnp.roll(x, -1, axes[-1])
    return original(jnp.where(place // LANES == 1, late, x), axes=axes, **more)


@_fault("sum-of-another-axis", "rows are read as if they were columns", "reduce_sum")
def _another_axis(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    if x.ndim < 2:
        return original(x, axes=axes, **more)
    turned = jnp.swapaxes(x, -1, -2).reshape(x.shape)
    return original(turned, axes=axes, **more)


# --- The largest and the smallest -----------------------------------------------------------------


def _padded_with_zero(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    found = original(x, axes=axes, **more)
    if count(x, axes) % LANES == 0:
        return found
    zero = jnp.zeros_like(found)
    return lax.max(found, zero) if "max" in original.primitive.name else lax.min(found, zero)


_fault("max-padded-with-zero", "a last tile is filled with 0 for the largest", "reduce_max")(
    _padded_with_zero
)
_fault("min-padded-with-zero", "a last tile is filled with 0 for the smallest", "reduce_min")(
    _padded_with_zero
)


def _drops_the_end(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    length = count(x, axes)
    if length <= LANES or length % LANES == 0 or not is_float(x):
        return original(x, axes=axes, **more)
    neutral = -jnp.inf if "max" in original.primitive.name else jnp.inf
    kept = places(x, axes) < length // LANES * LANES
    return original(jnp.where(kept, x, jnp.asarray(neutral, x.dtype)), axes=axes, **more)


_fault(
    "max-drops-the-end", "a last tile that is not full is not looked at", "reduce_max", "argmax"
)(_drops_the_end)
_fault(
    "min-drops-the-end", "a last tile that is not full is not looked at", "reduce_min", "argmin"
)(_drops_the_end)


# --- Products -------------------------------------------------------------------------------------


def _turned(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    if b.ndim < 2:
        return original(a, b, **parameters)
    return original(a, jnp.swapaxes(b, -1, -2).reshape(b.shape), **parameters)


_fault("dot-operand-transposed", "a factor is read with rows and columns swapped", "dot_general")(
    _turned
)


@_fault("dot-wrong-batch", "each product of a batch takes the next one's factor", "dot_general")
def _wrong_batch(
    original: Any, a: Array, b: Array, *, dimension_numbers: Any, **more: Any
) -> Array:
    (_, (_, batch)) = dimension_numbers
    if batch:
        b = jnp.roll(b, 1, batch[-1])
    return original(a, b, dimension_numbers=dimension_numbers, **more)


def _terms(
    how_often: Callable[[Array, int], Array], concerns: Callable[[int], bool]
) -> Callable[..., Array]:
    """A product that counts each term as often as a function of its place and their number says."""

    def multiplied(
        original: Any, a: Array, b: Array, *, dimension_numbers: Any, **more: Any
    ) -> Array:
        left, right, shape = as_matrices(a, b, dimension_numbers)
        if not concerns(left.shape[2]):
            return original(a, b, dimension_numbers=dimension_numbers, **more)
        left = times(left, how_often(places(left, (2,)), left.shape[2]))
        return product(original, left, right, shape, **more)

    return multiplied


_fault("dot-mask-drops-the-end", "the last of the terms, less than eight, are lost", "dot_general")(
    _terms(
        lambda place, length: _if(place < length // 8 * 8),
        lambda length: length > 8 and length % 8 != 0,
    )
)
_fault("dot-tile-lost", "the last eight of more terms are lost", "dot_general")(
    _terms(lambda place, length: _if(place < length - 8), lambda length: length > 8)
)
_fault("dot-tile-twice", "the first eight of more terms are added twice", "dot_general")(
    _terms(lambda place, _: 1 + _if(place < 8), lambda length: length > 8)
)


@_fault("dot-edge-row-lost", "the last row of a product stays empty", "dot_general")
def _edge_row_lost(
    original: Any, a: Array, b: Array, *, dimension_numbers: Any, **more: Any
) -> Array:
    left, right, shape = as_matrices(a, b, dimension_numbers)
    rows = left.shape[1]
    if rows == 1:
        return original(a, b, dimension_numbers=dimension_numbers, **more)
    left = times(left, _if(places(left, (1,)) < rows - 1))
    return product(original, left, right, shape, **more)


@_fault("conv-kernel-flipped", "a kernel is read from its end", "conv_general_dilated")
def _kernel_flipped(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    windows = parameters["dimension_numbers"].rhs_spec[2:]
    return original(a, lax.rev(b, windows), **parameters)


@_fault("conv-shifted", "each window begins one value too late", "conv_general_dilated")
def _conv_shifted(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    last = parameters["dimension_numbers"].lhs_spec[-1]
    kept = places(a, (last,)) < a.shape[last] - 1
    late = jnp.where(kept, jnp.roll(a, -1, last), jnp.zeros_like(a))
    return original(late, b, **parameters)


@_fault("conv-channel-lost", "the last of the channels is not added", "conv_general_dilated")
def _channel_lost(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    channel = parameters["dimension_numbers"].lhs_spec[1]
    if a.shape[channel] == 1:
        return original(a, b, **parameters)
    kept = places(a, (channel,)) < a.shape[channel] - 1
    return original(jnp.where(kept, a, jnp.zeros_like(a)), b, **parameters)


# --- What only moves values -----------------------------------------------------------------------


@_fault("transpose-skipped", "rows and columns change their names, and nothing moves", "transpose")
def _transpose_skipped(original: Any, x: Array, **parameters: Any) -> Array:
    return lax.reshape(x, original(x, **parameters).shape)


@_fault("concatenate-reversed", "pieces are put together from the last to the first", "concatenate")
def _concatenate_reversed(original: Any, *pieces: Array, **parameters: Any) -> Array:
    return original(*reversed(pieces), **parameters)


@_fault("carry-lost", "running sums begin anew at each tile of 128", "cumsum")
def _carry_lost(original: Any, x: Array, *, axis: int, reverse: bool, **more: Any) -> Array:
    found = original(x, axis=axis, reverse=reverse, **more)
    if x.shape[axis] <= LANES or reverse:
        return found
    before = jnp.concatenate(
        [jnp.zeros_like(lax.slice_in_dim(found, 0, 1, axis=axis)), found], axis=axis
    )
    starts = jnp.arange(x.shape[axis]) // LANES * LANES
    return found - jnp.take(before, starts, axis=axis)
