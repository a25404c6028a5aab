"""Operations that move elements, make them, or give them another shape."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import Value, array, numpy_type
from jitcount._hlo.parser import Shape, split

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Values, Writer
    from jitcount._hlo.parser import Instruction


@rule("constant")
def _constant(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """A value; of bfloat16 in a program that has none it was rounded when it was compiled."""
    shape = instruction.shapes
    if translation.is_float32 and isinstance(shape, Shape) and shape.element == "bf16":
        translation.folded(instruction, shape)
    return _literal(writer, instruction.inside, instruction.shapes)


def _literal(writer: Writer, text: str, shapes: object) -> Values:
    if isinstance(shapes, tuple):
        inner = split(text.strip()[1:-1])
        return tuple(_literal(writer, each, s) for each, s in zip(inner, shapes, strict=True))
    assert isinstance(shapes, Shape)  # noqa: S101
    shape = shapes.of()
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
def _iota(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    (axis,) = instruction.numbers("iota_dimension")
    return writer.op("iota", [], instruction.shape.of(), f"iota_dimension = {axis} : i64")


@rule("copy")
def _copy(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    return translation.declared(writer, instruction, operands[0])


@rule("domain", "add-dependency")
def _same(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    return operands[0]


@rule("opt-barrier")
def _barrier(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    return operands[0] if len(operands) == 1 else tuple(operands)


def _moved(
    translation: Translation,
    writer: Writer,
    instruction: Instruction,
    value: Value,
    how: str,
) -> Value:
    value = translation.declared(writer, instruction, value)
    name = {"broadcast": "broadcast_in_dim"}.get(instruction.opcode, instruction.opcode)
    return writer.op(name, [value], instruction.shape.of(value.shape.element), how)


def _alike(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> tuple[list[Value], Shape]:
    """Operands of one type, and the result's: the widest, where one was left wide."""
    given = [translation.declared(writer, instruction, each) for each in operands]
    widest = max((each.shape for each in given), key=lambda shape: shape.bits).element
    return [writer.convert(each, widest) for each in given], instruction.shape.of(widest)


@rule("bitcast")
def _bitcast(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    (source,) = instruction.operand_shapes
    assert isinstance(source, Shape)  # noqa: S101
    return bitcast(writer, operands[0], source, instruction.shape)


@rule("bitcast-convert")
def _bitcast_convert(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    return writer.op("bitcast_convert", operands, instruction.shape.of())


@rule("reshape")
def _reshape(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    value = translation.declared(writer, instruction, operands[0])
    return writer.reshape(value, instruction.shape.extents)


@rule("transpose")
def _transpose(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    value = translation.declared(writer, instruction, operands[0])
    return writer.transpose(value, instruction.numbers("dimensions"))


@rule("reverse")
def _reverse(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    how = f"dimensions = {array(instruction.numbers('dimensions'))}"
    return _moved(translation, writer, instruction, operands[0], how)


@rule("broadcast")
def _broadcast(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    how = f"broadcast_dimensions = {array(instruction.numbers('dimensions'))}"
    return _moved(translation, writer, instruction, operands[0], how)


@rule("concatenate")
def _concatenate(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    (axis,) = instruction.numbers("dimensions")
    given, shape = _alike(translation, writer, instruction, operands)
    return writer.op("concatenate", given, shape, f"dimension = {axis} : i64")


@rule("slice")
def _slice(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    written = re.findall(r"\[([^\]]*)\]", instruction.attributes["slice"])
    parts = [[int(n) for n in part.split(":")] for part in written]
    how = (
        f"limit_indices = {array(part[1] for part in parts)}, "
        f"start_indices = {array(part[0] for part in parts)}, "
        f"strides = {array(part[2] if len(part) > 2 else 1 for part in parts)}"
    )
    return _moved(translation, writer, instruction, operands[0], how)


@rule("pad")
def _pad(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    written = instruction.attributes.get("padding", "")
    parts = [[int(n) for n in part.split("_")] for part in written.split("x") if part]
    how = (
        f"edge_padding_high = {array(part[1] for part in parts)}, "
        f"edge_padding_low = {array(part[0] for part in parts)}, "
        f"interior_padding = {array(part[2] if len(part) > 2 else 0 for part in parts)}"
    )
    given, shape = _alike(translation, writer, instruction, operands)
    return writer.op("pad", given, shape, how)


@rule("tuple")
def _tuple(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    return tuple(operands)


@rule("get-tuple-element")
def _get_tuple_element(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    (index,) = instruction.numbers("index")
    (whole,) = operands
    assert not isinstance(whole, Value)  # noqa: S101
    return whole[index]


@rule("after-all")
def _after_all(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    """What orders effects; there are none here."""
    return ()


# --- How an array lies in memory, and what a bitcast makes of it ----------------------------------
#
# A bitcast gives memory another shape. Layouts say in which order the axes lie, tiles in which
# blocks: an axis that does not fill its tiles is padded, and the padding lies in memory too. So
# ``f32[1000]`` in tiles of 1,024 is bitcast to ``f32[8,128]`` in one tile of that size.


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
