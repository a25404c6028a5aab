"""Arrays spread over all devices at hand: sums are added up in another order, with a collective."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jitcount.numerics.expected import MATMUL, REDUCTION, exactly, within
from jitcount.numerics.rounding import Rounded
from jitcount.suite.case import Case
from jitcount.suite.data import ones, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount.numerics.expected import Expected

_LONG = 1_000_000
_EXACT = 2**20
_TABLE = spread(64, 1_000, seed=11)
_LEFT, _RIGHT = spread(32, 960, seed=12), spread(960, 16, seed=13)


def unless_divided_by(length: int) -> Callable[[], str]:
    """The reason why an axis of that length cannot be spread over the devices, if there is one."""

    def reason() -> str:
        count = jax.device_count()
        return f"{length:,} do not divide by {count} devices" if length % count else ""

    return reason


def _spread_out(values: np.ndarray, axis: int) -> jax.Array:
    """An array that lies along all devices, also those of other processes."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    names = [None] * values.ndim
    names[axis] = "data"  # type: ignore[call-overload]
    sharding = NamedSharding(mesh, PartitionSpec(*names))
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])


def _case(  # noqa: PLR0913
    *,
    id: str,  # noqa: A002
    claim: str,
    compute: Callable[..., jax.Array],
    data: Sequence[np.ndarray],
    axes: Sequence[int],
    expected: Callable[..., Expected],
) -> Case:
    """A case whose arrays lie along all devices, and whose result is whole on each."""

    def program(*arrays: jax.Array) -> jax.Array:
        return compute(*arrays)

    def run() -> Sequence[jax.Array]:
        mesh = Mesh(np.array(jax.devices()), ("data",))
        whole = NamedSharding(mesh, PartitionSpec())
        arrays = [_spread_out(values, axis) for values, axis in zip(data, axes, strict=True)]
        return [jax.jit(program, out_shardings=whole)(*arrays)]

    return Case(
        id=id,
        claim=claim,
        program=run,
        expected=lambda: [expected(*data)],
        compiles={"program": 1},
        unsupported=unless_divided_by(data[0].shape[axes[0]]),
    )


SHARDED_CASES = (
    _case(
        id="sharded-sum",
        claim="a sum over all devices",
        compute=jnp.sum,
        data=(spread(_LONG),),
        axes=(0,),
        expected=lambda x: within(REDUCTION, Rounded.exactly(x).sum()),
    ),
    _case(
        id="sharded-sum-whole",
        claim="a sum of whole numbers over all devices: equal to the bit",
        compute=jnp.sum,
        data=(ones(_EXACT),),
        axes=(0,),
        expected=lambda x: exactly(np.array(x.size, np.float32)),
    ),
    _case(
        id="sharded-mean",
        claim="means along the axis that is spread",
        compute=lambda x: jnp.mean(x, 1),
        data=(_TABLE,),
        axes=(1,),
        expected=lambda x: within(REDUCTION, Rounded.exactly(x).mean(1)),
    ),
    _case(
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
