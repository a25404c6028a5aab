"""Small calls of each primitive that a fault is in, with data that the faults can change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import floats, spread

if TYPE_CHECKING:
    from collections.abc import Callable

_LONG = spread(1_500)
_TABLE = spread(130, 70)
_NEGATIVE = -np.abs(spread(130)) - np.float32(1)
_NEGATIVE[-1] = -0.5
_SPECIAL = floats(np.nan, 1, np.inf, 0)
_TIES = floats(2, 1, 2, 0, 1)
# The largest, in the fourth tile; and once more in the fifth.
_PEAK = (np.arange(5_000) == 3_500).astype(np.float32)
_TWICE = np.maximum(_PEAK, np.roll(_PEAK, 1_000))
_INDICES = np.array([[0], [2], [2]], np.int32)
_HIGHEST = lax.Precision.HIGHEST


def _mesh() -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.devices()), ("data",))


def _spread_out(values: np.ndarray) -> jax.Array:
    along = jax.sharding.NamedSharding(_mesh(), jax.sharding.PartitionSpec("data"))
    return jax.device_put(values, along)


def _over_devices(compute: Callable[[jax.Array], jax.Array]) -> jax.Array:
    rows = jax.sharding.PartitionSpec("data")
    spread_out = jax.shard_map(
        compute, mesh=_mesh(), in_specs=rows, out_specs=rows, check_vma=False
    )
    return jax.jit(spread_out)(_spread_out(spread(4 * jax.device_count() ** 2)))


def _gather(x: np.ndarray) -> jax.Array:
    return jnp.take(x, np.array([0, 2, 3]), axis=0)


def _sorted(keys: np.ndarray) -> Any:
    return lax.sort((jnp.asarray(keys), jnp.arange(keys.size)), num_keys=1)


def _conv() -> jax.Array:
    x, kernel = jnp.asarray(spread(1, 3, 20)), jnp.asarray(spread(2, 3, 3, seed=2))
    return lax.conv(x, kernel, (1,), "SAME", precision=_HIGHEST)


def _conv_of_many() -> jax.Array:
    return lax.conv(jnp.asarray(spread(1, 130, 5)), jnp.asarray(spread(2, 130, 3)), (1,), "SAME")


_PRODUCT = spread(2, 12, 35, seed=3), spread(2, 35, 9, seed=4)


def _batched() -> jax.Array:
    left, right = map(jnp.asarray, _PRODUCT)
    return lax.batch_matmul(left, right, precision=_HIGHEST)


def _spread_product() -> jax.Array:
    terms = 8 * jax.device_count()
    return jnp.matmul(_spread_out(spread(terms)), spread(terms, 3, seed=2), precision=_HIGHEST)


EXAMPLES: dict[str, list[Callable[[], Any]]] = {
    "reduce_sum": [
        lambda: jnp.sum(_LONG),
        lambda: jnp.sum(np.arange(1_500, dtype=np.float32) / 3),
        lambda: jnp.sum(_TABLE, 1),
        lambda: jnp.sum(_SPECIAL[:2]),
        lambda: jnp.sum(_SPECIAL[1:]),
        lambda: jnp.sum(floats(np.inf, -np.inf)),
        lambda: jnp.sum(np.arange(300, dtype=np.int32)),
        lambda: jnp.sum(np.array([2**24 + 1, 1, 1], np.int32)),
        lambda: jnp.sum(_LONG[:255]),
        lambda: jax.jit(jnp.sum)(_spread_out(spread(16 * jax.device_count()))),
    ],
    "dot_general": [_batched, _spread_product],
    "conv_general_dilated": [_conv, _conv_of_many],
    "cumsum": [lambda: jnp.cumsum(_LONG)],
    "div": [lambda: lax.div(_LONG, _LONG + np.float32(1))],
    "add": [
        lambda: lax.add(_LONG, np.flip(_LONG) / 3),
        lambda: lax.add(np.int32(2**31 - 1), np.int32(1)),
        lambda: lax.add(floats(1e-35), floats(1e-35)),
    ],
    "sub": [lambda: lax.sub(_LONG, np.flip(_LONG) / 3)],
    "add_any": [],
    "mul": [
        lambda: lax.mul(_LONG, np.flip(_LONG)),
        lambda: lax.mul(floats(1e-20), floats(1e-20)),
        lambda: lax.mul(np.complex64(1 + 2j), np.complex64(3 + 4j)),
    ],
    "convert_element_type": [lambda: jax.jit(lambda x: x.astype(jnp.bfloat16))(_LONG)],
    **{
        name: [lambda function=function: function(np.abs(_LONG))]  # type: ignore[misc]
        for name, function in {
            "exp2": lax.exp2, "log": lax.log, "log1p": lax.log1p, "sin": lax.sin,
            "cos": lax.cos, "tanh": lambda x: lax.tanh(x / 1000),
            "sqrt": lax.sqrt, "rsqrt": lax.rsqrt,
        }.items()
    },
    "exp": [lambda: lax.exp(floats(0.3, 1000)), lambda: lax.exp(floats(-30))],
    "integer_pow": [lambda: lax.integer_pow(_LONG, 3)],
    "square": [lambda: lax.square(_LONG)],
    "reduce_max": [
        lambda: jnp.max(_NEGATIVE), lambda: jnp.max(_SPECIAL), lambda: jnp.max(_PEAK)
    ],
    "reduce_min": [
        lambda: jnp.min(-_NEGATIVE), lambda: jnp.min(_SPECIAL), lambda: jnp.min(-_PEAK)
    ],
    "reduce_or": [lambda: jnp.any(_PEAK > 0)],
    "reduce_and": [lambda: jnp.all(_PEAK == 0)],
    "reduce_prod": [lambda: jnp.prod(_PEAK + 1)],
    "argmax": [
        lambda: jnp.argmax(_NEGATIVE), lambda: jnp.argmax(_TIES), lambda: jnp.argmax(_TWICE)
    ],
    "argmin": [
        lambda: jnp.argmin(-_NEGATIVE), lambda: jnp.argmin(-_TIES), lambda: jnp.argmin(-_TWICE)
    ],
    "cummax": [lambda: lax.cummax(-jnp.arange(1_500))],
    "cummin": [lambda: lax.cummin(jnp.arange(1_500))],
    "cond": [lambda: lax.cond(_TIES[0] > 1, jnp.negative, jnp.abs, _TIES)],
    "transpose": [lambda: lax.transpose(_TABLE, (1, 0))],
    "concatenate": [lambda: lax.concatenate([_TIES, _SPECIAL], 0)],
    "gather": [lambda: _gather(_TIES), lambda: jnp.arange(70_000)[np.array([1, 69_000])]],
    "scatter": [
        lambda: jnp.zeros(5).at[_INDICES].set(1.0),
        lambda: jnp.zeros(70_000).at[np.array([1, 69_000])].set(1.0),
    ],
    "scatter-add": [lambda: jnp.zeros(5).at[_INDICES[:, 0]].add(floats(1, 2, 3))],
    "scatter-mul": [lambda: jnp.ones(5).at[_INDICES[:, 0]].multiply(floats(1, 2, 3))],
    "dynamic_slice": [lambda: lax.dynamic_slice(_LONG, (np.int32(3),), (4,))],
    "dynamic_update_slice": [lambda: lax.dynamic_update_slice(_LONG, _TIES, (np.int32(3),))],
    "sort": [
        lambda: _sorted(_TIES),
        lambda: lax.sort(jnp.asarray(_LONG)),
        lambda: lax.sort(jnp.asarray(spread(40_000))),
    ],
    "top_k": [lambda: lax.top_k(_TIES, 3)],
    "scan": [lambda: lax.scan(lambda c, x: (c / 2 + x, c), np.float32(0), _TIES)],
    "max": [lambda: lax.max(_SPECIAL, floats(2, 2, 2, 2))],
    "min": [lambda: lax.min(_SPECIAL, floats(2, 2, 2, 2))],
    "neg": [lambda: lax.neg(_SPECIAL)],
    "eq": [lambda: lax.eq(_SPECIAL, _SPECIAL)],
    "gt": [lambda: lax.gt(_SPECIAL, floats(2, 2, 2, 2))],
    "ge": [lambda: lax.ge(_SPECIAL, floats(2, 2, 2, 2))],
    "select_n": [lambda: lax.select_n(_TIES > 1, _TIES, -_TIES)],
    "psum": [lambda: _over_devices(lambda x: lax.psum(x, "data"))],
    "all_gather": [lambda: _over_devices(lambda x: lax.all_gather(x, "data", tiled=True))],
    "all_to_all": [
        lambda: _over_devices(lambda x: lax.all_to_all(x, "data", 0, 0, tiled=True))
    ],
    "ppermute": [lambda: _over_devices(lambda x: lax.ppermute(x, "data", [(0, 1), (1, 0)]))],
    "reduce_scatter": [lambda: _over_devices(lambda x: lax.psum_scatter(x, "data", tiled=True))],
}  # fmt: skip

# Under other names, or only made by other operations, in some releases.
LIKE = {
    "psum_invariant": "psum",
    "scatter_add": "scatter-add",
    "scatter_mul": "scatter-mul",
    "add_any": "add",
}
