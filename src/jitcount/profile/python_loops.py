"""Which loop of Python made copies of an equation: found in the code of the frames of its stack.

Copies were traced under the same stack: the same instruction of the same code, in every frame. So
one of these instructions stands in a loop, or calls what loops, or calls itself. Copies that have
no such frame were made by JAX, as those that a transformation makes of one equation.
"""

from __future__ import annotations

import dis
import functools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._jax.origin import JAX_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType

    from jitcount._jax.levels import Stack

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

    stack: Stack
    """From the frame that has the loop outward."""

    line: int
    """Where the loop begins: of a `for`, its own line."""


class Keys:
    """Stacks, for comparison; they must be kept alive for as long as this is."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], object] = {}
        self._positions: dict[int, list[tuple[int | None, ...]]] = {}

    def of(self, stack: Stack) -> tuple[object, ...]:
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


def loop_of(stacks: Sequence[Stack], next_stack: Stack) -> PythonLoop | None:
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


def _shared(stacks: Sequence[Stack]) -> Iterator[tuple[int, CodeType, list[int]]]:
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
        for first, last, line in _loops_in(code)
        if first <= offsets[0] and offsets[-1] <= last
    ]
    return min(around, default=(0, 0))[1]


@functools.lru_cache(maxsize=4096)
def _loops_in(code: CodeType) -> tuple[tuple[int, int, int], ...]:
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


def _recursion(stack: Stack, next_stack: Stack) -> PythonLoop | None:
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
