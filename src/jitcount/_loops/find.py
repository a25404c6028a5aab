"""Finds loops of Python that were unrolled into a program: one copy of their body per iteration.

A copy of a body repeats in the equations of a jaxpr (`repeats`), and the code of the frames that
its equations were traced under says which loop made it.
"""

from __future__ import annotations

import dis
import functools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._jax.jaxprs import line_at
from jitcount._jax.origin import JAX_DIRECTORIES
from jitcount._loops.repeats import Repeat, Step, find_repeats
from jitcount._loops.result import Loop
from jitcount._loops.sketch import sketches_of
from jitcount._observe.call_site import CallSite, owner_of, site_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType

    from jitcount._jax.jaxprs import CodeStack
    from jitcount._loops.sketch import EquationSketch, JaxprSketch

# A scan has about so many operations of its own: two copies must save more. A library's loop must
# save more still: it may go over a handful of arrays that happen to have one shape, as
# `jax.tree.map` does.
_OF_A_SCAN = 8
_OF_A_LIBRARY = 2 * _OF_A_SCAN
_OF_A_TREE = 4 * _OF_A_SCAN

_COMPREHENSION = re.compile(r"(\.<locals>)?\.<(listcomp|dictcomp|setcomp|genexpr)>")


@dataclass(frozen=True, slots=True)
class FoundLoop:
    """A loop, and where in the program it is."""

    level: JaxprLevel
    repeat: Repeat
    call_site: CallSite
    iterations: int
    """How often the loop ran; its first or last iteration may lack operations of the others."""

    operations: int
    is_backward: bool

    @property
    def size(self) -> int:
        """How many operations it has in all iterations."""
        return self.iterations * self.operations


def find_loops(closed_jaxpr: Any) -> list[FoundLoop]:
    """The unrolled loops of a program, with the jaxprs that they are in."""
    return find_loops_in(sketches_of(closed_jaxpr, keep=True))


def find_loops_in(sketches: Iterable[JaxprSketch]) -> list[FoundLoop]:
    """The unrolled loops of a program of which only sketches are left."""
    return [found for sketch in sketches for found in _loops_in(JaxprLevel(sketch))]


def by_line(found: list[FoundLoop]) -> list[tuple[Loop, list[FoundLoop]]]:
    """The loops as users see them, the largest first, each with all that was found of it.

    A loop's backward pass belongs to it; a backward pass alone is a loop like any other.
    """
    groups: dict[CallSite, list[FoundLoop]] = {}
    for each in sorted(found, key=lambda each: (each.is_backward, -each.size)):
        groups.setdefault(each.call_site, []).append(each)
    loops: list[tuple[Loop, list[FoundLoop]]] = []
    for site, group in groups.items():
        forward = [each for each in group if not each.is_backward]
        backward = [each for each in group if each.is_backward]
        # Of as many iterations, the largest: a first iteration of a loop around it has less.
        largest = {each.iterations: each for each in reversed(forward or backward)}
        for number, each in enumerate(reversed(largest.values())):
            beside = backward[0] if forward and backward and not number else None
            loop = Loop(
                call_site=site,
                copies=each.iterations,
                operations=each.operations,
                backward=None if beside is None else (beside.iterations, beside.operations),
            )
            loops.append((loop, [each, *filter(None, [beside])]))
    return sorted(loops, key=lambda each: -each[1][0].size)


def outermost(found: Sequence[FoundLoop]) -> list[FoundLoop]:
    """The loops that are inside of no other one at their level: all can be scans at once."""
    kept: list[FoundLoop] = []
    for each in sorted(found, key=lambda each: each.repeat.start - each.repeat.end):
        if all(
            each.level is not other.level
            or each.repeat.end <= other.repeat.start
            or each.repeat.start >= other.repeat.end
            for other in kept
        ):
            kept.append(each)
    return kept


