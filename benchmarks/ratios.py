"""Compares two sides in one run, in processor time.

A shared machine is slow for a second and fast for the next: by the clock, the same run says 1.00
and then 1.06. So processor time is measured, the sides take turns, and the ratio is the median over
all rounds. There are as many rounds as it takes to know the ratio to `PRECISION`: then two runs
agree to 0.01. A run that does not get there says so, and its limit does not hold.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_benchmark.fixture import BenchmarkFixture

    Call = Callable[[], object]
    Side = Callable[[], float]

PRECISION = 0.0025
"""The standard error at which 99 of 100 pairs of runs agree to 0.01."""

_CALLS = 50


def seconds_for(call: Call, calls: int = _CALLS) -> float:
    """Processor time of some calls, in all threads of the process."""
    begin = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begin


@dataclass(frozen=True)
class Ratio:
    """A ratio of two sides, and its limit."""

    name: str
    above: str
    below: str
    limit: float | None = None
    precision: float = PRECISION
    """The standard error to which the ratio must be known."""


def keep_ratio(
    benchmark: BenchmarkFixture, name: str, limit: float | None, numerator: Call, denominator: Call
) -> None:
    """Measure the ratio of two calls that compile nothing, and keep it in the figures."""
    sides = {"above": lambda: seconds_for(numerator), "below": lambda: seconds_for(denominator)}
    keep_ratios(benchmark, sides, [Ratio(name, "above", "below", limit)], most=20_000)


def keep_ratios(  # noqa: PLR0913 (keywords, each of its own)
    benchmark: BenchmarkFixture,
    sides: Mapping[str, Side],
    ratios: Sequence[Ratio],
    *,
    most: int,
    fewest: int = 40,
    turns: int = 1,
    before_round: Call = lambda: None,
) -> None:
    """Let the sides take turns until their ratios are known, and keep these in the figures.

    Args:
        benchmark: pytest-benchmark's fixture.
        sides: functions by name; each returns the seconds that it took.
        ratios: which sides are compared.
        most: the largest number of rounds, even if a ratio is still unknown.
        fewest: the smallest number of rounds, and the number if no ratio has a limit.
        turns: how often each side runs in a round, for work that is done once in a while.
        before_round: work that is not timed, so that no side does it for the others.
    """
    for seconds in sides.values():  # the first call of each is slow
        seconds()
    rounds: list[dict[str, float]] = []

    def measure() -> None:
        wanted = fewest
        while len(rounds) < wanted:
            before_round()
            rounds.append(_one_round(sides, len(rounds), turns))
            # Checked after each round, this would soon take longer than the rounds.
            if len(rounds) == wanted < most and _is_unknown(rounds, ratios):
                wanted = min(most, wanted + wanted // 10 + 1)

    benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["ratios"] = [
        asdict(ratio)
        | {
            "ratio": statistics.median(found := _found(rounds, ratio)),
            "error": error_of(found),
            "rounds": len(rounds),
        }
        for ratio in ratios
    ]


def _one_round(sides: Mapping[str, Side], number: int, turns: int) -> dict[str, float]:
    """Run the sides in turns, with another first each time, because the first warms the caches.

    The order is reversed at times, so that no side always follows the same one.
    """
    names = list(sides)
    seconds = dict.fromkeys(names, 0.0)
    for turn in range(number * turns, (number + 1) * turns):
        first = turn % len(names)
        order = names[first:] + names[:first]
        for name in order[:: -1 if turn // len(names) % 2 else 1]:
            seconds[name] += sides[name]()
    return seconds


def _is_unknown(rounds: Sequence[dict[str, float]], ratios: Sequence[Ratio]) -> bool:
    """Whether a ratio that has a limit could be different in another run."""
    judged = (ratio for ratio in ratios if ratio.limit is not None)
    return any(error_of(_found(rounds, ratio)) > ratio.precision for ratio in judged)


def _found(rounds: Sequence[dict[str, float]], ratio: Ratio) -> list[float]:
    return [seconds[ratio.above] / seconds[ratio.below] for seconds in rounds]


def error_of(ratios: Sequence[float]) -> float:
    """The standard error of the median of ratios, from their spread; outliers do not count.

    >>> error_of([1.0] * 10), round(error_of([0.9, 1.0, 1.1] * 100), 3)
    (0.0, 0.011)
    """
    middle = statistics.median(ratios)
    spread = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return math.sqrt(math.pi / 2) * spread / math.sqrt(len(ratios))
