"""What `record(targets=...)` costs, beside the bare compiles of the same programs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

import jitcount
from jitcount.suite import transformer
from jitcount.targets import process
from jitcount.targets.installed import is_installed
from jitcount.targets.names import parse, topology
from ratios import Ratio, keep_ratios

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

TARGETS = ("tpu:v5e", "cuda:h100")
LENGTHS = range(3, 13)
SIZES = transformer.Sizes(layers=1)

pytestmark = pytest.mark.skipif(
    not all(is_installed(parse(name)) for name in TARGETS),
    reason="needs the compilers of a TPU and of a GPU",
)


def program() -> object:
    """Small programs and a large one, on the CPU, as a user has them."""
    sums = [jitcount.cache_independent_count(np.ones(n), np.ones(n)) for n in LENGTHS]
    trained = transformer.step(transformer.init(SIZES), transformer.tokens(SIZES))
    return jax.block_until_ready((sums, trained))


def bare_compiles(name: str) -> None:
    """The same programs, ahead of time and in this process, as JAX's documentation shows it."""
    target = parse(name)
    devices = topologies.get_topology_desc(**topology(target, 1)).devices
    sharding = SingleDeviceSharding(devices[0])

    def compile_one(fun: Callable[..., Any], *arguments: Any) -> None:
        avals = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), arguments
        )
        jitted = fun if hasattr(fun, "trace") else jax.jit(fun)
        jitted.trace(*avals).lower(lowering_platforms=(target.platform,)).compile()

    for length in LENGTHS:
        compile_one(jnp.sum, np.ones(length, np.float32))
    compile_one(jnp.add, np.float32(0), np.float32(0))
    compile_one(transformer.step, transformer.init(SIZES), transformer.tokens(SIZES))


def seconds_with_children(call: Callable[[], object]) -> float:
    """Seconds of the processor, of this process and of the compilers' that it has started."""
    begin = _seconds_of_all()
    call()
    return _seconds_of_all() - begin


def _seconds_of_all() -> float:
    """Of children that are still there, only the system knows; the compilers need Linux anyway."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # gone in between
            _, parent, *rest = stat.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, rest[9:11])) if int(parent) == os.getpid() else 0
    times = os.times()
    here = times.user + times.system + times.children_user + times.children_system
    return here + ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.benchmark(group="ratio")
def test_targets(benchmark: BenchmarkFixture) -> None:
    """Both sides run the program here and compile it for both; the compilers are there already."""
    wanted = ("TPU_", "ALLOW_", "TF_CPP")
    os.environ.update({k: v for k, v in process.environment().items() if k.startswith(wanted)})

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
