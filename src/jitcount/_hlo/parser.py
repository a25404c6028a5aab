"""Shapes as HLO writes them: ``f32[8,128]{1,0:T(8,128)S(1)}``, and tuples of those."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property

# What an element type is called in StableHLO, and how many bits it has.
ELEMENTS = {
    "pred": ("i1", 8),
    "s2": ("i2", 2),
    "u2": ("ui2", 2),
    "s4": ("i4", 4),
    "u4": ("ui4", 4),
    "s8": ("i8", 8),
    "u8": ("ui8", 8),
    "s16": ("i16", 16),
    "u16": ("ui16", 16),
    "s32": ("i32", 32),
    "u32": ("ui32", 32),
    "s64": ("i64", 64),
    "u64": ("ui64", 64),
    "f8e3m4": ("f8E3M4", 8),
    "f8e4m3": ("f8E4M3", 8),
    "f8e4m3fn": ("f8E4M3FN", 8),
    "f8e4m3b11fnuz": ("f8E4M3B11FNUZ", 8),
    "f8e4m3fnuz": ("f8E4M3FNUZ", 8),
    "f8e5m2": ("f8E5M2", 8),
    "f8e5m2fnuz": ("f8E5M2FNUZ", 8),
    "bf16": ("bf16", 16),
    "f16": ("f16", 16),
    "f32": ("f32", 32),
    "f64": ("f64", 64),
    "c64": ("complex<f32>", 64),
    "c128": ("complex<f64>", 128),
}

FLOATS = frozenset({"f32", "f64", "f16", "bf16"} | {name for name in ELEMENTS if "f8" in name})
NARROW = frozenset({"f16", "bf16"})


@dataclass(frozen=True, slots=True)
class Shape:
    """One array: its elements, its extents, and where each element lies in memory."""

    element: str
    extents: tuple[int, ...]
    minor_to_major: tuple[int, ...] | None = None
    tiles: tuple[tuple[int, ...], ...] = ()

    @property
    def type(self) -> str:
        """As StableHLO writes it."""
        if self.element == "token":
            return "!stablehlo.token"
        inner = "x".join([*map(str, self.extents), ELEMENTS[self.element][0]])
        return f"tensor<{inner}>"

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.extents)

    @property
    def bits(self) -> int:
        """Of one element."""
        return ELEMENTS[self.element][1]

    @property
    def order(self) -> tuple[int, ...]:
        """Its axes, from the one that lies farthest apart to the densest."""
        rank = len(self.extents)
        minor_to_major = self.minor_to_major
        return tuple(range(rank)) if minor_to_major is None else minor_to_major[::-1]

    def of(self, element: str | None = None, extents: tuple[int, ...] | None = None) -> Shape:
        """The same with other elements, or other extents; then it lies as arrays do."""
        return Shape(
            self.element if element is None else element,
            self.extents if extents is None else extents,
        )


Shapes = Shape | tuple["Shapes", ...]
"""What an instruction gives: an array, or a tuple of such."""


def flat(shapes: Shapes) -> list[Shape]:
    """The arrays of a tuple, in order, however deep."""
    if isinstance(shapes, Shape):
        return [shapes]
    return [shape for each in shapes for shape in flat(each)]


_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^{}]*)\})?")
_TILE = re.compile(r"\(([^)]*)\)")


def parse_shapes(text: str, at: int = 0) -> tuple[Shapes, int]:
    """Read a shape that begins there; gives it, and where it ends.

    >>> parse_shapes("(f32[8,128]{1,0:T(8,128)}, /*index=1*/s32[])")[0][1].element
    's32'
    """
    if text[at] == "(":
        return _parse_tuple(text, at + 1)
    found = _ARRAY.match(text, at)
    if found is None:
        raise ValueError(f"no shape at {text[at : at + 40]!r}")
    element, extents, layout = found.groups()
    if element != "token" and element not in ELEMENTS:
        raise ValueError(f"elements of type {element}")
    if "<=" in extents or "?" in extents:
        raise ValueError(f"a dynamic shape {found[0]}")
    sizes = tuple(int(part) for part in extents.split(",") if part)
    return Shape(element, sizes, *_parse_layout(layout, len(sizes))), found.end()


def _parse_tuple(text: str, at: int) -> tuple[Shapes, int]:
    found: list[Shapes] = []
    while text[at] != ")":
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
        elif text[at] in ", ":
            at += 1
        else:
            shapes, at = parse_shapes(text, at)
            found.append(shapes)
    return tuple(found), at + 1


def _parse_layout(
    text: str | None, rank: int
) -> tuple[tuple[int, ...] | None, tuple[tuple[int, ...], ...]]:
    if text is None:
        return None, ()
    axes, _, rest = text.partition(":")
    minor_to_major = tuple(int(axis) for axis in axes.split(",") if axis)
    if len(minor_to_major) != rank:
        return None, ()
    # T(8,128)(2,1) are the tiles; what follows is where it is kept: L(128), S(1), E(4) and so on.
    tiles = re.match(r"T((?:\([^)]*\))+)", rest)
    if tiles is None:
        return minor_to_major, ()
    written = _TILE.findall(tiles[1])
    return minor_to_major, tuple(_parse_tile(tile) for tile in written)


def _parse_tile(text: str) -> tuple[int, ...]:
    """A tile's sides; a star, which joins an axis with the next, is written as -1."""
    return tuple(-1 if side.strip() == "*" else int(side) for side in text.split(","))


# --- Reads the text of an optimised HLO module: computations, and their instructions in order -----


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


# Two facts of a whole module, found in its text without reading the rest of it.

_ROUNDED_CONSTANT = re.compile(r" = bf16\[\d[^ ]* constant\(")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')


def has_bfloat16_arrays_as_constants(text: str) -> bool:
    """Whether a module has constants of bfloat16 that are more than one number."""
    return _ROUNDED_CONSTANT.search(text) is not None


def estimated_cycles(text: str) -> int | None:
    """The compiler's own estimate of a module's cycles; loops count once. Only XLA:TPU writes one.

    (Its `optimal_seconds` is the same for every precision; these cycles are not.)
    """
    return sum(map(int, _CYCLES.findall(text))) or None
