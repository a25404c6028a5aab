"""What must not cost more than something else: measured side by side, in one run.

A machine that others use is slow for a second and fast for the next. So the two sides take turns,
a few calls each, and the ratio is the median over the pairs.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from typing import TYPE_CHECKING

import jax
import pytest

import jitcount
from variants import array, hoisted_by_hand, wrapper_per_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    Call = Callable[[], object]

_PAIRS = 400
_CALLS = 50


def seconds_for(call: Call) -> float:
    begin = time.perf_counter()
    for _ in range(_CALLS):
        call()
    return time.perf_counter() - begin


def keep_ratio(
    benchmark: BenchmarkFixture, name: str, limit: float | None, numerator: Call, denominator: Call
) -> None:
    """Let the benchmark time pairs of both sides, and keep the ratio in its figures."""
    ratios: list[float] = []

    def pair() -> None:
        if len(ratios) % 2:
            above = seconds_for(numerator)
            below = seconds_for(denominator)
        else:
            below = seconds_for(denominator)
            above = seconds_for(numerator)
        ratios.append(above / below)

    benchmark.pedantic(pair, rounds=_PAIRS, warmup_rounds=5)
    benchmark.extra_info.update(name=name, ratio=statistics.median(ratios), limit=limit)


@pytest.mark.benchmark(group="ratio")
def test_hoisted(benchmark: BenchmarkFixture) -> None:
    x_a, x_b = array(3), array(4)
    keep_ratio(
        benchmark,
        "cache_independent_count / hoisted by hand",
        1.1,
        lambda: jitcount.cache_independent_count(x_a, x_b),
        lambda: hoisted_by_hand(x_a, x_b),
    )


@pytest.mark.benchmark(group="ratio")
def test_wrapper_per_call(benchmark: BenchmarkFixture) -> None:
    x_a, x_b = array(3), array(4)
    keep_ratio(
        benchmark,
        "wrapper made per call / hoisted by hand",
        None,
        lambda: wrapper_per_call(x_a, x_b),
        lambda: hoisted_by_hand(x_a, x_b),
    )


@pytest.mark.benchmark(group="ratio")
def test_recording(benchmark: BenchmarkFixture) -> None:
    jitted = jax.jit(lambda x: x + 1)
    x = array(3)
    jitted(x)
    recorder = contextlib.ExitStack()
    is_recording = False

    def recorded(*, wanted: bool) -> object:
        nonlocal is_recording
        if wanted is not is_recording:  # once a side, not once a call
            recorder.close()
            if wanted:
                recorder.enter_context(jitcount.record())
            is_recording = wanted
        return jitted(x)

    with recorder:
        keep_ratio(
            benchmark,
            "recorded / unrecorded cached call",
            1.02,
            lambda: recorded(wanted=True),
            lambda: recorded(wanted=False),
        )
