"""What is kept of a find: a program that needs nothing else, and returns 1 while it is wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import python
from tools.hunt import reporting
from tools.hunt.hunting import Failure, Find
from tools.hunt.program import Input, Program, Step
from tools.hunt.values import Spec

SPEC = Spec("float32", (3,), 8, negative=True)
PROGRAM = Program(
    (Input(SPEC, seed=1),),
    (
        Step("neg", (0,), SPEC),
        Step("reduce_sum", (1,), replace(SPEC, shape=(), size=24), {"axes": (0,), "rank": 1}),
    ),
    (2,),
)
FIND = Find(
    PROGRAM,
    Failure(
        "wrong", "output 0 is 3.0 at [], and should be 5; 1 of 1 elements are wrong", (0, ()), 5
    ),
    number=17,
    other_way="right",
    cures=("--xla_disable_hlo_passes=algsimp",),
    known="probably jax #1",
)


@pytest.fixture(autouse=True)
def _release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "0.99.1")


def test_a_find_is_a_program_that_says_what_is_wrong() -> None:
    assert (
        reporting.text(FIND)
        == '''"""Found by `nox -s hunt`: jax 0.99.1, jaxlib 0.99.1, CPU.

wrong, compiled: output 0 is 3.0 at [], and should be 5; 1 of 1 elements are wrong
operation by operation: right
right with XLA_FLAGS=--xla_disable_hlo_passes=algsimp
probably jax #1
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

def f(x0):
    x1 = -x0
    x2 = jnp.sum(x1, axis=(0,), dtype=x1.dtype)
    return (x2,)

arguments = [
    jnp.asarray(np.random.default_rng(1).integers(-8, 9, (3,)), jnp.float32),
]
found = jax.jit(f)(*arguments)
with jax.disable_jit():
    right = f(*arguments)
wrong = [int(np.sum(np.asarray(a) != np.asarray(b))) for a, b in zip(found, right)]
print("wrong elements of each output:", wrong)
sys.exit(1 if any(wrong) else 0)
'''
    )


def test_it_is_kept_by_kind_and_release(tmp_path: Path) -> None:
    path = reporting.keep(FIND, tmp_path / "new")
    assert path == tmp_path / "new" / "wrong_0_99_1_17.py"
    assert path.read_text() == reporting.text(FIND)


def test_without_a_flag_it_says_so() -> None:
    assert "no flag makes it right" in reporting.summary(replace(FIND, cures=()))


def test_what_does_not_come_again_is_no_accusation() -> None:
    told = reporting.summary(replace(FIND, comes_again=False))
    assert told.endswith(
        "in a process of its own it was right: it may depend on threads or on the load"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("find", "code", "says"),
    [
        (FIND, 0, "wrong elements of each output: [0]"),
        (replace(FIND, compiled=False), 0, "wrong elements of each output: [0]"),
        (replace(FIND, other_way="wrong too"), 1, "should be 5, and is"),
        (replace(FIND, failure=Failure("crash", "SIGABRT")), 0, "it ended, without an error:"),
    ],
)
def test_it_runs_by_itself(tmp_path: Path, find: Find, code: int, says: str) -> None:
    path = reporting.keep(find, tmp_path)
    done = python(str(path), cwd=tmp_path)
    assert (done.returncode, says in done.stdout) == (code, True), done.stdout + done.stderr
