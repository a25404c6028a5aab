"""Operations that make one element of many: reductions and windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.rules.perturb import loosened_sum
from jitcount._emulate.translate import rule
from jitcount._emulate.writer import Value, array, table
from jitcount._hlo.parser import NARROW, Shape, flat

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Values, Writer
    from jitcount._hlo.parser import Instruction


def reduced(
    translation: Translation,
    writer: Writer,
    instruction: Instruction,
    operands: list[Value],
    how: str,
) -> Values:
    """A reduction of any number of arrays, each with its first value.

    Sums of 16 bits are of float32, and rounded once: XLA:TPU leaves out the conversions around such
    a reduction because its hardware adds so.
    """
    (applied,) = instruction.called("to_apply")
    parameters = translation.module.computations[applied].parameters
    half = len(operands) // 2
    elements = [widened(parameter.shape.element) for parameter in parameters[:half]]
    given = [writer.convert(each, elements[i % half]) for i, each in enumerate(operands)]
    results = flat(instruction.shapes)
    shapes = [shape.of(element) for shape, element in zip(results, elements, strict=True)]
    scalars = [Shape(element, ()) for element in elements * 2]
    with translation.wide():
        region = writer.region(scalars, translation.apply(applied))
    name = instruction.opcode.replace("-", "_")
    made = writer.ops(name, given, shapes, how, [region])
    if translation.draw and half == 1 and _adds(translation, applied):
        sizes = [writer.op("abs", [each], each.shape.of()) for each in given]
        (magnitudes,) = writer.ops(name, sizes, shapes, how, [region])
        terms = max(given[0].shape.size // max(shapes[0].size, 1), _largest(given[0].shape))
        made = [loosened_sum(translation, writer, made[0], magnitudes, terms)]
    made = [writer.convert(each, shape.element) for each, shape in zip(made, results, strict=True)]
    return made[0] if isinstance(instruction.shapes, Shape) else tuple(made)


def _adds(translation: Translation, name: str) -> bool:
    root = translation.module.computations[name].root
    return root.opcode == "add" and root.shape.element not in _COMPLEX


_COMPLEX = frozenset({"c64", "c128"})


def _largest(shape: Shape) -> int:
    """For a window, which may cover a whole axis: as many terms as that has."""
    return max(shape.extents, default=1)


def widened(element: str) -> str:
    """In which type elements are added up."""
    return "f32" if element in NARROW else element


@rule("reduce")
def _reduce(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    how = f"dimensions = {array(instruction.numbers('dimensions'))}"
    return reduced(translation, writer, instruction, operands, how)


class Window:
    """How a window moves, an axis at a time."""

    def __init__(self, text: str, rank: int) -> None:
        inner = text.strip()[1:-1]
        parts = dict(part.split("=", 1) for part in inner.split()) if inner else {}
        self.sizes = _each(parts.get("size"), rank, 1)
        self.strides = _each(parts.get("stride"), rank, 1)
        self.lhs_dilations = _each(parts.get("lhs_dilate"), rank, 1)
        self.rhs_dilations = _each(parts.get("rhs_dilate"), rank, 1)
        self.reversals = _each(parts.get("rhs_reversal"), rank, 0)
        written = parts.get("pad", "")
        self.padding = [
            tuple(int(n) for n in part.split("_")) for part in written.split("x") if part
        ] or [(0, 0)] * rank


def _each(text: str | None, rank: int, default: int) -> list[int]:
    return [default] * rank if text is None else [int(n) for n in text.split("x")]


@rule("reduce-window")
def _reduce_window(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    rank = len(operands[0].shape.extents)
    window = Window(instruction.attributes["window"], rank)
    how = (
        f"base_dilations = {array(window.lhs_dilations)}, "
        f"padding = {table(window.padding, 2)}, "
        f"window_dilations = {array(window.rhs_dilations)}, "
        f"window_dimensions = {array(window.sizes)}, "
        f"window_strides = {array(window.strides)}"
    )
    return reduced(translation, writer, instruction, operands, how)


@rule("select-and-scatter")
def _select_and_scatter(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    rank = len(operands[0].shape.extents)
    window = Window(instruction.attributes["window"], rank)
    how = (
        f"padding = {table(window.padding, 2)}, "
        f"window_dimensions = {array(window.sizes)}, "
        f"window_strides = {array(window.strides)}"
    )
    (select,), (scatter,) = instruction.called("select"), instruction.called("scatter")
    scalar = operands[0].shape.of(extents=())
    regions = [
        writer.region([scalar, scalar], translation.apply(select)),
        writer.region([scalar, scalar], translation.apply(scatter)),
    ]
    return writer.op("select_and_scatter", operands, instruction.shape.of(), how, regions)
