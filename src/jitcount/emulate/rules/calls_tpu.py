"""Calls that XLA:TPU makes, by the operations that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.emulate.rules.custom_calls import call
from jitcount.emulate.rules.sorting import top_k
from jitcount.emulate.shapes import Shape
from jitcount.emulate.translating import NotKnownError

if TYPE_CHECKING:
    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Value, Values, Writer


@call(
    "AssumeGatherIndicesInBound",
    "GatherScatterIndicesBitpacked",
    "LayoutConstraint",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "MoveToHost",
    "MoveToDevice",
    "annotate_device_placement",
)
def _same(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    return operands[0]


@call("AllocateBuffer")
def _zeros(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    """Memory that is written to before it is read."""
    return writer.full(0, instruction.shape.of())


@call("ConcatBitcast")
def _joined(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    """Slices that were moved one by one into places side by side: the array is whole again."""
    shape = instruction.shape.of()
    pairs = enumerate(zip(operands[0].shape.extents, shape.extents, strict=True))
    axes = [axis for axis, (part, whole) in pairs if part != whole]
    if len(operands) == 1 and not axes:
        return operands[0]
    if len(axes) != 1:
        raise NotKnownError("a call of ConcatBitcast of other forms")
    return writer.op("concatenate", operands, shape, f"dimension = {axes[0]} : i64")


# A TPU has no 64 bits: XLA splits a number in two before the first operation, and joins them after
# the last. Of a whole number these are its lower and its upper half; of a float64 the nearest
# float32 and what that leaves; of a complex number its real and its imaginary part.


@call("X64SplitLow")
def _low(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    (value,) = operands
    if value.shape.element.startswith("c"):
        return writer.op("real", [value], instruction.shape.of())
    return writer.op("convert", [value], instruction.shape.of())


@call("X64SplitHigh")
def _high(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    (value,) = operands
    shape = instruction.shape.of()
    if value.shape.element.startswith("c"):
        return writer.op("imag", [value], shape)
    if value.shape.element == "f64":
        nearest = writer.op("convert", [value], shape)
        rest = writer.op(
            "subtract", [value, writer.op("convert", [nearest], value.shape)], value.shape
        )
        rest = writer.op("convert", [rest], shape)
        is_finite = writer.op("is_finite", [nearest], shape.of("pred"))
        return writer.op("select", [is_finite, rest, writer.full(0, shape)], shape)
    half = writer.full(32, value.shape)
    upper = writer.op("shift_right_logical", [value, half], value.shape)
    return writer.op("convert", [upper], shape)


@call("X64Combine")
def _combined(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    low, high = operands
    shape = instruction.shape.of()
    if shape.element.startswith("c"):
        return writer.op("complex", [low, high], shape)
    if shape.element == "f64":
        one, other = (writer.op("convert", [each], shape) for each in (low, high))
        return writer.op("add", [one, other], shape)
    low = writer.op("bitcast_convert", [low], low.shape.of("u32"))
    lower, upper = (writer.op("convert", [each], shape) for each in (low, high))
    upper = writer.op("shift_left", [upper, writer.full(32, shape)], shape)
    return writer.op("or", [lower, upper], shape)


@call("TopK", "__gpu$TopK")
def _top_k(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    first = instruction.shapes[0] if isinstance(instruction.shapes, tuple) else instruction.shape
    assert isinstance(first, Shape)  # noqa: S101
    return top_k(writer, operands[0], first.extents[-1])
