"""What `record(targets=...)` costs, beside the bare compiles of the same programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from compilers import as_their_process, compile_for, seconds_with_children
from jitcount._suite import transformer
from jitcount._targets.installed import is_installed
from jitcount._targets.names import parse
from ratios import Ratio, keep_ratios

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

TARGETS = ("tpu:v5e", "cuda:h100")
LENGTHS = range(3, 13)
SIZES = transformer.Sizes(layers=1)

pytestmark = pytest.mark.skipif(
    not all(is_installed(parse(name)) for name in TARGETS),
    reason="needs the compilers of a TPU and of a GPU",
)


def program() -> object:
    """Run small programs and a large one on the CPU, as a user would."""
    sums = [jitcount.cache_independent_count(np.ones(n), np.ones(n)) for n in LENGTHS]
    trained = transformer.step(transformer.init(SIZES), transformer.tokens(SIZES))
    return jax.block_until_ready((sums, trained))


def bare_compiles(name: str) -> None:
    """Compile the same programs ahead of time in this process, as JAX's documentation shows."""
    for length in LENGTHS:
        compile_for(name, jnp.sum, np.ones(length, np.float32))
    compile_for(name, jnp.add, np.float32(0), np.float32(0))
    compile_for(name, transformer.step, transformer.init(SIZES), transformer.tokens(SIZES))


@pytest.mark.benchmark(group="ratio")
def test_targets(benchmark: BenchmarkFixture) -> None:
    """Both sides run the program here and compile it for both targets, with running compilers."""
    as_their_process()

    def recorded() -> None:
        jax.clear_caches()
        with jitcount.record(targets=TARGETS) as log:
            program()
        assert {on.error for c in log.compiles for on in c.on.values()} == {None}

    def by_hand() -> None:
        jax.clear_caches()
        program()
        for name in TARGETS:
            bare_compiles(name)

    sides = {
        "recorded": lambda: seconds_with_children(recorded),
        "by hand": lambda: seconds_with_children(by_hand),
    }
    ratio = Ratio("record(targets=…) / the program and bare compiles", "recorded", "by hand", 1.15)
    keep_ratios(benchmark, sides, [ratio], most=20, fewest=6)
