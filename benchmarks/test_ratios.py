"""Limits on the cost of a cached call, relative to other calls."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import jax
import pytest

import jitcount
from ratios import keep_ratio
from variants import array, hoisted_by_hand, wrapper_per_call

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


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
