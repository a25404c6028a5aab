"""Reads the text of an optimised HLO module: computations, and their instructions in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from jitcount.emulate.shapes import Shape, Shapes, parse_shapes

_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Instruction:
    """One operation."""

    name: str
    shapes: Shapes
    opcode: str
    operands: tuple[str, ...]
    """Names of instructions."""

    operand_shapes: tuple[Shapes, ...]

    inside: str
    """All that stands between its parentheses: a constant's value, a parameter's number."""

    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        """Of an instruction that gives one array."""
        if not isinstance(self.shapes, Shape):
            raise TypeError(f"{self.opcode} gives a tuple")
        return self.shapes

    def numbers(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of numbers; empty where it is not there."""
        return tuple(int(n) for n in re.findall(r"-?\d+", self.attributes.get(name, "")))

    def called(self, name: str) -> list[str]:
        """The computations that an attribute names."""
        return re.findall(r"%?([\w.\-]+)", self.attributes.get(name, ""))

    @cached_property
    def metadata(self) -> dict[str, str]:
        """Where it comes from."""
        return _attributes(self.attributes.get("metadata", "{}")[1:-1], " ")


@dataclass(frozen=True, slots=True)
class Computation:
    """Instructions in an order in which they can be run; the root gives the result."""

    name: str
    instructions: tuple[Instruction, ...]
    root: Instruction

    @property
    def parameters(self) -> list[Instruction]:
        """In the order of the arguments."""
        found = [each for each in self.instructions if each.opcode == "parameter"]
        return sorted(found, key=lambda each: int(each.inside))


@dataclass(frozen=True)
class Module:
    """A whole program."""

    computations: dict[str, Computation]
    entry: Computation
    tables: dict[str, list[str]]
    """Of files, functions, locations and frames: what ``stack_frame_id`` refers to."""

    @cached_property
    def instructions(self) -> dict[str, Instruction]:
        """All of them by name, which is a name once in a module."""
        every = self.computations.values()
        return {each.name: each for computation in every for each in computation.instructions}


_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ([\w\-]+)\(")
_NAME = re.compile(r"%?([\w.\-]+)")
_TABLE = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)$")


def parse(text: str) -> Module:
    """Read a module.

    Raises:
        ValueError: something in it is not known here.
    """
    computations: dict[str, Computation] = {}
    tables: dict[str, list[str]] = {}
    entry: Computation | None = None
    lines = iter(text.splitlines())
    for line in lines:
        if table := _TABLE.match(line):
            tables[table[1]] = _table(lines)
        elif header := _HEADER.match(line):
            found = _computation(header[2], lines)
            computations[found.name] = found
            entry = found if header[1] else entry
    if entry is None:
        raise ValueError("a module without an entry")
    return Module(computations, entry, tables)


def _table(lines: object) -> list[str]:
    found = []
    for line in lines:  # type: ignore[attr-defined]
        if not line.strip():
            break
        found.append(line.strip().partition(" ")[2])
    return found


def _computation(name: str, lines: object) -> Computation:
    instructions, root = [], None
    shapes: dict[str, Shapes] = {}
    for line in lines:  # type: ignore[attr-defined]
        if line.startswith("}"):
            break
        found = _INSTRUCTION.match(line)
        if found is None:
            raise ValueError(f"a line that is no instruction: {line.strip()[:60]!r}")
        instruction = _instruction(found[2], line, found.end(), shapes)
        shapes[instruction.name] = instruction.shapes
        instructions.append(instruction)
        root = instruction if found[1] else root
    if not instructions:
        raise ValueError(f"an empty computation {name}")
    return Computation(name, tuple(instructions), root or instructions[-1])


def _instruction(name: str, line: str, at: int, known: dict[str, Shapes]) -> Instruction:
    shapes, at = parse_shapes(line, at)
    opcode = _OPCODE.match(line, at)
    if opcode is None:
        raise ValueError(f"no operation in {line.strip()[:60]!r}")
    end = _closing(line, opcode.end() - 1)
    inside = line[opcode.end() : end]
    is_literal = opcode[1] in {"constant", "parameter", "iota"}
    operands = () if is_literal else tuple(_operand(each) for each in split(inside))
    attributes = _attributes(line[end + 1 :].lstrip(", "))
    given = tuple(known[operand] for operand in operands)
    return Instruction(name, shapes, opcode[1], operands, given, inside, attributes)


def _operand(text: str) -> str:
    """The name of an operand; its shape may stand before it."""
    return text.rsplit(" ", maxsplit=1)[-1].lstrip("%")


def split(text: str, by: str = ",") -> list[str]:
    """Split at commas that stand outside of brackets and quotes; comments go."""
    text = re.sub(r"/\*.*?\*/", "", text)
    found, begin, at = [], 0, 0
    while at < len(text):
        if text[at] in _OPEN or text[at] == '"':
            at = _closing(text, at)
        elif text[at] == by:
            found.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    found.append(text[begin:].strip())
    return [each for each in found if each]


def _closing(text: str, at: int) -> int:
    """Where the bracket, or the quote, that opens there is closed."""
    if text[at] == '"':
        return _end_of_quote(text, at)
    depth = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at = _end_of_quote(text, at)
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    raise ValueError("a bracket that is not closed")


def _end_of_quote(text: str, at: int) -> int:
    at += 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at


def _attributes(text: str, by: str = ",") -> dict[str, str]:
    found = {}
    for each in split(text, by):
        name, is_one, value = each.partition("=")
        if is_one:
            found[name.strip()] = value.strip()
    return found
