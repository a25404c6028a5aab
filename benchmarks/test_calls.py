"""The three times of a jitted function, each for the three ways to write the sum.

*Cold* is a first call with empty caches, *retrace* a new shape on a warm function, *cached* a call
that compiles nothing: until it is dispatched, and until its result is ready.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import jax
import pytest

import jitcount
from variants import array

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from variants import Variant

_new_lengths = itertools.count(1000)


@pytest.mark.benchmark(group="cold")
def test_cold(benchmark: BenchmarkFixture, variant: Variant) -> None:
    x_a, x_b = array(3), array(4)
    jax.block_until_ready(variant(x_a, x_b))  # starts JAX itself, once for the process
    jax.clear_caches()
    with jitcount.record() as log:
        variant(x_a, x_b)
    benchmark.extra_info["counts"] = log.counts()
    benchmark.extra_info["compiles"] = [
        [c.function, c.signature, c.trace_s, c.lower_s, c.compile_s] for c in log.compiles
    ]
    # A setup forces one iteration a round: right here, where every call must start from nothing.
    benchmark.pedantic(
        lambda: jax.block_until_ready(variant(x_a, x_b)), setup=jax.clear_caches, rounds=15
    )


@pytest.mark.benchmark(group="retrace")
def test_retrace(benchmark: BenchmarkFixture, variant: Variant) -> None:
    x_a = array(3)
    variant(x_a, array(4))
    with jitcount.record() as log:
        variant(x_a, array(next(_new_lengths)))
    benchmark.extra_info["counts"] = log.counts()
    benchmark.pedantic(
        lambda x_b: jax.block_until_ready(variant(x_a, x_b)),
        setup=lambda: ((array(next(_new_lengths)),), {}),
        rounds=30,
    )


@pytest.mark.benchmark(group="cached")
@pytest.mark.parametrize("until", ["dispatched", "ready"])
def test_cached(benchmark: BenchmarkFixture, variant: Variant, until: str) -> None:
    x_a, x_b = array(3), array(4)
    # pytest-benchmark calibrates on the first call: had it to compile, 30 µs would look like 30 ms.
    jax.block_until_ready(variant(x_a, x_b))
    with jitcount.record() as log:
        variant(x_a, x_b)
    benchmark.extra_info["counts"] = log.counts()
    if until == "dispatched":
        benchmark(variant, x_a, x_b)
    else:
        benchmark(lambda: jax.block_until_ready(variant(x_a, x_b)))
