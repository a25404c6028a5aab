"""Seconds of the clock: what threads compile at the same time counts once."""

from __future__ import annotations

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
