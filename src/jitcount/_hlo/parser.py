"""Reads all of an optimised HLO module: its computations, their instructions, and their shapes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

from jitcount._hlo import scanner
from jitcount._hlo.scanner import read_fields, split

__all__ = [
    "ELEMENTS", "FLOATS", "NARROW", "Computation", "Instruction", "Module", "Shape", "Shapes",
    "flat", "parse", "parse_shapes", "split",
]  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    """One operation of a computation."""

    name: str
    shapes: Shapes
    opcode: str
    operands: tuple[str, ...]
    """The names of the instructions that it takes."""

    operand_shapes: tuple[Shapes, ...]

    inside: str
    """All that stands between its parentheses: a constant's value, a parameter's number."""

    attributes: dict[str, str]

    @property
    def shape(self) -> Shape:
        """The shape of an instruction that results in one array."""
        if not isinstance(self.shapes, Shape):
            raise TypeError(f"{self.opcode} gives a tuple")
        return self.shapes

    def numbers(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of numbers; empty where the instruction does not have it."""
        return tuple(int(n) for n in re.findall(r"-?\d+", self.attributes.get(name, "")))

    def called(self, name: str) -> list[str]:
        """The names of the computations that an attribute refers to."""
        return re.findall(r"%?([\w.\-]+)", self.attributes.get(name, ""))

    @cached_property
    def metadata(self) -> dict[str, str]:
        """Its name stack and where it comes from, as written: texts have quotes around them."""
        return read_fields(self.attributes.get("metadata", ""))


@dataclass(frozen=True, slots=True)
class Computation:
    """Instructions in an order in which they can be run; the root is the result."""

    name: str
    instructions: tuple[Instruction, ...]
    root: Instruction

    @property
    def parameters(self) -> list[Instruction]:
        """Its parameters, in the order of the arguments."""
        found = [each for each in self.instructions if each.opcode == "parameter"]
        return sorted(found, key=lambda each: int(each.inside))


@dataclass(frozen=True)
class Module:
    """A whole program."""

    computations: dict[str, Computation]
    entry: Computation
    tables: dict[str, list[str]]
    """The rows of files, functions, locations and frames, which ``stack_frame_id`` refers to."""

    @cached_property
    def instructions(self) -> dict[str, Instruction]:
        """The instructions of all computations by name, which is unique in a module."""
        every = self.computations.values()
        return {each.name: each for computation in every for each in computation.instructions}


def parse(text: str) -> Module:
    """Read a module.

    Raises:
        ValueError: something in it is not known here.
    """
    scanned = scanner.scan(text)
    if scanned.unknown:
        raise ValueError(f"a line that is no instruction: {scanned.unknown[0].strip()[:60]!r}")
    computations = {name: _computation(name, each) for name, each in scanned.computations.items()}
    if not scanned.entry:
        raise ValueError("a module without an entry")
    return Module(computations, computations[scanned.entry], scanned.tables)


def _computation(name: str, scanned: list[scanner.Instruction]) -> Computation:
    found: dict[str, Instruction] = {}
    for each in scanned:
        found[each.name] = _instruction(each, found)
    if not found:
        raise ValueError(f"an empty computation {name}")
    root = next((found[each.name] for each in scanned if each.is_root), found[scanned[-1].name])
    return Computation(name, tuple(found.values()), root)


def _instruction(scanned: scanner.Instruction, before: dict[str, Instruction]) -> Instruction:
    shapes, _ = parse_shapes(scanned.line, scanned.shape_at)
    if not scanned.opcode:
        raise ValueError(f"no operation in {scanned.line.strip()[:60]!r}")
    operands = scanned.operands
    return Instruction(
        scanned.name,
        shapes,
        scanned.opcode,
        operands,
        tuple(before[operand].shapes for operand in operands),
        scanned.inside,
        _attributes(scanned.line[scanned.inside_end + 1 :]),
    )


def _attributes(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in split(text))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


# --- Shapes: ``f32[8,128]{1,0:T(8,128)S(1)}``, and tuples of those --------------------------------

# What an element type is called in StableHLO, and how many bits it has.
ELEMENTS = {
    "pred": ("i1", 8),
    **{f"s{bits}": (f"i{bits}", bits) for bits in (2, 4, 8, 16, 32, 64)},
    **{f"u{bits}": (f"ui{bits}", bits) for bits in (2, 4, 8, 16, 32, 64)},
    **{
        f"f8{kind}": (f"f8{kind.upper()}", 8)
        for kind in ("e3m4", "e4m3", "e4m3fn", "e4m3b11fnuz", "e4m3fnuz", "e5m2", "e5m2fnuz")
    },
    "bf16": ("bf16", 16),
    **{f"f{bits}": (f"f{bits}", bits) for bits in (16, 32, 64)},
    "c64": ("complex<f32>", 64),
    "c128": ("complex<f64>", 128),
}

FLOATS = frozenset({"f32", "f64", "f16", "bf16"} | {name for name in ELEMENTS if "f8" in name})
NARROW = frozenset({"f16", "bf16"})


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of one array: its elements, its extents, and where each element lies in memory."""

    element: str
    extents: tuple[int, ...]
    minor_to_major: tuple[int, ...] | None = None
    tiles: tuple[tuple[int, ...], ...] = ()

    @property
    def type(self) -> str:
        """Its type as StableHLO writes it: ``"tensor<8x128xf32>"``."""
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
        """How many bits one element has."""
        return ELEMENTS[self.element][1]

    @property
    def order(self) -> tuple[int, ...]:
        """Its axes, from the one that lies farthest apart to the densest."""
        rank = len(self.extents)
        minor_to_major = self.minor_to_major
        return tuple(range(rank)) if minor_to_major is None else minor_to_major[::-1]

    def replace(self, element: str | None = None, extents: tuple[int, ...] | None = None) -> Shape:
        """The same shape with other elements or other extents, and without a layout."""
        return Shape(
            self.element if element is None else element,
            self.extents if extents is None else extents,
        )


Shapes = Shape | tuple["Shapes", ...]
"""What an instruction results in: an array, or a tuple of such."""


def flat(shapes: Shapes) -> list[Shape]:
    """The arrays of a tuple, in order, however deep."""
    if isinstance(shapes, Shape):
        return [shapes]
    return [shape for each in shapes for shape in flat(each)]


_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^{}]*)\})?")
_TILE = re.compile(r"\(([^)]*)\)")


def parse_shapes(text: str, at: int = 0) -> tuple[Shapes, int]:
    """Read a shape that begins at a position; returns it, and where it ends.

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


# --- Two facts about a whole module, found in its text without parsing it -------------------------

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
