"""Two sides, measured side by side in one run.

A machine that others use is slow for a second and fast for the next. So the two sides take turns,
a few calls each, and the ratio is the median over the pairs.
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
    ratios: list[float] = []

    def pair() -> None:
        if len(ratios) % 2:
            above = numerator()
            below = denominator()
        else:
            below = denominator()
            above = numerator()
        ratios.append(above / below)

    benchmark.pedantic(pair, rounds=pairs, warmup_rounds=warmups)
    benchmark.extra_info.update(name=name, ratio=statistics.median(ratios), limit=limit)
