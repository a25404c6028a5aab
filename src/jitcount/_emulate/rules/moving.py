"""Operations that move elements, make them, or change their shape."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import Value, array, numpy_type
from jitcount._hlo.parser import Shape, split

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Values, Writer
    from jitcount._hlo.parser import Shapes


@rule("constant")
def _constant(context: Context) -> Values:
    return _literal(context.writer, context.instruction.inside, context.instruction.shapes)


def _literal(writer: Writer, text: str, shapes: Shapes) -> Values:
    if isinstance(shapes, tuple):
        inner = split(text.strip()[1:-1])
        return tuple(_literal(writer, each, s) for each, s in zip(inner, shapes, strict=True))
    shape = shapes.replace()
    if "..." in text:
        raise ValueError("a constant that is not written out")
    return writer.constant(_numbers(text, shape), shape)


_COMPLEX = re.compile(r"\(([^,]+),([^)]+)\)")
_NUMBER = re.compile(r"[^\s{},]+")


def _numbers(text: str, shape: Shape) -> np.ndarray:
    """The values of a literal; comments that count its rows, and payloads of NaNs, are left out."""
    dtype = numpy_type(shape.element)
    text = re.sub(r"/\*.*?\*/", "", text)
    if shape.element.startswith("c"):
        found = [complex(float(re), float(im)) for re, im in _COMPLEX.findall(text)]
        return np.array(found, dtype).reshape(shape.extents)
    words = _NUMBER.findall(re.sub(r"nan\(\w+\)", "nan", text))
    if shape.element == "pred":
        return np.array([word in {"true", "1"} for word in words], dtype).reshape(shape.extents)
    if shape.element[0] in "su":
        return np.array([int(word) for word in words]).astype(dtype).reshape(shape.extents)
    return np.array([float(word) for word in words]).astype(dtype).reshape(shape.extents)


@rule("iota")
def _iota(context: Context) -> Value:
    (axis,) = context.numbers("iota_dimension")
    return context.writer.iota(context.result, axis)


@rule("copy")
def _copy(context: Context) -> Value:
    return context.as_declared(context.arrays[0])


@rule("domain", "add-dependency")
def _same(context: Context) -> Values:
    return context.operands[0]


@rule("opt-barrier")
def _barrier(context: Context) -> Values:
    return context.operands[0] if len(context.operands) == 1 else tuple(context.operands)


@rule("tuple")
def _tuple(context: Context) -> Values:
    return tuple(context.operands)


@rule("get-tuple-element")
def _get_tuple_element(context: Context) -> Values:
    (index,) = context.numbers("index")
    (whole,) = context.operands
    assert not isinstance(whole, Value)  # noqa: S101
    return whole[index]


@rule("after-all")
def _after_all(_: Context) -> Values:
    """What orders effects; there are none here."""
    return ()


@rule("bitcast")
def _bitcast(context: Context) -> Value:
    (source,) = context.instruction.operand_shapes
    assert isinstance(source, Shape)  # noqa: S101
    return bitcast(context.writer, context.arrays[0], source, context.instruction.shape)


@rule("bitcast-convert")
def _bitcast_convert(context: Context) -> Value:
    return context.same()


@rule("reshape")
def _reshape(context: Context) -> Value:
    value = context.as_declared(context.arrays[0])
    return context.writer.reshape(value, context.result.extents)


@rule("transpose")
def _transpose(context: Context) -> Value:
    value = context.as_declared(context.arrays[0])
    return context.writer.transpose(value, context.numbers("dimensions"))


@rule("reverse")
def _reverse(context: Context) -> Value:
    return _moved(context, "reverse", f"dimensions = {array(context.numbers('dimensions'))}")


@rule("broadcast")
def _broadcast(context: Context) -> Value:
    how = f"broadcast_dimensions = {array(context.numbers('dimensions'))}"
    return _moved(context, "broadcast_in_dim", how)


@rule("slice")
def _slice(context: Context) -> Value:
    written = re.findall(r"\[([^\]]*)\]", context.attributes["slice"])
    parts = [[int(n) for n in part.split(":")] for part in written]
    how = (
        f"limit_indices = {array(part[1] for part in parts)}, "
        f"start_indices = {array(part[0] for part in parts)}, "
        f"strides = {array(part[2] if len(part) > 2 else 1 for part in parts)}"
    )
    return _moved(context, "slice", how)


@rule("concatenate")
def _concatenate(context: Context) -> Value:
    (axis,) = context.numbers("dimensions")
    return _joined(context, "concatenate", f"dimension = {axis} : i64")


@rule("pad")
def _pad(context: Context) -> Value:
    written = context.attributes.get("padding", "")
    parts = [[int(n) for n in part.split("_")] for part in written.split("x") if part]
    how = (
        f"edge_padding_high = {array(part[1] for part in parts)}, "
        f"edge_padding_low = {array(part[0] for part in parts)}, "
        f"interior_padding = {array(part[2] if len(part) > 2 else 0 for part in parts)}"
    )
    return _joined(context, "pad", how)


def _moved(context: Context, name: str, how: str) -> Value:
    """An operation on one array, which may have been left wider than the instruction says."""
    value = context.as_declared(context.arrays[0])
    return context.writer.op(name, [value], context.result.replace(value.shape.element), how)


def _joined(context: Context, name: str, how: str) -> Value:
    """An operation on several arrays; all are as wide as the widest, where one was left wide."""
    given = [context.as_declared(each) for each in context.arrays]
    widest = max((each.shape for each in given), key=lambda shape: shape.bits).element
    given = [context.writer.convert(each, widest) for each in given]
    return context.writer.op(name, given, context.result.replace(widest), how)


# --- How an array lies in memory, and what a bitcast makes of it ----------------------------------
#
# A bitcast reads memory as another shape. Layouts say in which order the axes lie, tiles in which
# blocks: an axis that does not fill its tiles is padded, and the padding lies in memory too. So
# ``f32[1000]`` in tiles of 1,024 is bitcast to ``f32[8,128]`` in one tile of that size.


def bitcast(writer: Writer, value: Value, source: Shape, target: Shape) -> Value:
    """The same memory as another shape; what lies beyond the source is zero.

    A value that was left wider than its shape says lies as that shape does. Booleans lie there as
    bytes that are 0 or 1.
    """
    if source.element != target.element and "pred" in {source.element, target.element}:
        if target.element == "pred":
            made = bitcast(writer, value, source, replace(target, element="u8"))
            return writer.convert(made, "pred")
        given = writer.convert(value, "u8")
        return bitcast(writer, given, replace(source, element="u8"), target)
    if value.shape.element != source.element:
        source, target = (replace(each, element=value.shape.element) for each in (source, target))
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
    return writer.op("bitcast_convert", [value], value.shape.replace(target.element))


def _with_bits(writer: Writer, memory: Value, source: Shape, target: Shape) -> Value:
    """Wider elements of several narrow ones, or the other way round."""
    if source.bits == target.bits:
        return memory
    (size,) = memory.shape.extents
    if source.bits < target.bits:
        ratio = target.bits // source.bits
        memory = writer.pad(memory, (math.ceil(size / ratio) * ratio,))
        memory = writer.reshape(memory, (memory.shape.extents[0] // ratio, ratio))
        shape = memory.shape.replace(target.element, memory.shape.extents[:1])
        return writer.op("bitcast_convert", [memory], shape)
    ratio = source.bits // target.bits
    shape = memory.shape.replace(target.element, (size, ratio))
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
        extents = _tiled(padded, tile)
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
    tiled = [_tiled(step, tile) for step, tile in zip(steps, shape.tiles, strict=False)]
    for padded, tile, before in reversed(
        list(zip(steps, shape.tiles, [ordered, *tiled], strict=False))
    ):
        cut, axes = _cut(padded, tile)
        back = tuple(axes.index(axis) for axis in range(len(axes)))
        value = writer.reshape(value, tuple(cut[axis] for axis in axes))
        value = writer.reshape(writer.transpose(value, back), padded)
        value = writer.slice(value, (1,) * (len(padded) - len(before)) + before)
    value = writer.reshape(value, ordered)
    return writer.transpose(value, tuple(shape.order.index(axis) for axis in range(len(ordered))))


def _tiled(padded: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of an array that is cut into tiles: of the blocks, then inside a block."""
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
