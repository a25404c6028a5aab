"""What `as_if` costs: a cached call beside the same call outside, and a first one.

Products are left out of the cached calls: to round their inputs is work that the CPU's own program
does not do.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jitcount
from compilers import as_their_process, compile_for, seconds_with_children
from jitcount._suite import transformer
from jitcount._targets.installed import is_installed
from jitcount._targets.names import parse
from ratios import Ratio, keep_ratios, seconds_for

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

# How well a ratio must be known here: the limits are far from what is measured.
_PRECISION = 0.02

TARGETS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(not is_installed(parse(name)), reason=f"no compiler of {name}"),
    )
    for name in ("tpu:v5e", "cuda:h100")
]


def elementwise(x: jax.Array) -> jax.Array:
    """One fusion."""
    return jnp.tanh(x) * jnp.exp(-x) + 1


def reduced(x: jax.Array) -> jax.Array:
    """A softmax: two reductions, and what is between them."""
    return jax.nn.softmax(x)


def in_order(x: jax.Array) -> jax.Array:
    """A sort."""
    return jnp.sort(x)


def places(x: jax.Array) -> jax.Array:
    """A sort that carries a second array."""
    return jnp.argsort(x)


def summed_up(x: jax.Array) -> jax.Array:
    """A cumulative sum, which each compiler writes in its own way."""
    return jnp.cumsum(x, axis=0)


def gathered(x: jax.Array) -> jax.Array:
    """Rows in another order, and sums into some of them."""
    rows = jnp.arange(x.shape[0]) * 7 % x.shape[0]
    return x.at[rows // 2].add(x[rows])


def scanned(x: jax.Array) -> Any:
    """A loop."""
    return lax.scan(lambda carry, row: (jnp.sin(carry + row), carry), x[0], x)


PROGRAMS = (elementwise, reduced, in_order, places, summed_up, gathered, scanned)


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_cached(
    benchmark: BenchmarkFixture, program: Callable[[jax.Array], Any], target: str
) -> None:
    """To open the block is not timed."""
    x = jax.device_put(np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32))
    jitted = jax.jit(program)

    def outside() -> float:
        return seconds_for(lambda: jax.block_until_ready(jitted(x)))

    def inside() -> float:
        with jitcount.as_if(target) as emulation:
            seconds = outside()
        assert emulation.faithful
        return seconds

    name = f"as_if({target!r}) / outside, cached: {program.__name__}"
    ratio = Ratio(name, "inside", "outside", 1.3, _PRECISION)
    sides = {"inside": inside, "outside": outside}
    keep_ratios(benchmark, sides, [ratio], most=1000, fewest=20)


# Other sizes for each call: of each program its own, since a large one takes longer to compile.
_lengths, _rows, _batches = itertools.count(3), itertools.count(3), itertools.count(3)

# A round takes ten seconds and more: a ratio far from its limit need not be known better.
_FIRST_PRECISION = 0.03

Program = tuple[Callable[..., Any], tuple[Any, ...]]
"""With its arguments."""


def small() -> list[Program]:
    """Other lengths of a program that is compiled in no time; some, since ticks are coarse."""
    return [(elementwise, (np.ones(next(_lengths), np.float32),)) for _ in range(8)]


def gradient() -> list[Program]:
    """Another batch of a small network; its products have the default precision."""
    widths = [np.ones((64, 64), np.float32)] * 3

    def loss(weights: list[jax.Array], hidden: jax.Array) -> jax.Array:
        for layer in weights:
            hidden = jax.nn.gelu(hidden @ layer)
        return jnp.mean(jax.nn.logsumexp(hidden, axis=-1))

    return [(jax.value_and_grad(loss), (widths, np.ones((next(_rows), 64), np.float32)))]


def transformer_step() -> list[Program]:
    """Another batch of a program as people train with; its products have the highest precision."""
    sizes = dataclasses.replace(transformer.Sizes(layers=1), batch=next(_batches))
    return [(transformer.step, (transformer.init(sizes), transformer.tokens(sizes)))]


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("another", [small, gradient, transformer_step])
def test_first(
    benchmark: BenchmarkFixture, another: Callable[[], list[Program]], target: str
) -> None:
    """Beside the target's compile and two of the CPU's; its compilers are there already."""
    as_their_process()

    def first_call(program: Callable[..., Any], *arguments: Any) -> None:
        fresh = jax.jit(lambda *given: program(*given))  # noqa: PLW0108 (a new function each time)
        jax.block_until_ready(fresh(*arguments))

    def inside() -> None:
        programs = another()
        with jitcount.as_if(target) as emulation:
            for program, arguments in programs:
                first_call(program, *arguments)
        assert len(emulation.programs) >= len(programs)
        assert emulation.faithful

    def by_hand() -> None:
        for program, arguments in another():
            compile_for(target, program, *arguments)
            for _ in range(2):
                first_call(program, *arguments)

    name = f"as_if({target!r}) / its compile and two here: {another.__name__}"
    ratio = Ratio(name, "inside", "by hand", 1.0, _FIRST_PRECISION)
    sides = {
        "inside": lambda: seconds_with_children(inside),
        "by hand": lambda: seconds_with_children(by_hand),
    }
    keep_ratios(benchmark, sides, [ratio], most=16, fewest=5)
