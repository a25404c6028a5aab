"""Seconds of the clock: what threads compile at the same time counts once."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._explain.compile import Compile


def clock_seconds(compiles: Iterable[Compile]) -> float:
    """How many seconds of the clock passed while any of these was compiled.

    A compile within another's trace, or beside it in another thread, adds nothing. One whose
    beginning is not known adds all of its seconds.
    """
    every = list(compiles)
    total = sum(compiled.total_s for compiled in every if not compiled.started_at)
    spans = sorted((c.started_at, c.started_at + c.total_s) for c in every if c.started_at)
    end = 0.0
    for begun, ended in spans:
        total += max(0.0, ended - max(begun, end))
        end = max(end, ended)
    return total


def clock_of_phases(compiles: Iterable[Compile]) -> dict[str, float]:
    """The same seconds, divided among ``trace_s``, ``lower_s`` and ``compile_s``.

    While several are under way, in threads or one within another's trace, the seconds are of the
    one that began last.
    """
    totals = dict.fromkeys(("trace_s", "lower_s", "compile_s"), 0.0)
    spans: list[tuple[float, float, str]] = []
    for compiled in compiles:
        begun = compiled.started_at
        for phase in totals:
            took = getattr(compiled, phase)
            if begun:
                spans.append((begun, begun + took, phase))
                begun += took
            else:
                totals[phase] += took
    now, active = 0.0, list[tuple[float, float, str]]()  # the one that began last is first
    for begun, ended, phase in [*sorted(spans), (math.inf, math.inf, "")]:
        while active and now < begun:
            _, end, running = active[0]
            until = max(now, min(end, begun))
            totals[running] += until - now
            now = until
            if end <= now:
                heapq.heappop(active)
        now = begun
        heapq.heappush(active, (-begun, ended, phase))
    return totals
