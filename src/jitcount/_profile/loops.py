"""The loops of a program that JAX is about to compile: looked for later, when they are asked for.

`jitcount run --what-if` measures after the program has ended. Until then the jaxprs are kept that
have loops; no more of them than a few, and none that holds large arrays.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from jitcount._loops.find import find, search, with_places
from jitcount._loops.sketch import sketches_of

if TYPE_CHECKING:
    from jitcount._loops.find import Found
    from jitcount._loops.result import Loop
    from jitcount._loops.sketch import Sketch
    from jitcount._profile.draft import Draft

# So many programs are kept, those with the largest loops, and so many bytes of constants in each.
_PROGRAMS = 4
_LARGE = 64 << 20

# Bytes that the sketch of an equation takes, about.
_OF_A_MARK = 500

NO_LOOPS = "no loops were looked for"


@dataclass(slots=True)
class Kept:
    """A program, and the places of its loops."""

    jaxpr: Any
    loops: list[tuple[Loop, list[Found]]]
    reason: str = ""
    """Why it is not kept after all."""

    @property
    def size(self) -> int:
        """How many operations its largest loop has."""
        return max(loop.copies * loop.operations for loop, _ in self.loops)


@dataclass(slots=True)
class Keeper:
    """Keeps the programs with the largest loops, while they are wanted."""

    is_wanted: bool = False
    programs: list[Kept] = field(default_factory=list)
    passed_over: int = 0
    """How many programs with loops are not kept."""

    def keep(self, jaxpr: Any, loops: list[tuple[Loop, list[Found]]]) -> None:
        """Keep one more, unless there are others with larger loops."""
        new = Kept(jaxpr, loops)
        held = sum(getattr(each, "nbytes", 0) for each in jaxpr.consts)
        if held > _LARGE:
            new.reason = f"it closed over {held >> 20} MiB of arrays: pass them as arguments"
            new.jaxpr = None
        self.programs.append(new)
        self.programs.sort(key=lambda each: -each.size)
        self.passed_over += len(self.programs[_PROGRAMS:])
        del self.programs[_PROGRAMS:]


keeper = Keeper()


_keeping = threading.Lock()


def look_for_loops(draft: Draft, jaxpr: Any) -> None:
    """Note what is needed to look for the loops of a program, when its profile is written.

    Where programs are kept, they are looked for now: only the largest are kept.
    """
    if not keeper.is_wanted:
        sketches = sketches_of(jaxpr)
        size = _OF_A_MARK * sum(len(sketch.marks) for sketch in sketches)
        draft.read_later(size, partial(_search, sketches=sketches), NO_LOOPS)
        return
    loops = with_places(find(jaxpr))
    draft.loops = tuple(loop for loop, _ in loops)
    if loops:
        with _keeping:
            keeper.keep(jaxpr, loops)


def _search(draft: Draft, sketches: list[Sketch]) -> None:
    draft.loops = tuple(loop for loop, _ in with_places(search(sketches)))
