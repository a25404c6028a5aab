"""What to fix in a program, by what each fix saves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount._explain.clock import clock_seconds
from jitcount._explain.fix import IMPORTS, OUTSIDE_JIT, Fix
from jitcount._explain.outside_jit import outside_jit
from jitcount._explain.recompiles import recompiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount._explain.compile import Compile

__all__ = ["IMPORTS", "OUTSIDE_JIT", "Fix", "fixes", "worst"]

# Operations outside of jit that take less than this share of all compiling are not worth a reader's
# time. A function that is compiled again is: it may be so in each epoch of a longer run.
_WORTH = 0.02

_MOST = 8


def fixes(compiles: Iterable[Compile]) -> list[Fix]:
    """What to fix, by what each saves in seconds of the clock, most first.

    Each saving is counted after those before it, so that they add up: what another thread compiles
    at the same time is saved only when both are.
    """
    left = [compiled for compiled in compiles if not compiled.from_disk]
    found = sorted([*recompiles(left), *outside_jit(left)], key=lambda fix: -fix.seconds)
    before, counted = clock_seconds(left), []
    for fix in found:
        gone = set(map(id, fix.compiles))
        left = [compiled for compiled in left if id(compiled) not in gone]
        after = clock_seconds(left)
        counted.append(replace(fix, seconds=before - after))
        before = after
    return sorted(counted, key=lambda fix: -fix.seconds)


def worst(found: Sequence[Fix], seconds: float) -> list[Fix]:
    """The fixes that matter to a program that compiles for so many seconds."""
    outside = {OUTSIDE_JIT, IMPORTS}
    limit = _WORTH * seconds
    return [fix for fix in found if fix.code not in outside or fix.seconds >= limit][:_MOST]
