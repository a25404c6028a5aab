"""What must not cost more than something else in one process."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from typing import TYPE_CHECKING

import jax
import msgspec
import pytest

import jitcount
from jitcount.explain.hub import hub
from ratios import keep_ratio, keep_ratio_of_seconds, seconds_for
from variants import array, hoisted_by_hand, wrapper_per_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pytest_benchmark.fixture import BenchmarkFixture

    Call = Callable[[], object]


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


@pytest.mark.benchmark(group="ratio")
@pytest.mark.parametrize(
    ("without", "what", "limit", "earlier"),
    [
        (hub.ear.undescribed, "explained / only counted", 1.02, 1),
        (hub.ear.undescribed, "explained / only counted", 1.02, 5000),
        (hub.ear.paused, "explained / bare compile", None, 5000),
    ],
    ids=["explaining-1", "explaining-5000", "all-5000"],
)
def test_explaining(
    benchmark: BenchmarkFixture,
    without: Callable[[], AbstractContextManager[None]],
    what: str,
    limit: float | None,
    earlier: int,
) -> None:
    """The worst case: a function that is compiled in no time."""
    jitted = jax.jit(lambda x: x + 1)
    lengths = itertools.count(1)

    def compile_one() -> float:
        x = array(next(lengths))
        return seconds_for(lambda: jax.block_until_ready(jitted(x)), calls=1)

    def less() -> float:
        with without():
            return compile_one()

    with hub.own_history(), jitcount.record():
        fill_history(jitted, earlier)
        keep_ratio_of_seconds(
            benchmark,
            f"{what}, {earlier} before",
            limit,
            compile_one,
            less,
            pairs=100,
        )


def fill_history(jitted: Callable[[jax.Array], jax.Array], count: int) -> None:
    """Let the history hold programs of a function, as if they had been compiled."""
    with jitcount.record() as log:
        jitted(array(100_000))
    program = log._seen[0][0].program
    assert program is not None
    (leaf,) = program.values
    for length in range(count - 1):
        other = msgspec.structs.replace(leaf, shape=(200_000 + length,))
        hub.history.add(dataclasses.replace(program, values=(other,)))
