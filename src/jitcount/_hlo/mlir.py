"""Reads the text of a lowered program: which stack each operation comes from.

The text is StableHLO in MLIR's generic form, with locations. An operation in a function has its own
stack, inside of that of the function's first call. A number that was written into an equation is an
operation too, without a line: it has that of the operation that takes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount._hlo.locations import Stack

# Operations that only hold others, and compute nothing; as in `_jax/lowering.py`.
_NO_WORK = frozenset({"builtin.module", "func.func", "func.return", "stablehlo.return"})

_OPERATION = re.compile(r'\s*(?:%[\w:, %#]+ = )?"([\w.]+)"\(')
_FUNCTION = re.compile(r'sym_name = "([^"]+)"')
_CALLED = re.compile(r"callee = @([\w.\-]+)")
_ELIDED = "<__elided__>"
_CONSTANT = re.compile(r"\s*(%[\w]+) = ")
_VALUES = re.compile(r"%\w+")
_ENDS = re.compile(r"loc\((.*)\)$")
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\((.*)\))?$')
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):')
_CALLSITE = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)$")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a lowered program, and where it was traced."""

    stack: Stack
    name_stack: str


@dataclass(slots=True)
class _Function:
    operations: list[str] = field(default_factory=list)
    """The location of each operation; of a constant, that of the first one that takes it."""

    caller: str = ""
    """The function that calls it first; empty for the program itself."""

    called_at: str = ""
    """The location of that call."""

    constants: dict[str, int] = field(default_factory=dict)
    """The constants that nothing has taken yet, by name: the number of each among `operations`."""

    large: dict[int, str] = field(default_factory=dict)
    """The types of constants that are too large to be written out, by the same number."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """What was read of a lowered program."""

    operations: list[Operation]
    constants: list[tuple[str, Stack]]
    """The types of large constants, ``"tensor<300x1000xf32>"``, and the stack of each first use."""


def read_lowered(text: str) -> Lowered:
    """Read the text of a lowered program."""
    lines = text.splitlines()
    locations = _Locations({m[1]: m[2] for line in lines if (m := _ALIAS.match(line))})
    functions = _functions(lines)
    found, constants = [], []
    for name, function in functions.items():
        outside, names = _outside(name, functions, locations)
        for number, form in function.large.items():
            constants.append((form, locations.stacks_of(function.operations[number])[0] + outside))
        for location in function.operations:
            stack, name_stack = locations.stacks_of(location)
            found.append(Operation(stack + outside, _joined(names, name_stack)))
    return Lowered(found, constants)


def _functions(lines: list[str]) -> dict[str, _Function]:
    """A program's functions; an operation that holds others ends where its last region does."""
    found: dict[str, _Function] = {}
    called: list[tuple[str, str, str]] = []
    above: list[tuple[str, str]] = []
    inside = ""
    for line in lines:
        is_end = line.lstrip().startswith("}) ")
        match = None if is_end else _OPERATION.match(line)
        if match is None and not is_end:
            continue
        if is_end:
            operation, what = above.pop() if above else ("", "")
        else:
            operation, what = match[1], line  # type: ignore[index]
            if operation == "func.func" and (name := _FUNCTION.search(line)):
                inside = name[1]
                found[inside] = _Function()
            if line.endswith("({"):
                above.append((operation, line))
                continue
        ends = _ENDS.search(line)
        location = ends[1] if ends else "unknown"
        if operation not in _NO_WORK and inside:
            found[inside].operations.append(location)
            _look_for_constants(found[inside], what, operation, location)
        if callee := _CALLED.search(what):
            called.append((callee[1], inside, location))
    for callee_name, caller, location in called:
        function = found.get(callee_name)
        if function is not None and not function.caller:
            function.caller, function.called_at = caller, location
    return found


def _look_for_constants(inside: _Function, line: str, operation: str, location: str) -> None:
    """Note an operation that is a constant; one that takes constants passes them its location."""
    if operation == "stablehlo.constant":
        if made := _CONSTANT.match(line):
            number = inside.constants[made[1]] = len(inside.operations) - 1
            if _ELIDED in line:
                inside.large[number] = line.rpartition("-> ")[2].partition(" loc")[0]
    elif inside.constants:
        for value in _VALUES.findall(line.partition(")")[0]):
            if value in inside.constants:
                inside.operations[inside.constants.pop(value)] = location


def _outside(
    name: str, functions: dict[str, _Function], locations: _Locations
) -> tuple[Stack, str]:
    """The stack and name stack of a function's first call; empty for the program itself."""
    stack: Stack = ()
    names = ""
    for _ in range(len(functions)):  # an end even if functions called each other in a circle
        function = functions.get(name)
        if function is None or not function.caller:
            break
        call, name_stack = locations.stacks_of(function.called_at)
        stack, names = (*stack, *call), _joined(name_stack, names)
        name = function.caller
    return stack, names


def _joined(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer and inner else outer or inner


class _Locations:
    """The locations of a program, looked up by their aliases in its text."""

    def __init__(self, aliases: dict[str, str]) -> None:
        self._aliases = aliases
        self._stacks: dict[str, Stack] = {}
        self._known: dict[str, tuple[Stack, str]] = {}

    def stacks_of(self, location: str) -> tuple[Stack, str]:
        """The stack and the name stack of an operation with that location."""
        if location not in self._known:
            text, name_stack = self._aliases.get(location, location), ""
            # Around the stack, names: the outermost is the longest, and says all.
            while (match := _NAMED.match(text)) and not _FILE.match(text):
                inner = self._aliases.get(match[2] or "", match[2] or "")
                if name_stack and _FILE.match(inner):
                    break  # this name is a function's
                name_stack = name_stack or match[1]
                text = inner
            self._known[location] = self._stack(text), name_stack
        return self._known[location]

    def _stack(self, text: str) -> Stack:
        if text not in self._stacks:
            self._stacks[text] = self._read(text)
        return self._stacks[text]

    def _read(self, text: str) -> Stack:
        text = self._aliases.get(text, text)
        if match := _CALLSITE.match(text):
            return self._stack(match[1]) + self._stack(match[2])
        if match := _FILE.match(text):
            return ((match[1], int(match[2]), ""),)
        if (match := _NAMED.match(text)) and match[2]:
            inner = self._stack(match[2])
            if len(inner) == 1 and not inner[0][2]:  # a function's name, and where it is
                return ((inner[0][0], inner[0][1], match[1]),)
            return inner
        return ()
