"""The training step that the suite compiles on every backend."""

import jax
import numpy as np
import pytest

import jitcount
from jitcount._suite import transformer
from jitcount._suite.transformer import Sizes

pytestmark = pytest.mark.thorough

CORNER = [
    "-0x1.56e0d20000000p-3",
    "0x1.30089a0000000p-3",
    "-0x1.1342040000000p-10",
    "-0x1.010d800000000p-3",
]
TOKENS = [54, 63, 55, 6]


SMALL = Sizes(vocabulary=16, width=8, heads=2, hidden=8, layers=1, length=8, batch=4)


def test_a_step_compiles_once_learns_and_moves_every_weight() -> None:
    state, batch, losses = transformer.init(SMALL), transformer.tokens(SMALL), []
    with jitcount.record() as log:
        for _ in range(60):
            state, loss = transformer.step(state, batch)
            losses.append(float(loss))
    assert log.counts() == {"step": 1}
    assert int(state.steps) == 60
    assert losses[0] == pytest.approx(np.log(16), rel=0.1)
    assert losses[-1] < losses[0] - 0.1
    assert all(np.any(leaf != 0) for leaf in jax.tree.leaves(state.mean))


def test_weights_and_tokens_are_the_same_to_the_bit_everywhere() -> None:
    state = transformer.init()
    corner = state.parameters["layers"][1]["into_hidden"][:2, :2]
    assert {leaf.dtype.name for leaf in jax.tree.leaves(state)} == {"float32", "int32"}
    assert [float(x).hex() for x in corner.ravel()] == CORNER
    assert transformer.tokens()[0, :4].tolist() == TOKENS


@pytest.mark.two_devices
def test_sharded_over_devices_it_gives_the_same_loss_and_compiles_once() -> None:
    """Along "model"; along "data" it is a case of the suite."""
    batch = transformer.tokens(SMALL)
    mesh = transformer.mesh_of(jax.devices()[:2], model=2)
    step, state, put = transformer.sharded_step(mesh, SMALL)
    with jitcount.record() as log:
        for _ in range(2):
            state, loss = step(state, put(batch))
    assert log.counts() == {"_step": 1}
    expected, _ = transformer.step(transformer.init(SMALL), batch)
    _, alone = transformer.step(expected, batch)
    np.testing.assert_allclose(loss, alone, rtol=1e-5)
