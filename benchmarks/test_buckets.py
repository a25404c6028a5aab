"""What padding to a few sizes costs and saves: the plan, a call, and a ragged loop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from ratios import Ratio, keep_ratios, seconds_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

WIDTH = 64


@pytest.mark.benchmark(group="jobs")
def test_plan(benchmark: BenchmarkFixture) -> None:
    lengths = np.random.default_rng(0).integers(1, 1_000_001, 100_000)
    benchmark.extra_info["name"] = "plan 16 sizes for 100,000 lengths up to 1,000,000"
    plan = benchmark(jitcount.plan_buckets, lengths, 16)
    assert len(plan.sizes) == 16


@jax.jit
def loss(w: Any, x: Any, n: Any) -> Any:
    y = jnp.tanh(x @ w) @ w
    return jnp.where((jnp.arange(len(x)) < n)[:, None], y, 0).sum() / n


@jax.jit
def rows(w: Any, x: Any, n: Any) -> Any:
    y = jnp.tanh(x @ w) @ w
    return jnp.where((jnp.arange(len(x)) < n)[:, None], y, 0)


W = np.random.default_rng(1).normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize("of", ["NumPy", "JAX"])
def test_hit(benchmark: BenchmarkFixture, of: str) -> None:
    w = jax.device_put(W)
    x, padded = np.ones((200, WIDTH), np.float32), np.ones((256, WIDTH), np.float32)
    padded[200:] = 0
    given = (x, padded) if of == "NumPy" else (jax.device_put(x), jax.device_put(padded))
    f = jitcount.bucketed(loss, [64, 256], axes={"x": 0}, length="n")
    keep_hit(
        benchmark,
        f"a bucket hit with arrays of {of} / padded in advance",
        lambda: f(w, given[0]).block_until_ready(),
        lambda: loss(w, given[1], n=np.int32(200)).block_until_ready(),
    )


def keep_hit(
    benchmark: BenchmarkFixture, name: str, hit: Callable[[], Any], padded: Callable[[], Any]
) -> None:
    sides = {"hit": lambda: seconds_for(hit), "padded": lambda: seconds_for(padded)}
    keep_ratios(benchmark, sides, [Ratio(name, "hit", "padded", 1.5, 0.02)], most=1000)


@pytest.mark.benchmark(group="ratio")
def test_hit_with_rows(benchmark: BenchmarkFixture) -> None:
    w = jax.device_put(W)
    x, padded = np.ones((200, WIDTH), np.float32), np.ones((256, WIDTH), np.float32)
    f = jitcount.bucketed(rows, [64, 256], axes={"x": 0}, length="n")
    keep_hit(
        benchmark,
        "a bucket hit that is cut back / padded in advance, cut by NumPy",
        lambda: f(w, x),
        lambda: np.asarray(rows(w, padded, n=np.int32(200)))[:200],
    )


def ragged_batches() -> list[Any]:
    """300 batches of 187 lengths."""
    random = np.random.default_rng(2)
    different = random.choice(np.arange(1, 513), 187, replace=False)
    lengths = np.concatenate([different, random.choice(different, 113)])
    random.shuffle(lengths)
    return [random.normal(size=(n, WIDTH)).astype(np.float32) for n in lengths]


BATCHES = ragged_batches()
PLAN = jitcount.plan_buckets(map(len, BATCHES), 4)


def naive(x: Any) -> Any:
    return loss(W, x, np.int32(len(x)))


def by_hand(x: Any) -> Any:
    padded = np.zeros((PLAN.size_for(len(x)), WIDTH), np.float32)
    padded[: len(x)] = x
    return loss(W, padded, n=np.int32(len(x)))


BUCKETED = jitcount.bucketed(loss, PLAN, axes={"x": 0}, length="n")


def loop(call: Callable[[Any], Any], *, is_cold: bool) -> float:
    """Processor time of all batches, with their compiles if it is cold."""
    if is_cold:
        jax.clear_caches()
    begin = time.process_time()
    jax.block_until_ready([call(x) for x in BATCHES])
    return time.process_time() - begin


@pytest.mark.benchmark(group="ratio")
def test_ragged_loop_beside_naive(benchmark: BenchmarkFixture) -> None:
    sides = {
        "naive": lambda: loop(naive, is_cold=True),
        "bucketed": lambda: loop(lambda x: BUCKETED(W, x), is_cold=True),
    }
    ratios = [Ratio("a ragged loop, bucketed / naive", "bucketed", "naive", 0.05, 0.01)]
    keep_ratios(benchmark, sides, ratios, most=5, fewest=3)


@pytest.mark.benchmark(group="ratio")
def test_ragged_loop_beside_padding_by_hand(benchmark: BenchmarkFixture) -> None:
    sides = {
        "by hand": lambda: loop(by_hand, is_cold=False),
        "bucketed": lambda: loop(lambda x: BUCKETED(W, x), is_cold=False),
        "by hand, cold": lambda: loop(by_hand, is_cold=True),
        "bucketed, cold": lambda: loop(lambda x: BUCKETED(W, x), is_cold=True),
    }
    ratios = [
        Ratio("the same loop, compiled / padded by hand", "bucketed", "by hand", None),
        Ratio(
            "the same loop with its compiles / padded by hand",
            "bucketed, cold",
            "by hand, cold",
            1.1,
            0.02,
        ),
    ]
    keep_ratios(benchmark, sides, ratios, most=200)
