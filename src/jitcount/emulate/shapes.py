"""Shapes as HLO writes them: ``f32[8,128]{1,0:T(8,128)S(1)}``, and tuples of those."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

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
