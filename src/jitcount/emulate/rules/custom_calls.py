"""Calls of what a target's own libraries do, by the operations that they stand for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jitcount.emulate.rules.products import Axes, dot, product
from jitcount.emulate.rules.reducing import top_k
from jitcount.emulate.shapes import Shape
from jitcount.emulate.translating import NotKnownError, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Value, Values, Writer

    Call = Callable[[Translation, Writer, Instruction, list[Any]], Values]

_CALLS: dict[str, Call] = {}


def call(*names: str) -> Callable[[Call], Call]:
    """Declare what a call stands for."""

    def declare(function: Call) -> Call:
        _CALLS.update(dict.fromkeys(names, function))
        return function

    return declare


@rule("custom-call")
def _custom_call(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    name = instruction.attributes["custom_call_target"].strip('"')
    known = _CALLS.get(name)
    if known is None:
        raise NotKnownError(f"a call of {name}")
    return known(translation, writer, instruction, operands)


# --- XLA:TPU's ----------------------------------------------------------------------------------


@call(
    "AssumeGatherIndicesInBound",
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


@call("Cholesky")
def _cholesky(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    return writer.op("cholesky", operands[:1], instruction.shape.of(), "lower = true")


@call("TopK", "__gpu$TopK")
def _top_k(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    first = instruction.shapes[0] if isinstance(instruction.shapes, tuple) else instruction.shape
    assert isinstance(first, Shape)  # noqa: S101
    return top_k(writer, operands[0], first.extents[-1])


# --- NVIDIA's -----------------------------------------------------------------------------------


def _config(instruction: Instruction, name: str) -> dict[str, Any]:
    config = json.loads(instruction.attributes.get("backend_config", "{}"))
    found = config.get(name, config)
    return found if isinstance(found, dict) else {}


@call("__cublas$gemm", "__cublas$lt$matmul")
def _gemm(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """A product, scaled; perhaps with what is added to it, a bias, and an activation."""
    config = _config(instruction, "gemm_backend_config")
    numbers = config["dot_dimension_numbers"]

    def axes(name: str) -> list[int]:
        return [int(axis) for axis in numbers.get(name, [])]

    pairs = Axes(
        list(zip(axes("lhs_batch_dimensions"), axes("rhs_batch_dimensions"), strict=True)),
        list(
            zip(axes("lhs_contracting_dimensions"), axes("rhs_contracting_dimensions"), strict=True)
        ),
    )
    shapes = instruction.shapes
    first = shapes[0] if isinstance(shapes, tuple) else shapes
    assert isinstance(first, Shape)  # noqa: S101
    precision = ",".join(config.get("precision_config", {}).get("operand_precision", ["DEFAULT"]))
    asked = instruction.attributes | {"operand_precision": f"{{{precision.lower()}}}"}
    from dataclasses import replace  # noqa: PLC0415

    left, right, *more = operands
    made = product(
        translation,
        writer,
        replace(instruction, attributes=asked),
        (left, right),
        lambda one, other, element: dot(writer, one, other, pairs, element),
    )
    made = _scaled(writer, made, float(config.get("alpha_real", 1)))
    if (beta := float(config.get("beta", 0))) and more:
        added = writer.convert(more.pop(0), made.shape.element)
        made = writer.op("add", [made, _scaled(writer, added, beta)], made.shape)
    made = _epilogue(writer, made, config.get("epilogue", "DEFAULT"), more)
    return (made, *_workspace(writer, shapes)) if isinstance(shapes, tuple) else made


def _workspace(writer: Writer, shapes: tuple[Any, ...]) -> list[Value]:
    return [writer.full(0, shape.of()) for shape in shapes[1:]]


def _scaled(writer: Writer, value: Value, factor: float) -> Value:
    if factor == 1:
        return value
    return writer.op("multiply", [value, writer.full(factor, value.shape)], value.shape)


def _epilogue(writer: Writer, value: Value, name: str, more: list[Value]) -> Value:
    if name not in {"DEFAULT", "RELU", "BIAS", "BIAS_RELU"}:
        raise NotKnownError(f"a product with the epilogue {name}")
    if "BIAS" in name:
        axis = len(value.shape.extents) - 1
        how = f"broadcast_dimensions = array<i64: {axis}>"
        bias = writer.convert(more.pop(0), value.shape.element)
        bias = writer.op("broadcast_in_dim", [bias], value.shape, how)
        value = writer.op("add", [value, bias], value.shape)
    if "RELU" in name:
        value = writer.op("maximum", [value, writer.full(0, value.shape)], value.shape)
    return value
