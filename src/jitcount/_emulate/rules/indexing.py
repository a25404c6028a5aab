"""Operations that look elements up by number, or put them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array, listed
from jitcount._hlo.parser import Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values


@rule("dynamic-slice")
def _dynamic_slice(context: Context) -> Value:
    value, *starts = context.arrays
    value = context.as_declared(value)
    given = [value, *_of_one_type(context, starts)]
    shape = context.result.replace(value.shape.element)
    how = f"slice_sizes = {array(context.numbers('dynamic_slice_sizes'))}"
    return context.writer.op("dynamic_slice", given, shape, how)


@rule("dynamic-update-slice")
def _dynamic_update_slice(context: Context) -> Value:
    value, update, *starts = context.arrays
    shape = context.result
    given = [context.writer.convert(each, shape.element) for each in (value, update)]
    given += _of_one_type(context, starts)
    return context.writer.op("dynamic_update_slice", given, shape)


def _of_one_type(context: Context, starts: list[Value]) -> list[Value]:
    """Indices of one type, as StableHLO wants."""
    if len({start.shape.element for start in starts}) <= 1:
        return starts
    return [context.writer.convert(start, "s64") for start in starts]


@rule("gather")
def _gather(context: Context) -> Value:
    numbers = _dimension_numbers(
        context,
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
    )
    how = (
        f"dimension_numbers = #stablehlo.gather<{numbers}>, "
        f"indices_are_sorted = false, slice_sizes = {array(context.numbers('slice_sizes'))}"
    )
    value, indices = context.arrays
    value = context.as_declared(value)
    shape = context.result.replace(value.shape.element)
    return context.writer.op("gather", [value, indices], shape, how)


@rule("scatter")
def _scatter(context: Context) -> Values:
    numbers = _dimension_numbers(
        context,
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    )
    unique = "true" if context.attributes.get("unique_indices") == "true" else "false"
    how = (
        f"indices_are_sorted = false, "
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, unique_indices = {unique}"
    )
    writer, arrays, shapes = context.writer, context.arrays, context.results
    elements = [shape.element for shape in shapes]
    count = len(shapes)
    inputs = [writer.convert(*pair) for pair in zip(arrays[:count], elements, strict=True)]
    updates = [writer.convert(*pair) for pair in zip(arrays[count + 1 :], elements, strict=True)]
    region = writer.region([Shape(each, ()) for each in elements * 2], context.region("to_apply"))
    given = [*inputs, arrays[count], *updates]
    return context.structured(writer.ops("scatter", given, shapes, how, [region]))


def _dimension_numbers(context: Context, *names: str) -> str:
    """Which axes are which: lists of numbers, where they are not empty, and the indices' axis."""
    lists = [f"{name} = {listed(numbers)}" for name in names if (numbers := context.numbers(name))]
    return ", ".join([*lists, f"index_vector_dim = {context.numbers('index_vector_dim')[0]}"])
