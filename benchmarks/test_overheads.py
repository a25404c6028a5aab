"""What jitcount adds to a compile, beside what its neighbours add.

There are two programs: one that compiles very quickly, which is the worst case, and a gradient as
in training.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import jax
import jax.numpy as jnp
import msgspec
import pytest

import jitcount
from jitcount._observe import in_flight, listener
from jitcount._observe.measuring import MOST_WAITING
from jitcount._registry import registry
from ratios import Ratio, keep_ratios, seconds_for
from tests.helpers import unregister
from variants import array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_benchmark.fixture import BenchmarkFixture

    from ratios import Side

chex = pytest.importorskip("chex")
equinox = pytest.importorskip("equinox")

_MANY = 10**9
_LIMIT = 1.02

Block = Callable[[], AbstractContextManager[object]]


def add_one(x: jax.Array) -> jax.Array:
    """A program that compiles very quickly."""
    return x + 1


_WIDTHS = (16, 64, 64, 4)
_KEYS = jax.random.split(jax.random.key(0), len(_WIDTHS))
_WEIGHTS = [
    jax.random.normal(key, shape)
    for key, shape in zip(_KEYS, itertools.pairwise(_WIDTHS), strict=False)
]


def training_step(x: jax.Array) -> Any:
    """The gradient of a small network, and a step of gradient descent."""

    def loss(weights: list[jax.Array]) -> jax.Array:
        hidden = x[:, None] * jnp.ones(_WIDTHS[0])
        for layer in weights:
            hidden = jax.nn.gelu(hidden @ layer)
        return jnp.mean(jax.nn.logsumexp(hidden, axis=-1))

    value, gradient = jax.value_and_grad(loss)(_WEIGHTS)
    return value, [w - 0.1 * g for w, g in zip(_WEIGHTS, gradient, strict=True)]


@dataclass(frozen=True, slots=True)
class Compiles:
    """A side: compiles one more length inside of a block; opening the block is not timed."""

    jitted: Any
    lengths: Iterator[int]
    """The lengths, shared by all sides, so that none compiles what another has compiled."""

    block: Block

    def __call__(self) -> float:
        """Compile, and return the seconds that it took."""
        x = jax.block_until_ready(array(next(self.lengths)))
        with self.block():
            return seconds_for(lambda: jax.block_until_ready(self.jitted(x)), calls=1)


def sides_of(
    function: Callable[[jax.Array], Any],
    blocks: Mapping[str, Block],
    wrapped: Mapping[str, Callable[..., Any]] | None = None,
) -> dict[str, Compiles]:
    """A side for each block with the same function, or with a neighbour's wrapper of it."""
    # XLA makes other loops for other lengths; multiples of a vector leave no rest.
    step = 16 if function is add_one else 4
    lengths = itertools.count(step, step)
    jitted = {name: jax.jit((wrapped or {}).get(name, function)) for name in blocks}
    return {name: Compiles(jitted[name], lengths, block) for name, block in blocks.items()}


def rounds_of(function: Callable[..., Any], sides: Mapping[str, Compiles]) -> dict[str, Any]:
    """The options of a round; each round includes its part of jitcount's occasional work."""
    turns = MOST_WAITING if function is add_one else 8
    return {"turns": turns, "before_round": lambda: begin_round(sides)}


def begin_round(sides: Mapping[str, Compiles]) -> None:
    """Free what the last round has compiled: XLA crashes a process with thousands of programs.

    JAX must free them, so the last reference must not be ours. The next compile then has to
    allocate that memory again, which takes milliseconds; one side would pay for all.
    """
    registry.listener._unmeasured.measure_all()
    for side in sides.values():
        side.jitted.clear_cache()
    for side in sides.values():
        side()
    registry.listener._unmeasured.measure_all()


@contextlib.contextmanager
def alone(setting: AbstractContextManager[object] | None = None) -> Iterator[None]:
    """Run JAX without jitcount, and with a setting if there is one."""
    ours = registry.listener
    unregister(ours._handlers)
    for lines in (*ours._log_lines, ours._disk_lines):
        lines.subscribe(wanted=False)
    ours._reads_log_lines = False
    try:
        with setting or contextlib.nullcontext():
            yield
    finally:
        ours.refresh_subscriptions()


