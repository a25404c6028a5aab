"""From what was found of a compile to its profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.profile.result import Phase, Profile

if TYPE_CHECKING:
    from jitcount.profile.profiler import Draft


def profile_of(
    draft: Draft | None, *, trace_s: float, lower_s: float, compile_s: float
) -> Profile | None:
    """Write out what was found; None where nothing was."""
    if draft is None:
        return None
    seconds = {"trace": trace_s, "lower": lower_s, "XLA": compile_s}
    phases = tuple(Phase(name=name, seconds=spent) for name, spent in seconds.items())
    return Profile(loops=draft.loops, phases=phases)
