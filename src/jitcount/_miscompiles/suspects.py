"""Finds programs that this release is known to compile wrongly, by what the compiler made of them.

This is no verdict: such a program may be too small to be wrong. `checking` computes whether it is.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jitcount._explain.explain import to_compile
from jitcount._jax.profiling import compiled_executable, optimised_text
from jitcount._miscompiles.known import Miscompile, jaxlib_release, known_on, warning

if TYPE_CHECKING:
    from types import FrameType

    from jitcount._observe.in_flight import InFlightCompile


class Suspects:
    """A listener that keeps, for each known miscompile, the first program that may have it."""

    def __init__(self) -> None:
        self.found: dict[Miscompile, str] = {}
        """By miscompile, the call and the line of the program."""

    def __call__(self, compiled: InFlightCompile) -> None:
        """Look at one program; one of each kind is enough."""
        known = known_on(compiled.platform, jaxlib_release())
        wanted = [each for each in known if each.may_be_in and each not in self.found]
        if not wanted:
            return
        executable = compiled_executable(_frame_of_jax(sys._getframe(1)))  # noqa: SLF001 (documented)
        text = "" if executable is None else optimised_text(executable)
        for miscompile in wanted:
            if miscompile.may_be_in and miscompile.may_be_in(text):
                made = to_compile(compiled)
                self.found[miscompile] = f"{made.call} at {made.call_site}"

    def lines(self, advice: str) -> dict[str, tuple[str, str]]:
        """By report, what to tell the user: the warning, and the program that it concerns.

        `advice` says how to see whether its results are wrong.
        """
        return {
            miscompile.reference: (warning(miscompile), f"{call} is such a program: {advice}")
            for miscompile, call in self.found.items()
        }


def _frame_of_jax(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is not jitcount's: the one that reports the compile."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("jitcount."):
        frame = frame.f_back
    return frame
