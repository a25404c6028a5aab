"""What else would help a program, below what to fix: a profile, a persistent cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._explain.fixes import fixes
from jitcount._show.text import plural, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile

CACHED_FROM_S = 1.0
"""JAX's own limit: what is compiled faster is not kept on disk, unless a setting says otherwise."""

# What takes less is not worth a reader's time.
_LONG_S = 2.0

# The largest compile is worth a profile if it takes this share of all.
_LARGE_SHARE = 0.25


def next_steps(compiles: Sequence[Compile], *, has_profile: bool) -> list[str]:
    """What else would help, in a line each; most often nothing.

    Args:
        compiles: all that the program compiled.
        has_profile: whether it is shown already where the time of compiles goes.
    """
    avoidable = {id(compiled) for fix in fixes(compiles) for compiled in fix.compiles}
    needed = [c for c in compiles if id(c) not in avoidable and not c.from_disk]
    steps = []
    total = sum(compiled.total_s for compiled in compiles)
    largest = max(needed, key=lambda compiled: compiled.total_s, default=None)
    if largest and not has_profile and largest.total_s >= max(_LONG_S, _LARGE_SHARE * total):
        took = f"{largest.function} takes {seconds(largest.total_s)} to compile"
        steps.append(f"{took}: --profile shows which of its lines that goes to")
    kept = [compiled for compiled in needed if compiled.compile_s >= CACHED_FROM_S]
    saved = sum(compiled.compile_s for compiled in kept)
    if saved >= _LONG_S and not any(compiled.from_disk for compiled in compiles):
        what = f"a persistent cache would serve {plural(len(kept), 'compile')}"
        steps.append(f"{what} of the next run, {seconds(saved)}: JAX_COMPILATION_CACHE_DIR=FOLDER")
    return steps
