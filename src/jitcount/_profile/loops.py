"""The loops of a program that is being compiled: it is sketched now, and searched later.

`jitcount run --what-if` measures loops after the run has ended. Until then a few jaxprs with loops
are kept, the largest, and none that holds large arrays.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from jitcount._loops.find import by_line, find_loops, find_loops_in
from jitcount._loops.sketch import sketches_of

if TYPE_CHECKING:
    from jitcount._loops.find import FoundLoop
    from jitcount._loops.result import Loop
    from jitcount._loops.sketch import JaxprSketch
    from jitcount._profile.draft import Draft

# How many programs are kept, and how many bytes of constants each may have.
_PROGRAMS = 4
_LARGE = 64 << 20

# About how many bytes the sketch of an equation takes.
_SKETCH_BYTES = 500

NO_LOOPS = "no loops were looked for"


@dataclass(slots=True)
class Kept:
    """A program that is kept to be measured, and its loops."""

    jaxpr: Any
    loops: list[tuple[Loop, list[FoundLoop]]]
    reason: str = ""
    """Why its jaxpr is not kept after all."""

    @property
    def size(self) -> int:
        """How many operations the program's largest loop has in all copies."""
        return max(loop.copies * loop.operations for loop, _ in self.loops)


@dataclass(slots=True)
class LoopPrograms:
    """The programs with the largest loops, kept while a block wants to measure them."""

    programs: list[Kept] = field(default_factory=list)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, jaxpr: Any, loops: list[tuple[Loop, list[FoundLoop]]]) -> None:
        """Keep one more program, unless there are enough with larger loops."""
        new = Kept(jaxpr, loops)
        held = sum(getattr(each, "nbytes", 0) for each in jaxpr.consts)
        if held > _LARGE:
            new.reason = f"it closed over {held >> 20} MiB of arrays: pass them as arguments"
            new.jaxpr = None
        with self._changing:
            self.programs.append(new)
            self.programs.sort(key=lambda each: -each.size)
            del self.programs[_PROGRAMS:]


def look_for_loops(draft: Draft, jaxpr: Any, keep_in: LoopPrograms | None) -> None:
    """Sketch a program, for the search for its loops when its profile is read.

    If programs are to be kept, the search is now: only those with the largest loops are.
    """
    if keep_in is None:
        sketches = sketches_of(jaxpr)
        size = _SKETCH_BYTES * sum(len(sketch.equations) for sketch in sketches)
        draft.read_later(size, partial(_search, sketches=sketches), NO_LOOPS)
        return
    loops = by_line(find_loops(jaxpr))
    draft.loops = tuple(loop for loop, _ in loops)
    if loops:
        keep_in.keep(jaxpr, loops)


def _search(draft: Draft, sketches: list[JaxprSketch]) -> None:
    draft.loops = tuple(loop for loop, _ in by_line(find_loops_in(sketches)))
