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
    from collections.abc import Callable, Sequence
    from types import FrameType

    from jitcount._explain.compile import Compile
    from jitcount._observe.in_flight import InFlightCompile


_MOST_PROGRAMS = 5  # of one miscompile are shown


class Suspects:
    """A listener that keeps, for each known miscompile, the programs that may have it."""

    def __init__(self) -> None:
        self.found: dict[Miscompile, list[Compile]] = {}

    def __call__(self, compiled: InFlightCompile) -> None:
        """Look at one program."""
        known = known_on(compiled.platform, jaxlib_release())
        wanted = [each for each in known if each.may_be_in]
        if not wanted:
            return
        executable = compiled_executable(_frame_of_jax(sys._getframe(1)))  # noqa: SLF001 (documented)
        text = "" if executable is None else optimised_text(executable)
        for miscompile in wanted:
            if miscompile.may_be_in and miscompile.may_be_in(text):
                self.found.setdefault(miscompile, []).append(to_compile(compiled))

    def lines(self, advice: Callable[[Compile], str]) -> dict[str, list[str]]:
        """By warning, the programs that it concerns, a line each; of many, the first.

        `advice` says how to see whether a program's results are wrong.
        """
        return {
            warning(miscompile): _few(found, advice) for miscompile, found in self.found.items()
        }


def _few(found: Sequence[Compile], advice: Callable[[Compile], str]) -> list[str]:
    programs = {f"{each.call} at {each.call_site}": each for each in found}
    lines = [
        f"{program} is such a program: {advice(each)}"
        for program, each in list(programs.items())[:_MOST_PROGRAMS]
    ]
    more = len(programs) - len(lines)
    return [*lines, f"and {more} more"] if more else lines


def _frame_of_jax(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is not jitcount's: the one that reports the compile."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("jitcount."):
        frame = frame.f_back
    return frame
