"""What to fix in a program, by what each fix saves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount._explain.clock import clock_seconds
from jitcount._explain.fix import IMPORTS, OUTSIDE_JIT, Fix
from jitcount._explain.outside_jit import outside_jit
from jitcount._explain.recompiles import recompiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jitcount._explain.compile import Compile

__all__ = ["IMPORTS", "OUTSIDE_JIT", "Fix", "fixes", "worst"]

# What takes less than this share of all compiling is not worth a reader's time. A function that is
# compiled again and again is: it may be so in each epoch of a longer run.
_WORTH = 0.02

# Where there is nothing to change but to keep what is compiled for the next run.
_WORTH_KEEPING = 0.1

_MOST = 8


def fixes(
    compiles: Iterable[Compile],
    seconds_of: Callable[[Iterable[Compile]], float] = clock_seconds,
) -> list[Fix]:
    """What to fix, by what each saves, most first.

    Each saving is counted after those before it, so that they add up: what another thread compiles
    at the same time is saved only when both are.

    Args:
        compiles: all that was compiled.
        seconds_of: how long some of it took, on the clock unless it is of several processes.
    """
    left = [compiled for compiled in compiles if not compiled.from_disk]
    found = sorted([*recompiles(left), *outside_jit(left)], key=lambda fix: -fix.seconds)
    before, counted = seconds_of(left), []
    for fix in found:
        gone = set(map(id, fix.compiles))
        left = [compiled for compiled in left if id(compiled) not in gone]
        after = seconds_of(left)
        counted.append(replace(fix, seconds=before - after))
        before = after
    return sorted(counted, key=lambda fix: -fix.seconds)


def worst(found: Sequence[Fix], seconds: float) -> list[Fix]:
    """The first of the fixes: those that matter where compiling takes so many seconds."""
    least = _WORTH_KEEPING * seconds
    wanted = [fix for fix in found if not fix.is_only_kept or fix.seconds >= least]
    matters = [_is_again_and_again(fix) or fix.seconds >= _WORTH * seconds for fix in wanted]
    # What saves more than one that is listed is listed before it.
    count = max((number for number, is_so in enumerate(matters, 1) if is_so), default=0)
    return wanted[: min(count, _MOST)]


def _is_again_and_again(fix: Fix) -> bool:
    return fix.code not in {OUTSIDE_JIT, IMPORTS} and fix.count > 1
