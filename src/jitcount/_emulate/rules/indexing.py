"""Operations that look elements up by number, or put them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array, listed
from jitcount._hlo.parser import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values, Writer


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
    if count > 1:
        return _scatter_of_pairs(context, inputs, updates, how)
    region = writer.region([Shape(each, ()) for each in elements * 2], context.region("to_apply"))
    given = [*inputs, arrays[count], *updates]
    return context.structured(writer.ops("scatter", given, shapes, how, [region]))


def _scatter_of_pairs(
    context: Context, inputs: list[Value], updates: list[Value], how: str
) -> Values:
    """A scatter of two arrays of 32 bits, as one of 64.

    A TPU has complex numbers and 64 bits as two arrays, and scatters both at once. XLA:CPU writes
    such a scatter to the wrong places where both arrays begin as the same value, such as zeros
    (seen with JAX 0.7.1 to 0.11.2; 0.12 cannot compile it).
    """
    elements = [value.shape.element for value in inputs]
    if len(elements) != _PAIR or any(value.shape.bits != _HALF for value in inputs):
        raise ValueError(f"a scatter of {', '.join(elements)} at once")
    writer, combine = context.writer, context.region("to_apply")

    def body(inner: Writer, values: list[Value]) -> list[Value]:
        parts = [part for value in values for part in _halves(inner, value, elements)]
        return [_pair(inner, combine(inner, parts))]

    shape = inputs[0].shape.replace("u64")
    scalar = shape.replace(extents=())
    given = [_pair(writer, inputs), context.arrays[_PAIR], _pair(writer, updates)]
    region = writer.region([scalar, scalar], body)
    return tuple(_halves(writer, writer.op("scatter", given, shape, how, [region]), elements))


_PAIR = 2
_HALF = 32  # bits


def _pair(writer: Writer, values: Sequence[Value]) -> Value:
    """The bits of two arrays as those of one: the first has the lower half."""
    shape = values[0].shape.replace("u32")
    low, high = (
        writer.convert(writer.op("bitcast_convert", [value], shape), "u64") for value in values
    )
    high = writer.apply("shift_left", high, writer.full(_HALF, high.shape))
    return writer.apply("or", low, high)


def _halves(writer: Writer, value: Value, elements: Sequence[str]) -> list[Value]:
    """The two arrays that a pair was made of."""
    high = writer.apply("shift_right_logical", value, writer.full(_HALF, value.shape))
    halves = (writer.convert(each, "u32") for each in (value, high))
    return [
        writer.op("bitcast_convert", [half], half.shape.replace(element))
        for half, element in zip(halves, elements, strict=True)
    ]


def _dimension_numbers(context: Context, *names: str) -> str:
    """Which axes are which: lists of numbers, where they are not empty, and the indices' axis."""
    lists = [f"{name} = {listed(numbers)}" for name in names if (numbers := context.numbers(name))]
    return ", ".join([*lists, f"index_vector_dim = {context.numbers('index_vector_dim')[0]}"])