def _loops_in(level: JaxprLevel) -> Iterator[FoundLoop]:
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
        yield FoundLoop(
            level,
            repeat,
            sites[repeat.start, repeat.period],
            level.iterations(repeat),
            level.operations(repeat),
            level.sketch.is_backward or all(each.is_backward for each in level.body(repeat)),
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
    """The line of a loop of the user's; of another's, the user's line that led to it."""
    own = loop.stack[0][0]
    for code, offset in loop.stack:
        if owner_of(code.co_filename) == "user":
            line = loop.line if code is own else line_at(code, offset)
            return site_at(code.co_filename, line, _named(code))
    return site_at(own.co_filename, loop.line, _named(own))


def _named(code: CodeType) -> str:
    """The name of code's function: up to Python 3.11 a comprehension has a name of its own."""
    return _COMPREHENSION.sub("", code.co_qualname)


# --- A level of a program -------------------------------------------------------------------------

# If a body comes from one place, so many copies are a loop where each takes what the one before
# made, and so many where none does.
_FEW = 3
_SOME = 4


class JaxprLevel:
    """The equations of one jaxpr as steps, in which repeats are looked for."""

    def __init__(self, sketch: JaxprSketch) -> None:
        self.sketch = sketch
        self._equations = sketch.equations
        self._keys = _StackKeys()
        self._places: dict[int, tuple[object, ...]] = {}
        self.steps = list(self._steps())

    def body(self, repeat: Repeat) -> list[EquationSketch]:
        """The equations of the first copy of a repeat."""
        return self._equations[repeat.start : repeat.start + repeat.period]

    def stack_at(self, number: int) -> CodeStack:
        """The stack of an equation, from the function of this level inward.

        Up to 0.9 JAX keeps the frames around that too: a loop that calls the program is not in it.
        """
        stack, traced = self._equations[number].stack, self.sketch.source
        if traced is None:
            return stack
        for depth in range(len(stack) - 1, -1, -1):
            code = stack[depth][0]
            if (code.co_filename, str(code.co_firstlineno)) == (traced.file, traced.line):
                return stack[: depth + 1]
        return stack

    def operations(self, repeat: Repeat) -> int:
        """How many operations a copy of a repeat has, with those in bodies of its own."""
        return sum(each.kind.operations for each in self.body(repeat))

    def is_a_loop(self, repeat: Repeat) -> bool:
        """Whether a repeat computes, and not the same thing again and again.

        If all of a body comes from one place, a few copies that do not depend on each other may
        also be what a transformation made of one operation: two products of a derivative.
        """
        if not any(each.kind.computes for each in self.body(repeat)):
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

    def iterations(self, repeat: Repeat) -> int:
        """How often a loop ran.

        The first iteration or the last may have less than the others: in a gradient, nothing for
        the input of the first layer. It counts all the same, unless its shapes are others.
        """
        copy = range(repeat.start, repeat.start + repeat.period)
        symbols = Counter(self.steps[at].symbol for at in copy)
        first, last = repeat.within
        before = range(max(repeat.start - repeat.period, first), repeat.start)
        after = range(repeat.end, min(repeat.end + repeat.period, last))
        sides = [self._shared(side, repeat) for side in (before, after)]
        parts = [Counter(x for x in side or () if x in symbols) for side in sides]
        # The copies need not begin where an iteration does: then both ends are parts of one.
        is_one = parts[0] + parts[1] <= symbols
        if None in sides and is_one:  # its shapes are others
            return repeat.copies
        return repeat.copies + (any(parts) if is_one else sum(map(bool, parts)))

    def _shared(self, side: Iterable[int], repeat: Repeat) -> list[int] | None:
        """The symbols of the equations beside a repeat that come from the places of its body.

        None where their shapes are others.
        """
        body = self.body(repeat)
        places = set(map(self._place, body))
        shapes = {shape for each in body for shape in each.kind.shapes}
        found = [at for at in side if self._place(self._equations[at]) in places]
        is_alike = all(shapes.issuperset(self._equations[at].kind.shapes) for at in found)
        return [self.steps[at].symbol for at in found] if is_alike else None

    def _place(self, equation: EquationSketch) -> tuple[object, ...]:
        """Where an equation was traced, for comparison; equations of one stack share it."""
        stack = equation.stack
        if id(stack) not in self._places:
            self._places[id(stack)] = self._keys.key_of(stack)
        return self._places[id(stack)]

    def _steps(self) -> Iterator[Step]:
        """The equations as steps; stacks are compared only of kinds that occur more than once."""
        how_many = Counter(each.kind.number for each in self._equations)
        symbols: dict[object, int] = {}
        for each in self._equations:
            place = self._place(each) if how_many[each.kind.number] > 1 else ()
            symbol = symbols.setdefault((each.kind.number, place), len(symbols))
            yield Step(symbol, each.inputs)


# --- The loop of Python that made copies of an equation -------------------------------------------
#
# Copies were traced under the same stack: the same instruction of the same code, in every frame. So
# one of these instructions is in a loop, or calls something that loops, or calls itself. Copies
# without such a frame were made by JAX, like those that a transformation makes of one equation.

# Functions in C that call a function again and again, and have no frame on the stack. Those of the
# first set are recognised by their names alone, those of the second as attributes of a module.
_BUILTINS = frozenset({"map", "sum", "reduce", "accumulate", "starmap"})
_OF_MODULES = frozenset({"reduce", "accumulate", "starmap"})
_MODULES = frozenset({"functools", "itertools"})

# Packages in JAX's directory that use its public names, as a library does.
_LIBRARIES_OF_JAX = ("example_libraries", "experimental")


@dataclass(frozen=True, slots=True)
class PythonLoop:
    """A loop in a function of Python's."""

    stack: CodeStack
    """The frame that has the loop, and those outside of it."""

    line: int
    """The line that the loop begins at: that of a `for`."""


class _StackKeys:
    """Makes stacks comparable; they are cached by their ids, so they must outlive this."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], object] = {}
        self._positions: dict[int, list[tuple[int | None, ...]]] = {}

    def key_of(self, stack: CodeStack) -> tuple[object, ...]:
        """The places of a stack's frames; of a function that called itself, the innermost."""
        innermost = {id(code): (code, offset) for code, offset in reversed(stack)}
        return tuple(self._place(code, offset) for code, offset in innermost.values())

    def _place(self, code: CodeType, offset: int) -> object:
        """Where in the source an instruction of Python's is.

        Its offset will not do: up to Python 3.11 a call is two instructions, and which of them
        makes it changes when Python has adapted the code to what it calls.
        """
        key = id(code), offset
        if (place := self._places.get(key)) is None:
            if id(code) not in self._positions:
                self._positions[id(code)] = list(code.co_positions())
            position = self._positions[id(code)][offset // 2]
            has_columns = position[2] is not None  # Python can be told not to keep them
            place = self._places[key] = id(code), position if has_columns else offset
        return place


def loop_of(stacks: Sequence[CodeStack], next_stack: CodeStack) -> PythonLoop | None:
    """The innermost loop that all equations of a body were traced in.

    None where there is none, and for a loop inside of JAX, which a user could not write otherwise.

    Args:
        stacks: the stacks of the equations of one copy.
        next_stack: the stack of the first equation of the next copy.
    """
    found, is_jaxs = None, True
    for depth, code, offsets in _shared_frames(stacks):
        if line := _line_of_loop(code, offsets) or _line_of_call(code, offsets):
            found = PythonLoop(stacks[0][len(stacks[0]) - 1 - depth :], line)
            is_jaxs = is_of_jax(code)
        elif not is_of_jax(code):
            is_jaxs = False  # a function of the user's that JAX calls in a loop, as `tree_map` does
    return _recursion(stacks[0], next_stack) or (None if is_jaxs else found)


def is_of_jax(code: CodeType) -> bool:
    """Whether code is JAX's, and not a library's or the user's."""
    for directory in JAX_DIRECTORIES:
        if code.co_filename.startswith(directory):
            return not code.co_filename[len(directory) :].startswith(_LIBRARIES_OF_JAX)
    return False


def _shared_frames(stacks: Sequence[CodeStack]) -> Iterator[tuple[int, CodeType, list[int]]]:
    """The frames that all stacks share, the outermost first; offsets may differ in the last."""
    for depth, frames in enumerate(zip(*(reversed(stack) for stack in stacks), strict=False)):
        code = frames[0][0]
        if any(other is not code for other, _ in frames):
            return
        offsets = sorted({offset for _, offset in frames})
        yield depth, code, offsets
        if len(offsets) > 1:
            return


def _line_of_loop(code: CodeType, offsets: list[int]) -> int:
    """The first line of a function's innermost loop around all of these offsets; 0 for none."""
    around = [
        (last - first, line)
        for first, last, line in _loops_of_code(code)
        if first <= offsets[0] and offsets[-1] <= last
    ]
    return min(around, default=(0, 0))[1]


@functools.lru_cache(maxsize=4096)
def _loops_of_code(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    """The first and the last offset of each loop of a function, and the line it begins at."""
    found = []
    for first, last in _jumps_back(code):
        lines = (line for start, end, line in code.co_lines() if start <= last and end > first)
        found.append((first, last, min((line for line in lines if line), default=0)))
    return tuple(found)


def _jumps_back(code: CodeType) -> Iterator[tuple[int, int]]:
    """The offsets between which a function jumps back, except out of an `except` or a `with`."""
    instructions = list(dis.get_instructions(code))
    names = {each.offset: each.opname for each in instructions}
    for at, each in enumerate(instructions):
        if "JUMP" not in each.opname or not isinstance(each.argval, int):
            continue
        handled = any(x.opname == "POP_EXCEPT" for x in instructions[max(at - 4, 0) : at])
        if each.argval < each.offset and (names.get(each.argval) == "FOR_ITER" or not handled):
            yield each.argval, each.offset


def _line_of_call(code: CodeType, offsets: list[int]) -> int:
    """The line of a call in a function that uses `map` or the like; 0 in any other."""
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
    """The function that called itself once more for the next copy, if there is one."""
    if len(stack) == len(next_stack):
        return None
    longer, shorter = sorted((stack, next_stack), key=len, reverse=True)
    more = Counter(longer)
    more.subtract(Counter(shorter))
    for depth, (code, offset) in enumerate(longer):
        if more[code, offset] > 0 and not is_of_jax(code):
            return PythonLoop(longer[depth:], line_at(code, offset))
    return None
