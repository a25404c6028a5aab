"""Tells whether a find is one that was reported in public, or one that this hunt has had already.

Two wrong programs are taken for the same fault if the same flag makes both right and the larger has
all operations of the smaller. That is a guess, and is called one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount._miscompiles.known import Miscompile, jaxlib_release, known_on
from tools.hunt.hunting import SECONDS_EACH, Failure, Find, check
from tools.hunt.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.hunt.program import Program

_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")

# Which operations a program needs to have a reported fault: one of each row. The hunt does not
# read this before it has found something. Reports that are not here have no flag that avoids them,
# or need what the grammar leaves out, such as NaN.
NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "jax #39103": (("dot",), _REDUCTIONS),
    "jax #39257": (("dot", "multiply"), _REDUCTIONS),
    "unreported: one number": (("dot",), _REDUCTIONS),
    "unreported: wrapped bytes": (
        ("add", "multiply", "neg", "square", "subtract"),
        ("reduce_max", "reduce_min"),
    ),
    "openxla #48714": (("reduce_window",),),
    "openxla #49176": (("dynamic_update_slice",),),
    "openxla #48719": (("reduce_window",),),
    "jax #40849": (("dynamic_slice",),),
}


def reported() -> list[Miscompile]:
    """The reported faults of the installed release that a program of the grammar can have."""
    return [one for one in known_on("cpu", jaxlib_release()) if one.reference in NEEDS]


def recognised(find: Find, among: Sequence[Miscompile]) -> str:
    """Which reports the find is probably another example of, in words; empty if none.

    A report without a flag that avoids its fault cannot be told so: then the find counts as new.

    Args:
        find: with the flags that make it right.
        among: the reports of the release.
    """
    has = set(find.program.operations())

    def fits(one: Miscompile) -> bool:
        return all(has.intersection(row) for row in NEEDS[one.reference])

    ended = find.failure.kind in {"crash", "hang"}
    alike = [one for one in among if ("the process" in one.about) == ended and fits(one)]
    cured = [one for one in alike if one.cured_by and one.cured_by in find.cures]
    names = " or ".join(f"{one.reference} ({one.about})" for one in cured)
    return f"probably {names}: its flag makes this right too" if cured else ""


@dataclass
class Finds:
    """What this hunt has found, to tell new faults from more examples of the same.

    Attributes:
        make_worker: starts a worker with flags.
    """

    make_worker: Callable[[str], Worker] = lambda flags: Worker(SECONDS_EACH, flags)
    all: list[Find] = field(default_factory=list)
    _workers: dict[str, Worker] = field(default_factory=dict)

    def has(self, program: Program, failure: Failure) -> bool:
        """Whether a wrong program shows what an earlier one has shown."""
        counted = Counter(program.operations())
        alike = [
            find
            for find in self.all
            if find.comes_again
            and find.failure.kind == failure.kind
            and Counter(find.program.operations()) <= counted
        ]
        return any(self._is_alike(program, find) for find in alike)

    def _is_alike(self, program: Program, find: Find) -> bool:
        """Whether the flag that cures the find cures the program; without one, the other way."""
        if find.cures:
            return self._is_right(program, find.cures[0], compiled=find.compiled)
        other_way = self._is_right(program, "", compiled=not find.compiled)
        return other_way == (find.other_way == "right")

    def _is_right(self, program: Program, flags: str, *, compiled: bool) -> bool:
        if flags not in self._workers:
            self._workers[flags] = self.make_worker(flags)
        return check(program, self._workers[flags], compiled=compiled) is None

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.__exit__()
        self._workers.clear()
