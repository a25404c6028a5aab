"""Two sides, measured side by side in one run.

A machine that others use is slow for a second and fast for the next. So the two sides take turns,
a few calls each. Others only ever add time: each side is represented by its lower quartile.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    Call = Callable[[], object]

_PAIRS = 400
_CALLS = 50


def seconds_for(call: Call, calls: int = _CALLS) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - begin


def keep_ratio(
    benchmark: BenchmarkFixture, name: str, limit: float | None, numerator: Call, denominator: Call
) -> None:
    """Keep the ratio of two calls that compile nothing."""
    keep_ratio_of_seconds(
        benchmark,
        name,
        limit,
        lambda: seconds_for(numerator),
        lambda: seconds_for(denominator),
        pairs=_PAIRS,
    )


def keep_ratio_of_seconds(  # noqa: PLR0913
    benchmark: BenchmarkFixture,
    name: str,
    limit: float | None,
    numerator: Callable[[], float],
    denominator: Callable[[], float],
    *,
    pairs: int,
    warmups: int = 5,
) -> None:
    """Let the benchmark time pairs of both sides, and keep the ratio in its figures."""
    above: list[float] = []
    below: list[float] = []

    def pair() -> None:
        if len(above) % 2:
            above.append(numerator())
            below.append(denominator())
        else:
            below.append(denominator())
            above.append(numerator())

    benchmark.pedantic(pair, rounds=pairs, warmup_rounds=warmups)
    benchmark.extra_info.update(
        name=name, ratio=_lower_quartile(above) / _lower_quartile(below), limit=limit
    )


def _lower_quartile(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=4)[0]