def _described(*_: object) -> None:
    """Stands in for what describes a program; a mock would take longer."""


@contextlib.contextmanager
def without_programs() -> Iterator[None]:
    """Count and time compiles, but describe no program."""
    with (
        mock.patch.object(in_flight, "describe", _described),
        mock.patch.object(listener, "program_traced_ahead_of_time", _described),
    ):
        yield


@contextlib.contextmanager
def measured_apart(block: AbstractContextManager[object]) -> Iterator[None]:
    """Run another block, and compute its fingerprints afterwards, when nothing is timed."""
    with block:
        yield
    registry.listener._unmeasured.measure_all()


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize(
    ("function", "earlier"), [(add_one, 1), (add_one, 5000), (training_step, 5000)]
)
def test_jitcount(
    benchmark: BenchmarkFixture, function: Callable[[jax.Array], Any], earlier: int
) -> None:
    sides = sides_of(function, {"jitcount": contextlib.nullcontext, "bare": alone})
    name = f"jitcount / bare: {function.__name__}, {earlier} before"
    ratios = [Ratio(name, "jitcount", "bare", _LIMIT)]
    with registry.own_history(), jitcount.record():
        fill_history(sides["jitcount"], earlier)
        keep_ratios(benchmark, sides, ratios, most=200, **rounds_of(function, sides))


@pytest.mark.benchmark(group="ratio")
def test_the_same_twice(benchmark: BenchmarkFixture) -> None:
    """The ratio of equal sides must be 1, or no other ratio means anything."""
    sides = sides_of(add_one, {"bare": alone, "again": alone})
    ratios = [
        Ratio("bare / bare again: add_one", "bare", "again", 1.0),
        Ratio("bare again / bare: add_one", "again", "bare", 1.0),
    ]
    with registry.own_history(), jitcount.record():
        keep_ratios(benchmark, sides, ratios, most=200, **rounds_of(add_one, sides))


@pytest.mark.benchmark(group="ratio")
def test_explained(benchmark: BenchmarkFixture) -> None:
    blocks = {
        "explained": contextlib.nullcontext,
        "only counted": without_programs,
    }
    apart = {name: lambda block=block: measured_apart(block()) for name, block in blocks.items()}
    sides = sides_of(add_one, apart)
    name = "explained / only counted: add_one, 5000 before"
    ratios = [Ratio(name, "explained", "only counted", _LIMIT)]
    with registry.own_history(), jitcount.record():
        fill_history(sides["explained"], 5000)
        keep_ratios(benchmark, sides, ratios, most=200, **rounds_of(add_one, sides))


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize("function", [add_one, training_step])
def test_neighbours(benchmark: BenchmarkFixture, function: Callable[[jax.Array], Any]) -> None:
    """What neighbours cost, each used as its own documentation shows."""
    # To explain a miss, JAX searches everything that it has traced of a function, including jnp's:
    # after thousands of programs, that takes seconds per compile.
    jax.clear_caches()
    by_chex = chex.assert_max_traces(function, n=_MANY)
    by_equinox = equinox.debug.assert_max_traces(function, max_traces=_MANY)
    blocks: dict[str, Block] = {
        "jax_log_compiles": lambda: alone(jax.log_compiles()),
        "jax_explain_cache_misses": lambda: alone(jax.explain_cache_misses(True)),  # noqa: FBT003
        "chex.assert_max_traces": alone,
        "equinox.debug.assert_max_traces": alone,
        "bare": alone,
    }
    wrapped = {"chex.assert_max_traces": by_chex, "equinox.debug.assert_max_traces": by_equinox}
    sides = sides_of(function, blocks, wrapped)
    ratios = [Ratio(f"{name} / bare: {function.__name__}", name, "bare") for name in sides][:-1]
    keep_ratios(benchmark, sides, ratios, most=40)


def fill_history(compile_one: Side, count: int) -> None:
    """Put programs of a function into the history, as if they had been compiled."""
    with jitcount.record() as log:
        compile_one()
    program = log._seen[-1][0].program
    assert program is not None
    (leaf,) = program.values
    for length in range(count - 1):
        other = msgspec.structs.replace(leaf, shape=(200_000 + length,))
        registry.history.add(dataclasses.replace(program, values=(other,)))
