"""Arrays spread over all devices: sums are added in another order, with a collective."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jitcount._numerics.expected import MATMUL, REDUCTION, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.case import Case
from jitcount._suite.composite_cases import training_step, training_step_by_hand
from jitcount._suite.data import one_sign, spread, weights, whole
from jitcount._suite.jitted import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._numerics.expected import Expected

_LONG = 1_000_000
_EXACT = 2**20
_TABLE = spread(64, 1_000, seed=11)
_LEFT, _RIGHT = spread(32, 960, seed=12), spread(960, 16, seed=13)


def unless_divided_by(length: int) -> Callable[[], str]:
    """Return a function that says why an axis of that length cannot be spread over the devices."""

    def reason() -> str:
        count = jax.device_count()
        return f"{length:,} do not divide by {count} devices" if length % count else ""

    return reason


def _spread_out(values: np.ndarray, axis: int | None) -> jax.Array:
    """Spread an array over all devices along an axis, or put it whole on each of them.

    That includes the devices of other processes.
    """
    mesh = Mesh(np.array(jax.devices()), ("data",))
    names = ["data" if number == axis else None for number in range(values.ndim)]
    sharding = NamedSharding(mesh, PartitionSpec(*names))
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])


def sharded_case(  # noqa: PLR0913
    *,
    id: str,  # noqa: A002
    claim: str,
    compute: Callable[..., jax.Array | Sequence[jax.Array]],
    data: Sequence[np.ndarray],
    axes: Sequence[int | None],
    expected: Callable[..., Expected | Sequence[Expected]],
) -> Case:
    """A case whose arrays are spread over all devices, and whose results are whole on each."""

    def program(*arrays: jax.Array) -> jax.Array | Sequence[jax.Array]:
        return compute(*arrays)

    def run() -> Sequence[jax.Array]:
        mesh = Mesh(np.array(jax.devices()), ("data",))
        whole = NamedSharding(mesh, PartitionSpec())
        arrays = [_spread_out(values, axis) for values, axis in zip(data, axes, strict=True)]
        return jax.tree.leaves(jax.jit(program, out_shardings=whole)(*arrays))

    def reference() -> Sequence[Expected]:
        found = expected(*data)
        return found if isinstance(found, list) else [found]  # type: ignore[list-item]

    return Case(
        id=id,
        claim=claim,
        program=run,
        expected=reference,
        compiles={"program": 1},
        unsupported=unless_divided_by(data[0].shape[axes[0] or 0]),
    )


# --- Collectives by hand --------------------------------------------------------------------------

_BLOCK = whole(64, 72, most=30, seed=14)
_TIES = whole(9, 1024, most=2, seed=15)
_FACTORS = whole(24, 960, most=12, seed=16), whole(960, 16, most=12, seed=17)
_PLACES = (np.arange(300) * 37 % 64).astype(np.int32)


def _on_each(
    function: Callable[..., jax.Array], inside: PartitionSpec, outside: PartitionSpec
) -> Callable[[jax.Array], jax.Array]:
    """Apply a function to the part of each device."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    return jax.shard_map(function, mesh=mesh, in_specs=inside, out_specs=outside)


