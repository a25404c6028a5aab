"""Loops of Python that were unrolled into a program: one copy of its operations for each turn."""

from __future__ import annotations

import dis
import functools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._jax.origin import JAX_DIRECTORIES
from jitcount._loops.repeats import Repeat, Step, find_repeats
from jitcount._loops.result import Loop
from jitcount._loops.sketch import sketches_of
from jitcount._observe.call_site import CallSite, owner_of, site_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType

    from jitcount._jax.jaxprs import CodeStack
    from jitcount._loops.sketch import Mark, Sketch

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


# --- A level of a program, as steps in which repeats can be looked for, and what else is a loop


# Of a body that comes from one place: so many copies are a loop, where each follows from the one
# before, and so many where none does.
_FEW = 3
_SOME = 4


class Level:
    """The equations of one jaxpr."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self._marks = sketch.marks
        self._keys = Keys()
        self._places: dict[int, tuple[object, ...]] = {}
        self.steps = list(self._steps())

    def body(self, repeat: Repeat) -> list[Mark]:
        """The equations of one copy, the first."""
        return self._marks[repeat.start : repeat.start + repeat.period]

    def stack_at(self, number: int) -> CodeStack:
        """The stack of an equation, from the function of this level on.

        Up to 0.9 JAX keeps what is around that too: a loop that calls the program is none of it.
        """
        stack, traced = self._marks[number].stack, self.sketch.source
        if traced is None:
            return stack
        for depth in range(len(stack) - 1, -1, -1):
            code = stack[depth][0]
            if (code.co_filename, str(code.co_firstlineno)) == (traced.file, traced.line):
                return stack[: depth + 1]
        return stack

    def operations(self, repeat: Repeat) -> int:
        """How many operations a copy has, with those in bodies of its own."""
        return sum(mark.kind.operations for mark in self.body(repeat))

    def is_a_loop(self, repeat: Repeat) -> bool:
        """Whether it computes, and not the same thing again and again.

        Where all of a body comes from one place, few copies that do not follow from each other may
        as well be what a transformation made of one operation: two products of a derivative.
        """
        if not any(mark.kind.computes for mark in self.body(repeat)):
            return False
        second = repeat.start + repeat.period
        follows, changes = False, False
        for at in range(repeat.start, second):
            inputs, next_inputs = self.steps[at].inputs, self.steps[at + repeat.period].inputs
            for one, next_one in zip(inputs, next_inputs, strict=True):
                follows |= repeat.start <= next_one.step < second
                changes |= next_one.step < second and one != next_one
        if repeat.copies >= (_FEW if follows else _SOME):
            return changes
        return changes and len(set(map(self._place, self.body(repeat)))) > 1

    def turns(self, repeat: Repeat) -> int:
        """How often the loop was gone through.

        The first turn or the last may have less than the others: of a gradient, nothing for what
        the first layer is given. It still is one, unless what it has is of another shape.
        """
        copy = range(repeat.start, repeat.start + repeat.period)
        symbols = Counter(self.steps[at].symbol for at in copy)
        first, last = repeat.within
        before = range(max(repeat.start - repeat.period, first), repeat.start)
        after = range(repeat.end, min(repeat.end + repeat.period, last))
        sides = [self._shared(side, repeat) for side in (before, after)]
        parts = [Counter(x for x in side or () if x in symbols) for side in sides]
        # The copies need not begin where a turn does: then the two ends are parts of one.
        is_one = parts[0] + parts[1] <= symbols
        if None in sides and is_one:  # one that is of another shape
            return repeat.copies
        return repeat.copies + (any(parts) if is_one else sum(map(bool, parts)))

    def _shared(self, side: Iterable[int], repeat: Repeat) -> list[int] | None:
        """The symbols of the equations beside a repeat that come from the same places.

        None where they are not of the same shapes.
        """
        body = self.body(repeat)
        places = set(map(self._place, body))
        shapes = {shape for mark in body for shape in mark.kind.shapes}
        turn = [at for at in side if self._place(self._marks[at]) in places]
        is_alike = all(shapes.issuperset(self._marks[at].kind.shapes) for at in turn)
        return [self.steps[at].symbol for at in turn] if is_alike else None

    def _place(self, mark: Mark) -> tuple[object, ...]:
        """Where it was traced, for comparison; equations of the same stack share it."""
        if id(mark.stack) not in self._places:
            self._places[id(mark.stack)] = self._keys.of(mark.stack)
        return self._places[id(mark.stack)]

    def _steps(self) -> Iterator[Step]:
        """The equations as steps; the stack is read of those that are not alone of their kind."""
        how_many = Counter(mark.kind.number for mark in self._marks)
        symbols: dict[object, int] = {}
        for mark in self._marks:
            place = self._place(mark) if how_many[mark.kind.number] > 1 else ()
            symbol = symbols.setdefault((mark.kind.number, place), len(symbols))
            yield Step(symbol, mark.inputs)


# --- Which loop of Python made copies of an equation: found in the code of the frames of its st
#
# Copies were traced under the same stack: the same instruction of the same code, in every frame. So
# one of these instructions stands in a loop, or calls what loops, or calls itself. Copies that have
# no such frame were made by JAX, as those that a transformation makes of one equation.


# Functions in C that call a function again and again: their frames are not on the stack. Those of
# the first set are known by their names alone, those of the second as an attribute of a module.
_BUILTINS = frozenset({"map", "sum", "reduce", "accumulate", "starmap"})
_OF_MODULES = frozenset({"reduce", "accumulate", "starmap"})
_MODULES = frozenset({"functools", "itertools"})

# Of JAX, but written with its public names, as a library is.
_LIBRARIES_OF_JAX = ("example_libraries", "experimental")


@dataclass(frozen=True, slots=True)
class PythonLoop:
    """A loop in a function."""

    stack: CodeStack
    """From the frame that has the loop outward."""

    line: int
    """Where the loop begins: of a `for`, its own line."""


class Keys:
    """Stacks, for comparison; they must be kept alive for as long as this is."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], object] = {}
        self._positions: dict[int, list[tuple[int | None, ...]]] = {}

    def of(self, stack: CodeStack) -> tuple[object, ...]:
        """The places of its frames; of a function that has called itself, the innermost."""
        innermost = {id(code): (code, offset) for code, offset in reversed(stack)}
        return tuple(self._place(code, offset) for code, offset in innermost.values())

    def _place(self, code: CodeType, offset: int) -> object:
        """Where in the source an instruction stands.

        Not its offset: up to Python 3.11 a call is two instructions, and which of them makes it
        changes when Python has adapted the code to what it calls.
        """
        key = id(code), offset
        if (place := self._places.get(key)) is None:
            if id(code) not in self._positions:
                self._positions[id(code)] = list(code.co_positions())
            position = self._positions[id(code)][offset // 2]
            has_columns = position[2] is not None  # else Python was told not to keep them
            place = self._places[key] = id(code), position if has_columns else offset
        return place


def loop_of(stacks: Sequence[CodeStack], next_stack: CodeStack) -> PythonLoop | None:
    """The innermost loop that all equations of a body were traced in.

    None where there is none, and for a loop inside of JAX, which a user could not write otherwise.

    Args:
        stacks: those of one copy.
        next_stack: that of the first equation of the next one.
    """
    found, is_jaxs = None, True
    for depth, code, offsets in _shared(stacks):
        if line := _line_of_loop(code, offsets) or _line_of_call(code, offsets):
            found = PythonLoop(stacks[0][len(stacks[0]) - 1 - depth :], line)
            is_jaxs = is_of_jax(code)
        elif not is_of_jax(code):
            is_jaxs = False  # a function of the user's that JAX calls in its loop: of a tree_map
    return _recursion(stacks[0], next_stack) or (None if is_jaxs else found)


def is_of_jax(code: CodeType) -> bool:
    """Whether code is JAX's, and not a library's or the user's."""
    for directory in JAX_DIRECTORIES:
        if code.co_filename.startswith(directory):
            return not code.co_filename[len(directory) :].startswith(_LIBRARIES_OF_JAX)
    return False


def _shared(stacks: Sequence[CodeStack]) -> Iterator[tuple[int, CodeType, list[int]]]:
    """The frames that all stacks have, from the outermost on; in the last they may be apart."""
    for depth, frames in enumerate(zip(*(reversed(stack) for stack in stacks), strict=False)):
        code = frames[0][0]
        if any(other is not code for other, _ in frames):
            return
        offsets = sorted({offset for _, offset in frames})
        yield depth, code, offsets
        if len(offsets) > 1:
            return


def _line_of_loop(code: CodeType, offsets: list[int]) -> int:
    """The first line of the innermost loop of a function that has all offsets in it; 0 for none."""
    around = [
        (last - first, line)
        for first, last, line in _loops_of_code(code)
        if first <= offsets[0] and offsets[-1] <= last
    ]
    return min(around, default=(0, 0))[1]


@functools.lru_cache(maxsize=4096)
def _loops_of_code(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    """The loops of a function: the first and the last offset, and the line that each begins at."""
    found = []
    for first, last in _jumps_back(code):
        lines = (line for start, end, line in code.co_lines() if start <= last and end > first)
        found.append((first, last, min((line for line in lines if line), default=0)))
    return tuple(found)


def _jumps_back(code: CodeType) -> Iterator[tuple[int, int]]:
    """From where to where a function jumps back; but not out of an `except` or a `with`."""
    instructions = list(dis.get_instructions(code))
    names = {each.offset: each.opname for each in instructions}
    for at, each in enumerate(instructions):
        if "JUMP" not in each.opname or not isinstance(each.argval, int):
            continue
        handled = any(x.opname == "POP_EXCEPT" for x in instructions[max(at - 4, 0) : at])
        if each.argval < each.offset and (names.get(each.argval) == "FOR_ITER" or not handled):
            yield each.argval, each.offset


def _line_of_call(code: CodeType, offsets: list[int]) -> int:
    """The line of a call, where the function uses `map` or the like; 0 where it does not."""
    if len(offsets) > 1 or is_of_jax(code) or not _calls_again(code):
        return 0
    return line_at(code, offsets[0])


@functools.lru_cache(maxsize=4096)
def _calls_again(code: CodeType) -> bool:
    names = set(code.co_names)
    if names & _MODULES and names & _OF_MODULES:
        return True
    return bool(names & _BUILTINS) and any(
        each.opname in {"LOAD_GLOBAL", "LOAD_NAME"} and each.argval in _BUILTINS
        for each in dis.get_instructions(code)
    )


def _recursion(stack: CodeStack, next_stack: CodeStack) -> PythonLoop | None:
    """A function that called itself once more for the next copy."""
    if len(stack) == len(next_stack):
        return None
    longer, shorter = sorted((stack, next_stack), key=len, reverse=True)
    more = Counter(longer)
    more.subtract(Counter(shorter))
    for depth, (code, offset) in enumerate(longer):
        if more[code, offset] > 0 and not is_of_jax(code):
            return PythonLoop(longer[depth:], line_at(code, offset))
    return None


def line_at(code: CodeType, offset: int) -> int:
    """The line of an instruction."""
    lines = (line for start, end, line in code.co_lines() if start <= offset < end)
    return next(lines, None) or code.co_firstlineno
