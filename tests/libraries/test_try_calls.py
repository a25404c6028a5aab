"""`--what-if=calls` with the libraries that have a jit of their own."""

import time
from pathlib import Path

import pytest

from jitcount._try_calls.jitted_call import JittedCall
from jitcount._try_calls.processes import Program
from jitcount._try_calls.trying import Trial, try_calls

pytest.importorskip("equinox")
pytest.importorskip("flax.nnx")

NNX = """
import jax.numpy as jnp
from flax import nnx

def evaluate(model, x, scale):
    return (model(x) ** 2).mean() * scale + jnp.tanh(x).sum()

model = nnx.Linear(8, 3, rngs=nnx.Rngs(0))
evaluate(model, jnp.ones((4, 8)), 3)
"""
EQUINOX = """
import equinox as eqx, jax

def build(key):
    return eqx.nn.MLP(8, 3, 64, 2, key=key)

model = build(jax.random.key(0))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "call"),
    [
        (NNX, ("evaluate", "nnx.jit", ("scale",))),
        (EQUINOX, ("build", "eqx.filter_jit", ())),
    ],
    ids=["nnx", "equinox"],
)
def test_a_call_under_its_librarys_jit(
    tmp_path: Path, text: str, call: tuple[str, str, tuple[str, ...]]
) -> None:
    file = tmp_path / "main.py"
    file.write_text(text)
    line = len(text.splitlines())
    found: list[Trial] = []
    started_at = time.monotonic() - 60.0  # a busy machine has ten minutes
    program = Program(["main.py"], is_module=False, directory=str(tmp_path), started_at=started_at)
    try_calls(program, 0, [JittedCall(str(file), line, *call)], found)
    (trial,) = found
    assert trial.before is not None, trial
    assert trial.after is not None
    assert trial.before.compiles > trial.after.compiles
    assert trial.results is not None
    assert trial.results.text != "it returns no arrays"
    assert trial.results.is_same
