"""Operations that look elements up by number, or put them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array, listed
from jitcount._hlo.parser import Shape, flat

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction


@rule("dynamic-slice")
def _dynamic_slice(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    value, *starts = operands
    value = translation.declared(writer, instruction, value)
    how = f"slice_sizes = {array(instruction.numbers('dynamic_slice_sizes'))}"
    return writer.op(
        "dynamic_slice",
        [value, *_alike(writer, starts)],
        instruction.shape.of(value.shape.element),
        how,
    )


@rule("dynamic-update-slice")
def _dynamic_update_slice(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    value, update, *starts = operands
    shape = instruction.shape.of()
    given = [writer.convert(each, shape.element) for each in (value, update)]
    return writer.op("dynamic_update_slice", [*given, *_alike(writer, starts)], shape)


def _alike(writer: Writer, starts: list[Value]) -> list[Value]:
    """Indices of one type, as StableHLO wants."""
    if len({start.shape.element for start in starts}) <= 1:
        return starts
    return [writer.convert(start, "s64") for start in starts]


@rule("gather")
def _gather(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    n = instruction.numbers
    parts = {
        "offset_dims": listed(n("offset_dims")),
        "collapsed_slice_dims": listed(n("collapsed_slice_dims")),
        "operand_batching_dims": listed(n("operand_batching_dims")),
        "start_indices_batching_dims": listed(n("start_indices_batching_dims")),
        "start_index_map": listed(n("start_index_map")),
        "index_vector_dim": str(n("index_vector_dim")[0]),
    }
    numbers = ", ".join(f"{name} = {text}" for name, text in parts.items() if text != "[]")
    how = (
        f"dimension_numbers = #stablehlo.gather<{numbers}>, "
        f"indices_are_sorted = false, slice_sizes = {array(n('slice_sizes'))}"
    )
    value = translation.declared(writer, instruction, operands[0])
    shape = instruction.shape.of(value.shape.element)
    return writer.op("gather", [value, operands[1]], shape, how)


@rule("scatter")
def _scatter(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    n = instruction.numbers
    parts = {
        "update_window_dims": listed(n("update_window_dims")),
        "inserted_window_dims": listed(n("inserted_window_dims")),
        "input_batching_dims": listed(n("input_batching_dims")),
        "scatter_indices_batching_dims": listed(n("scatter_indices_batching_dims")),
        "scatter_dims_to_operand_dims": listed(n("scatter_dims_to_operand_dims")),
        "index_vector_dim": str(n("index_vector_dim")[0]),
    }
    numbers = ", ".join(f"{name} = {text}" for name, text in parts.items() if text != "[]")
    unique = "true" if instruction.attributes.get("unique_indices") == "true" else "false"
    how = (
        f"indices_are_sorted = false, "
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, unique_indices = {unique}"
    )
    (applied,) = instruction.called("to_apply")
    half = len(operands) // 2
    inputs, indices, updates = operands[:half], operands[half], operands[half + 1 :]
    shapes = flat(instruction.shapes)
    elements = [shape.element for shape in shapes]
    inputs = [writer.convert(each, to) for each, to in zip(inputs, elements, strict=True)]
    updates = [writer.convert(each, to) for each, to in zip(updates, elements, strict=True)]
    region = writer.region([Shape(each, ()) for each in elements * 2], translation.apply(applied))
    given = [*inputs, indices, *updates]
    made = writer.ops("scatter", given, [shape.of() for shape in shapes], how, [region])
    return made[0] if isinstance(instruction.shapes, Shape) else tuple(made)
