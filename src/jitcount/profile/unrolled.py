"""The loops of a program that JAX is about to compile, and which of them are kept for later.

`jitcount run --what-if` measures after the program has ended. Until then the jaxprs are kept that
have loops; no more of them than a few, and none that holds large arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount.profile.loops import find, with_places

if TYPE_CHECKING:
    from jitcount.profile.loops import Found
    from jitcount.profile.result import Loop

# So many programs are kept, those with the largest loops, and so many bytes of constants in each.
_PROGRAMS = 4
_LARGE = 64 << 20


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


def unrolled_loops(jaxpr: Any) -> tuple[Loop, ...]:
    """The loops that were unrolled into a program; kept for later, where that is wanted."""
    loops = with_places(find(jaxpr))
    if loops and keeper.is_wanted:
        keeper.keep(jaxpr, loops)
    return tuple(loop for loop, _ in loops)