def _collectives(x: jax.Array) -> list[jax.Array]:
    """Results that do not depend on the number of devices, and are wrong if one is left out."""
    rows, columns, nowhere = PartitionSpec("data"), PartitionSpec(None, "data"), PartitionSpec()
    count = jax.device_count()
    ring = [(at, (at + 1) % count) for at in range(count)]

    def steps(part: jax.Array) -> jax.Array:
        """Return each row minus the one before it, which may be on another device."""
        last = lax.ppermute(part[-1:], "data", ring)
        return part - jnp.concatenate([last, part[:-1]])

    def scattered(part: jax.Array) -> jax.Array:
        return lax.psum_scatter(part[:, :64].T @ part, "data", scatter_dimension=0, tiled=True)

    def turned(part: jax.Array) -> jax.Array:
        return lax.all_to_all(part, "data", 1, 0, tiled=True)

    def mirrored(part: jax.Array) -> jax.Array:
        """Return as many rows as this device holds, from the other end."""
        everywhere = lax.all_gather(part, "data", tiled=True)[::-1]
        begin = lax.axis_index("data") * part.shape[0]
        return lax.dynamic_slice_in_dim(everywhere, begin, part.shape[0])

    def numbered(part: jax.Array) -> jax.Array:
        return part[:, 0] + lax.axis_index("data") * part.shape[0]

    return [
        _on_each(lambda part: lax.psum(jnp.sum(part, 0), "data"), rows, nowhere)(x),
        _on_each(lambda part: lax.pmax(jnp.max(-abs(part), 0), "data"), rows, nowhere)(x),
        _on_each(lambda part: lax.pmin(jnp.min(abs(part), 0), "data"), rows, nowhere)(x),
        _on_each(mirrored, rows, rows)(x),
        _on_each(scattered, rows, rows)(x),
        _on_each(turned, rows, columns)(x),
        _on_each(steps, rows, rows)(x),
        _on_each(numbered, rows, rows)(x * 0 + np.arange(64)[:, None] % (64 // count)),
    ]


def _by_hand(x: np.ndarray) -> list[np.ndarray]:
    return [
        x.sum(0),
        (-np.abs(x)).max(0),
        np.abs(x).min(0),
        x[::-1],
        x[:, :64].T @ x,
        x,
        x - np.roll(x, 1, 0),
        np.arange(64.0),
    ]


SHARDED_CASES = (
    sharded_case(
        id="sharded-collectives-whole",
        claim="sums, extremes, gathers, exchanges and shifts between devices",
        compute=_collectives,
        data=(_BLOCK,),
        axes=(0,),
        expected=same_bits(_by_hand),
    ),
    sharded_case(
        id="sharded-axes-whole",
        claim="sums along both axes, running sums, and the first of the largest",
        compute=lambda x: [
            jnp.sum(x, 0),
            jnp.sum(x, 1),
            jnp.cumsum(x, 1)[:, 7::16],
            jnp.argmax(x, 1).astype("int32"),
        ],
        data=(_TIES,),
        axes=(1,),
        expected=same_bits(
            lambda x: [
                x.sum(0),
                x.sum(1),
                np.cumsum(x, 1)[:, 7::16],
                x.argmax(1),
            ]
        ),
    ),
    sharded_case(
        id="sharded-matmul-whole",
        claim="a product of whole numbers whose terms lie on different devices",
        compute=jnp.matmul,
        data=_FACTORS,
        axes=(1, 0),
        expected=same_bits(lambda a, b: [a @ b]),
    ),
    sharded_case(
        id="sharded-gather-scatter-whole",
        claim="rows that are picked from all devices, and added to rows on all devices",
        compute=lambda x: [x[_PLACES[:9]], x.at[_PLACES].add(1)],
        data=(_BLOCK,),
        axes=(0,),
        expected=same_bits(
            lambda x: [x[_PLACES[:9]], x + np.bincount(_PLACES, minlength=64)[:, None]]
        ),
    ),
    sharded_case(
        id="sharded-mean-whole",
        claim="means of 1,024 whole numbers along the axis that is spread",
        compute=lambda x: [jnp.mean(x, 1), jnp.max(x, 1), jnp.mean(x)],
        data=(whole(64, 1024, most=60, seed=18),),
        axes=(1,),
        expected=same_bits(lambda x: [x.mean(1), x.max(1), x.mean()]),
    ),
    sharded_case(
        id="sharded-training-step-whole",
        claim="a step of two layers, with the batch spread: gradients are summed over all devices",
        compute=training_step,
        data=(
            *(whole(64, 17, most=1, seed=19), whole(17, 33, most=1, seed=20)),
            *(whole(33, 5, most=2, seed=21), whole(64, 5, most=1, seed=22)),
        ),
        axes=(0, None, None, 0),
        expected=same_bits(training_step_by_hand),
    ),
    sharded_case(
        id="sharded-sum",
        claim="a sum over all devices",
        compute=jnp.sum,
        data=(spread(_LONG),),
        axes=(0,),
        expected=lambda x: within(REDUCTION, Rounded.exactly(x).sum()),
    ),
    sharded_case(
        id="sharded-sum-whole",
        claim="a sum of whole numbers over all devices: equal to the bit",
        compute=jnp.sum,
        data=(weights(_EXACT),),
        axes=(0,),
        expected=same_bits(lambda x: [x.sum()]),
    ),
    sharded_case(
        id="sharded-sum-positive",
        claim="a sum of numbers between 1 and 2 over all devices",
        compute=jnp.sum,
        data=(one_sign(_LONG),),
        axes=(0,),
        expected=lambda x: within(REDUCTION, Rounded.exactly(x).sum()),
    ),
    sharded_case(
        id="sharded-mean",
        claim="means along the axis that is spread",
        compute=lambda x: jnp.mean(x, 1),
        data=(_TABLE,),
        axes=(1,),
        expected=lambda x: within(REDUCTION, Rounded.exactly(x).mean(1)),
    ),
    sharded_case(
        id="sharded-matmul",
        claim="a product whose terms lie on different devices",
        compute=lambda a, b: jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST),
        data=(_LEFT, _RIGHT),
        axes=(1, 0),
        expected=lambda a, b: within(
            MATMUL, Rounded.exactly(a).matmul(Rounded.exactly(b), ulps=2.0)
        ),
    ),
)
