"""How far rounding carries the transformer's losses: drawn at random, not taken from a backend."""

import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._numerics.error_bounds import EXPECTED_ULPS, unit_roundoff
from jitcount._suite import transformer
from jitcount._suite.model_cases import LOSSES, ROUNDINGS
from jitcount._suite.sums import with_x64
from tools.faulty import primitives_replaced

DRAWS = 40
UNIT = unit_roundoff("float32")

# How far each primitive may be off as a rule, under the name that `EXPECTED_ULPS` has for it.
NAMES = {
    **dict.fromkeys(("add", "sub", "add_any"), "add"),
    **dict.fromkeys(("mul", "integer_pow", "square"), "multiply"),
    **{name: name for name in ("exp", "log", "tanh", "sqrt", "rsqrt")},
    "div": "divide",
    "pow": "exp",
}


class Drawn:
    """An operation in float64 with an error as float32 would have one."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def _between(self, result: jax.Array) -> jax.Array:
        """Between -1 and 1, from the bits that float32 does not have: without a pattern."""
        bits = jax.lax.bitcast_convert_type(result, jnp.uint64)
        mixed = (bits ^ bits >> 32).astype(jnp.uint32) + np.uint32(next(self.numbers) * 7919)
        mixed += jnp.arange(result.size, dtype=jnp.uint32).reshape(result.shape) * np.uint32(40503)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            mixed = (mixed ^ mixed >> shift) * np.uint32(factor)
        return (mixed ^ mixed >> 16) / 2.0**31 - 1

    def each(self, original: Any, *operands: Any, **more: Any) -> Any:
        result = original(*operands, **more)
        if result.dtype != jnp.float64:
            return result
        ulps = EXPECTED_ULPS[NAMES[original.primitive.name]]
        return result * (1 + 2 * ulps * UNIT * self._between(result))

    def sum(self, original: Any, x: Any, *, axes: Any, **more: Any) -> Any:
        result = original(x, axes=axes, **more)
        if result.dtype != jnp.float64:
            return result
        chain = np.sqrt(max(x.size // max(result.size, 1) - 1, 0))
        sizes = original(jnp.abs(x), axes=axes, **more)
        return result + chain * UNIT * self._between(result) * sizes

    def dot(self, original: Any, a: Any, b: Any, *, dimension_numbers: Any, **more: Any) -> Any:
        result = original(a, b, dimension_numbers=dimension_numbers, **more)
        if result.dtype != jnp.float64:
            return result
        (axes, _), _ = dimension_numbers
        chain = np.sqrt(np.prod([a.shape[axis] for axis in axes]))
        sizes = original(jnp.abs(a), jnp.abs(b), dimension_numbers=dimension_numbers, **more)
        # Four, as for the cases of products: a TPU puts them together from several.
        return result + 4 * chain * UNIT * self._between(result) * sizes


def drawn_losses() -> Iterator[list[float]]:
    drawn = Drawn()
    replaced = dict.fromkeys(NAMES, drawn.each)
    with (
        with_x64(),
        primitives_replaced(replaced | {"reduce_sum": drawn.sum, "dot_general": drawn.dot}),
    ):
        for draw in range(DRAWS):
            # So little that only the drawn errors see it.
            shift = 1 + 1e-12 * (draw + 1)
            state = jax.tree.map(
                lambda leaf: leaf * np.float64(shift) if leaf.dtype == np.float32 else leaf,  # noqa: B023
                transformer.init(),
            )
            losses = []
            for number in range(len(LOSSES)):
                state, loss = transformer.step(state, transformer.tokens(seed=number))
                losses.append(float(loss))
            yield losses


@pytest.mark.thorough
def test_the_bound_of_the_losses_is_some_standard_deviations_of_what_rounding_does() -> None:
    off = np.array(list(drawn_losses())) / np.array(LOSSES) - 1
    deviations = off.std(axis=0) / UNIT
    assert np.all(6 * deviations < ROUNDINGS)
    assert np.all(12 * deviations > ROUNDINGS)
