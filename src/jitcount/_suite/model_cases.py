"""Training steps of the small transformer, on one device and spread over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from jitcount._numerics.error_bounds import unit_roundoff
from jitcount._numerics.expected import DECLARED, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite import transformer
from jitcount._suite.case import Case
from jitcount._suite.sharded_cases import unless_divided_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._numerics.expected import Expected

# The losses of the first three steps in float64; a test computes them again.
LOSSES = (4.248620859940867, 4.275654772217352, 4.234354156875231)

# There is no proof of how far Adam carries a rounding error. What rounding does to these losses was
# sampled (Monte Carlo arithmetic, Parker 1997): each operation in float64, with a random error as
# large as float32's may be. The standard deviation is seven roundings of the loss, in each of the
# steps; a test samples it again. Beyond eight of them lies less than one result in 10**9.
ROUNDINGS = 56


def _losses() -> Sequence[jax.Array]:
    state, losses = transformer.init(), []
    for number in range(len(LOSSES)):
        state, loss = transformer.step(state, transformer.tokens(seed=number))
        losses.append(loss)
    return losses


def _sharded_losses() -> Sequence[jax.Array]:
    mesh = transformer.mesh_of(jax.devices())
    step, state, put = transformer.sharded_step(mesh)
    losses = []
    for number in range(len(LOSSES)):
        state, loss = step(state, put(transformer.tokens(seed=number)))
        losses.append(loss)
    return losses


def _expected() -> list[Expected]:
    relative = ROUNDINGS * unit_roundoff("float32")
    return [within(DECLARED, Rounded.declared(loss, relative * loss, "float32")) for loss in LOSSES]


MODEL_CASES = (
    Case(
        id="transformer",
        claim="three training steps compile once",
        program=_losses,
        expected=_expected,
        compiles={"step": 1},
    ),
    Case(
        id="transformer-sharded",
        claim="the same with the batch spread over all devices",
        program=_sharded_losses,
        expected=_expected,
        compiles={"_step": 1},
        unsupported=unless_divided_by(transformer.Sizes().batch),
    ),
)
