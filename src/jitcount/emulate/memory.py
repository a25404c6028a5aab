"""How an array lies in memory, and what a bitcast makes of it.

A bitcast gives memory another shape. Layouts say in which order the axes lie, tiles in which
blocks: an axis that does not fill its tiles is padded, and the padding lies in memory too. So
``f32[1000]`` in tiles of 1,024 is bitcast to ``f32[8,128]`` in one tile of that size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount.emulate.shapes import Shape

if TYPE_CHECKING:
    from jitcount.emulate.writing import Value, Writer


def bitcast(writer: Writer, value: Value, source: Shape, target: Shape) -> Value:
    """The same memory as another shape; what lies beyond the source is zero.

    A value that was left wider than its shape says lies as that shape does.
    """
    if value.shape.element != source.element:
        target = Shape(value.shape.element, target.extents, target.minor_to_major, target.tiles)
        source = Shape(value.shape.element, source.extents, source.minor_to_major, source.tiles)
    if source.bits == target.bits and _lies_alike(source, target):
        return _with_element(writer, writer.reshape(value, target.extents), target)
    memory = _laid_out(writer, value, source)
    memory = _with_bits(writer, memory, source, target)
    size = math.prod(_steps(target)[-1])
    have = memory.shape.extents[0]
    memory = writer.slice(memory, (size,)) if have > size else writer.pad(memory, (size,))
    return _with_element(writer, _taken_up(writer, memory, target), target)


def _lies_alike(one: Shape, other: Shape) -> bool:
    """Whether both keep the same elements in the same order, as nearly all do."""
    if one.size != other.size:
        return False
    if one.extents == other.extents and one.order == other.order and one.tiles == other.tiles:
        return True
    return all(
        not shape.tiles and shape.order == tuple(range(len(shape.extents)))
        for shape in (one, other)
    )


def _with_element(writer: Writer, value: Value, target: Shape) -> Value:
    if value.shape.element == target.element:
        return value
    return writer.op("bitcast_convert", [value], value.shape.of(target.element))


def _with_bits(writer: Writer, memory: Value, source: Shape, target: Shape) -> Value:
    """Wider elements of several narrow ones, or the other way round."""
    if source.bits == target.bits:
        return memory
    if "pred" in {source.element, target.element}:
        raise ValueError(f"a bitcast of {source.element} to {target.element}")
    (size,) = memory.shape.extents
    if source.bits < target.bits:
        ratio = target.bits // source.bits
        memory = writer.pad(memory, (math.ceil(size / ratio) * ratio,))
        memory = writer.reshape(memory, (memory.shape.extents[0] // ratio, ratio))
        shape = memory.shape.of(target.element, memory.shape.extents[:1])
        return writer.op("bitcast_convert", [memory], shape)
    ratio = source.bits // target.bits
    shape = memory.shape.of(target.element, (size, ratio))
    return writer.reshape(writer.op("bitcast_convert", [memory], shape), (size * ratio,))


def _steps(shape: Shape) -> list[tuple[int, ...]]:
    """The extents, padded and cut into tiles, from the outermost tiling to the innermost.

    Each step is the padded extents before the cut, and the last the extents as they lie.
    """
    extents = tuple(shape.extents[axis] for axis in shape.order)
    found = []
    for tile in shape.tiles:
        if -1 in tile:
            raise ValueError("tiles that join axes")
        if len(tile) > len(extents):  # a scalar in a tile
            extents = (1,) * (len(tile) - len(extents)) + extents
        rest = len(extents) - len(tile)
        padded = extents[:rest] + tuple(
            math.ceil(extent / side) * side
            for extent, side in zip(extents[rest:], tile, strict=True)
        )
        found.append(padded)
        blocks = tuple(e // side for e, side in zip(padded[rest:], tile, strict=True))
        extents = padded[:rest] + blocks + tile
    return [*found, extents]


def _laid_out(writer: Writer, value: Value, shape: Shape) -> Value:
    """All of an array's memory, in one axis."""
    value = writer.transpose(writer.reshape(value, shape.extents), shape.order)
    for tile, padded in zip(shape.tiles, _steps(shape), strict=False):
        value = writer.reshape(
            value, (1,) * (len(padded) - len(value.shape.extents)) + value.shape.extents
        )
        value = writer.pad(value, padded)
        cut, axes = _cut(padded, tile)
        value = writer.transpose(writer.reshape(value, cut), axes)
    return writer.reshape(value, (math.prod(value.shape.extents),))


def _taken_up(writer: Writer, memory: Value, shape: Shape) -> Value:
    """An array out of its memory: each step of `_laid_out`, backwards."""
    steps = _steps(shape)
    value = writer.reshape(memory, steps[-1])
    ordered = tuple(shape.extents[axis] for axis in shape.order)
    befores = [
        ordered,
        *(_tiled(step, tile) for step, tile in zip(steps, shape.tiles, strict=False)),
    ]
    for at in reversed(range(len(shape.tiles))):
        padded, tile, before = steps[at], shape.tiles[at], befores[at]
        cut, axes = _cut(padded, tile)
        back = tuple(axes.index(axis) for axis in range(len(axes)))
        value = writer.reshape(value, tuple(cut[axis] for axis in axes))
        value = writer.reshape(writer.transpose(value, back), padded)
        before = (1,) * (len(padded) - len(before)) + before
        value = writer.slice(value, before)
    value = writer.reshape(value, ordered)
    return writer.transpose(value, tuple(shape.order.index(axis) for axis in range(len(ordered))))


def _tiled(padded: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
    rest = len(padded) - len(tile)
    blocks = tuple(e // side for e, side in zip(padded[rest:], tile, strict=True))
    return padded[:rest] + blocks + tile


def _cut(padded: tuple[int, ...], tile: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Each axis as blocks and what is in a block, and the order that puts all blocks first."""
    rest = len(padded) - len(tile)
    cut = list(padded[:rest])
    for extent, side in zip(padded[rest:], tile, strict=True):
        cut += [extent // side, side]
    blocks = tuple(range(rest, len(cut), 2))
    inside = tuple(range(rest + 1, len(cut), 2))
    return tuple(cut), tuple(range(rest)) + blocks + inside
