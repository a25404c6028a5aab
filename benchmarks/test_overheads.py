"""What it costs a compile that jitcount is there, beside what its neighbours cost.

Two programs: one that is compiled in no time, which is the worst case, and a gradient as people
train with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import msgspec
import pytest

import jitcount
from jitcount.explain.hub import hub
from jitcount.observe.measuring import MOST_WAITING
from ratios import Ratio, keep_ratios, seconds_for
from variants import array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pytest_benchmark.fixture import BenchmarkFixture

    from ratios import Side

chex = pytest.importorskip("chex")
equinox = pytest.importorskip("equinox")

_MANY = 10**9
_LIMIT = 1.02

_lengths = itertools.count(1)


def add_one(x: jax.Array) -> jax.Array:
    """Compiled in no time."""
    return x + 1


_WIDTHS = (16, 64, 64, 4)
_KEYS = jax.random.split(jax.random.key(0), len(_WIDTHS))
_WEIGHTS = [
    jax.random.normal(key, shape)
    for key, shape in zip(_KEYS, itertools.pairwise(_WIDTHS), strict=False)
]


def training_step(x: jax.Array) -> Any:
    """The gradient of a small network, and a step along it."""

    def loss(weights: list[jax.Array]) -> jax.Array:
        hidden = x[:, None] * jnp.ones(_WIDTHS[0])
        for layer in weights:
            hidden = jax.nn.gelu(hidden @ layer)
        return jnp.mean(jax.nn.logsumexp(hidden, axis=-1))

    value, gradient = jax.value_and_grad(loss)(_WEIGHTS)
    return value, [w - 0.1 * g for w, g in zip(_WEIGHTS, gradient, strict=True)]


def compiles_of(
    function: Callable[[jax.Array], Any],
    block: Callable[[], AbstractContextManager[object]],
) -> Side:
    """A side: one more length, compiled inside of a block; opening the block is not timed."""
    jitted: Any = jax.jit(function)
    calls = itertools.count()

    def seconds() -> float:
        x = jax.block_until_ready(array(next(_lengths)))
        if next(calls) % MOST_WAITING == 0:
            # Thousands of programs in memory, and XLA ends the process. What frees them is JAX's
            # work, and is not timed: the last reference must not be ours.
            hub.ear._unmeasured.measure_all()
            jitted.clear_cache()
        with block():
            return seconds_for(lambda: jax.block_until_ready(jitted(x)), calls=1)

    return seconds


@contextlib.contextmanager
def alone(setting: AbstractContextManager[object] | None = None) -> Iterator[None]:
    """JAX without jitcount, perhaps with a setting of its own."""
    with hub.ear.paused(), setting or contextlib.nullcontext():
        yield


PROGRAMS = (add_one, training_step)


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize(
    ("function", "earlier"), [(add_one, 1), (add_one, 5000), (training_step, 5000)]
)
def test_jitcount(
    benchmark: BenchmarkFixture, function: Callable[[jax.Array], Any], earlier: int
) -> None:
    ours = compiles_of(function, contextlib.nullcontext)
    sides = {"jitcount": ours, "bare": compiles_of(function, alone)}
    name = f"jitcount / bare: {function.__name__}, {earlier} before"
    ratios = [Ratio(name, "jitcount", "bare", _LIMIT)]
    # Of small programs jitcount measures so many at once: every round has its share of that.
    turns = MOST_WAITING if function is add_one else 1
    with hub.own_history(), jitcount.record():
        fill_history(ours, earlier)
        keep_ratios(benchmark, sides, ratios, most=1000 // turns, turns=turns)


@pytest.mark.benchmark(group="ratio")
def test_explained(benchmark: BenchmarkFixture) -> None:
    ours = compiles_of(add_one, contextlib.nullcontext)
    sides = {"explained": ours, "only counted": compiles_of(add_one, hub.ear.undescribed)}
    name = "explained / only counted: add_one, 5000 before"
    ratios = [Ratio(name, "explained", "only counted", _LIMIT)]
    with hub.own_history(), jitcount.record():
        fill_history(ours, 5000)
        keep_ratios(benchmark, sides, ratios, most=1000)


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize("function", PROGRAMS)
def test_neighbours(benchmark: BenchmarkFixture, function: Callable[[jax.Array], Any]) -> None:
    """What others offer, each as its own documentation shows it."""
    # To explain a miss JAX looks through all that it has traced of a function, jnp's among them:
    # after thousands of programs, a compile takes it seconds.
    jax.clear_caches()
    by_chex = chex.assert_max_traces(function, n=_MANY)
    by_equinox = equinox.debug.assert_max_traces(function, max_traces=_MANY)
    sides = {
        "jax_log_compiles": compiles_of(function, lambda: alone(jax.log_compiles())),
        "jax_explain_cache_misses": compiles_of(
            function,
            lambda: alone(jax.explain_cache_misses(True)),  # noqa: FBT003
        ),
        "chex.assert_max_traces": compiles_of(by_chex, alone),
        "equinox.debug.assert_max_traces": compiles_of(by_equinox, alone),
        "bare": compiles_of(function, alone),
    }
    ratios = [Ratio(f"{name} / bare: {function.__name__}", name, "bare") for name in sides][:-1]
    keep_ratios(benchmark, sides, ratios, most=40)


def fill_history(compile_one: Side, count: int) -> None:
    """Let the history hold programs of a function, as if they had been compiled."""
    with jitcount.record() as log:
        compile_one()
    program = log._seen[-1][0].program
    assert program is not None
    (leaf,) = program.values
    for length in range(count - 1):
        other = msgspec.structs.replace(leaf, shape=(200_000 + length,))
        hub.history.add(dataclasses.replace(program, values=(other,)))
