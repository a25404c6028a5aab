"""Operations that move elements, make them, or give them another shape."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from jitcount.emulate.hlo import split
from jitcount.emulate.memory import bitcast
from jitcount.emulate.shapes import Shape
from jitcount.emulate.translating import rule
from jitcount.emulate.writing import Value, array, numpy_type

if TYPE_CHECKING:
    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Values, Writer


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
