"""Faults over several devices: a shard is lost, counted twice or in the wrong place.

If the compiler spreads a program over devices, it also makes the sums over them: there a shard is a
part of the values that are added up. Under `shard_map` these sums are separate operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

from tools.faults.arithmetic import as_matrices, count, places, product, times
from tools.faults.fault import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHARDING = Family("sharding")
_fault = SHARDING.fault

_SUMS = ("psum", "psum_invariant")


def _shards(x: Array, axes: Sequence[int], devices: int) -> Array:
    """The number of the shard that each value is in; 0 for all if they are too few."""
    size = count(x, axes) // devices
    return jnp.minimum(places(x, axes) // size, devices - 1) if size else places(x, axes) * 0


def _weighed(how_often: Callable[[Array, int], Array], about: str, name: str) -> None:
    """Add one fault for sums, for products, and for sums over an axis of devices."""

    def summed(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
        devices = original.devices
        if devices > 1 and count(x, axes) >= devices:
            x = times(x, how_often(_shards(x, axes, devices), devices))
        return original(x, axes=axes, **more)

    def multiplied(
        original: Any, a: Array, b: Array, *, dimension_numbers: Any, **more: Any
    ) -> Array:
        left, right, shape = as_matrices(a, b, dimension_numbers)
        devices = original.devices
        if devices == 1 or left.shape[2] < devices:
            return original(a, b, dimension_numbers=dimension_numbers, **more)
        left = times(left, how_often(_shards(left, (2,), devices), devices))
        return product(original, left, right, shape, **more)

    def over_devices(original: Any, *parts: Array, axes: Any, **more: Any) -> Any:
        number, devices = lax.axis_index(axes), lax.axis_size(axes)
        weighed = [times(part, how_often(number, devices)) for part in parts]
        return original(*weighed, axes=axes, **more)

    _fault(f"sum-shard-{name}", f"a sum over devices: {about}", "reduce_sum")(summed)
    _fault(f"dot-shard-{name}", f"a product over devices: {about}", "dot_general")(multiplied)
    _fault(f"psum-shard-{name}", f"psum: {about}", *_SUMS)(over_devices)


_weighed(lambda shard, n: (shard < n - 1).astype(jnp.int32), "the last shard is lost", "lost")
_weighed(lambda shard, _: 1 + (shard == 0), "the first shard is added twice", "twice")


@_fault("dot-shards-swapped", "a product over devices takes another shard's factor", "dot_general")
def _shards_swapped(
    original: Any, a: Array, b: Array, *, dimension_numbers: Any, **more: Any
) -> Array:
    left, right, shape = as_matrices(a, b, dimension_numbers)
    devices = original.devices
    if devices == 1 or left.shape[2] % devices:
        return original(a, b, dimension_numbers=dimension_numbers, **more)
    left = jnp.roll(left, left.shape[2] // devices, 2)
    return product(original, left, right, shape, **more)


@_fault("all-gather-swapped", "shards are put together in another order", "all_gather")
def _gather_swapped(original: Any, x: Array, *, axis_name: Any, **more: Any) -> Array:
    return original(_from_the_next(x, axis_name), axis_name=axis_name, **more)


@_fault("all-to-all-swapped", "each device is sent what is another's", "all_to_all")
def _to_all_swapped(original: Any, x: Array, *, axis_name: Any, **more: Any) -> Array:
    return original(_from_the_next(x, axis_name), axis_name=axis_name, **more)


@_fault("permute-lost", "what is sent to the next device does not arrive", "ppermute")
def _permute_lost(original: Any, x: Array, **parameters: Any) -> Array:
    return jnp.zeros_like(original(x, **parameters))


@_fault("scatter-offset", "a sum that is shared out begins at the next shard", "reduce_scatter")
def _scatter_offset(original: Any, x: Array, *, axis_name: Any, **more: Any) -> Array:
    return _from_the_next(original(x, axis_name=axis_name, **more), axis_name)


def _from_the_next(x: Array, axis_name: Any) -> Array:
    devices = lax.axis_size(axis_name)
    return lax.ppermute(x, axis_name, [(i, (i + 1) % devices) for i in range(devices)])
