"""Loops of Python that were unrolled into a program: one copy of its operations for each turn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount.observe.call_site import CallSite, owner_of, site_at
from jitcount.profile.level import Level
from jitcount.profile.python_loops import is_of_jax, line_at, loop_of
from jitcount.profile.repeats import Repeat, find_repeats
from jitcount.profile.result import Loop
from jitcount.profile.sketch import sketches_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType

    from jitcount.profile.python_loops import PythonLoop
    from jitcount.profile.sketch import Sketch

# A scan has about so many operations of its own: two copies must save more. A library's loop must
# save more still: it also goes over a handful of arrays that happen to be of one shape, as
# `jax.tree.map` does.
_OF_A_SCAN = 8
_OF_A_LIBRARY = 2 * _OF_A_SCAN
_OF_A_TREE = 4 * _OF_A_SCAN

_COMPREHENSION = re.compile(r"(\.<locals>)?\.<(listcomp|dictcomp|setcomp|genexpr)>")


@dataclass(frozen=True, slots=True)
class Found:
    """A loop, and where in the program it is."""

    level: Level
    repeat: Repeat
    call_site: CallSite
    turns: int
    """Of the loop: its first or last one may lack some of the operations of the others."""

    operations: int
    is_backward: bool

    @property
    def size(self) -> int:
        """How many operations it has in all."""
        return self.turns * self.operations


def find_loops(closed_jaxpr: Any) -> tuple[Loop, ...]:
    """The unrolled loops of a program, the largest first.

    A loop's backward pass stands beside it; one that is alone is a loop as any other.
    """
    return tuple(loop for loop, _ in with_places(find(closed_jaxpr)))


def with_places(found: list[Found]) -> list[tuple[Loop, list[Found]]]:
    """The loops as they are shown, each with all that was found of it."""
    groups: dict[CallSite, list[Found]] = {}
    for each in sorted(found, key=lambda each: (each.is_backward, -each.size)):
        groups.setdefault(each.call_site, []).append(each)
    loops: list[tuple[Loop, list[Found]]] = []
    for site, group in groups.items():
        forward = [each for each in group if not each.is_backward]
        backward = [each for each in group if each.is_backward]
        # Of the same turns, the largest: a first turn of a loop around it has less.
        shown = {each.turns: each for each in reversed(forward or backward)}
        for turns, largest in reversed(shown.items()):
            beside = backward[0] if forward and backward and not loops_at(loops, site) else None
            loop = Loop(
                call_site=site,
                copies=turns,
                operations=largest.operations,
                backward=None if beside is None else (beside.turns, beside.operations),
            )
            loops.append((loop, [largest, *filter(None, [beside])]))
    return sorted(loops, key=lambda each: -each[1][0].size)


def loops_at(loops: list[tuple[Loop, list[Found]]], site: CallSite) -> bool:
    """Whether a line has a loop already: the backward pass is the larger one's."""
    return any(loop.call_site == site for loop, _ in loops)


def outermost(found: Sequence[Found]) -> list[Found]:
    """Those that are not inside of another one at the same level: all can be rolled up at once."""
    kept: list[Found] = []
    for each in sorted(found, key=lambda each: each.repeat.start - each.repeat.end):
        if all(
            each.level is not other.level
            or each.repeat.end <= other.repeat.start
            or each.repeat.start >= other.repeat.end
            for other in kept
        ):
            kept.append(each)
    return kept


def find(closed_jaxpr: Any) -> list[Found]:
    """The loops of a program, and where they are."""
    return search(sketches_of(closed_jaxpr, keep=True))


def search(sketches: Iterable[Sketch]) -> list[Found]:
    """The loops of a program of which only a sketch is left."""
    return [found for sketch in sketches for found in _loops_in(Level(sketch))]


def _loops_in(level: Level) -> Iterator[Found]:
    sites: dict[tuple[int, int], CallSite] = {}

    def accept(repeat: Repeat) -> bool:
        if not level.is_a_loop(repeat):
            return False
        second = repeat.start + repeat.period
        stacks = [level.stack_at(number) for number in range(repeat.start, second)]
        loop = loop_of(stacks, level.stack_at(second))
        if loop is None or not _is_worth_it(loop, repeat.copies, level.operations(repeat)):
            return False
        sites[repeat.start, repeat.period] = _site_of(loop)
        return True

    for repeat in find_repeats(level.steps, accept):
        yield Found(
            level,
            repeat,
            sites[repeat.start, repeat.period],
            level.turns(repeat),
            level.operations(repeat),
            level.sketch.is_backward or all(mark.is_backward for mark in level.body(repeat)),
        )


def _is_worth_it(loop: PythonLoop, copies: int, operations: int) -> bool:
    saved = operations * (copies - 1)
    code = loop.stack[0][0]
    if is_of_jax(code) or (copies == 2 and owner_of(code.co_filename) != "user"):
        return saved > _OF_A_TREE
    if owner_of(code.co_filename) != "user":
        return saved >= _OF_A_LIBRARY
    return copies > 2 or saved > _OF_A_SCAN


def _site_of(loop: PythonLoop) -> CallSite:
    """The loop's line where it is the user's; else the line of the user's that led to it."""
    own = loop.stack[0][0]
    for code, offset in loop.stack:
        if owner_of(code.co_filename) == "user":
            line = loop.line if code is own else line_at(code, offset)
            return site_at(code.co_filename, line, _named(code))
    return site_at(own.co_filename, loop.line, _named(own))


def _named(code: CodeType) -> str:
    """The function that code is in: up to Python 3.11 a comprehension has a name of its own."""
    return _COMPREHENSION.sub("", code.co_qualname)
