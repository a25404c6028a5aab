"""Calls that XLA:TPU makes, by the operations that they stand for."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount._emulate.rules.custom_calls import call
from jitcount._emulate.rules.perturb import loosened_function, loosened_sum
from jitcount._emulate.rules.products import Axes, Dot, product
from jitcount._emulate.rules.sorting import top_k
from jitcount._emulate.translate import NotKnownError
from jitcount._emulate.writer import array
from jitcount._hlo.parser import NARROW, Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction


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


# --- Kernels that XLA:TPU writes itself: a softmax and the product after it, as attention has t
#
# The kernel's own text comes with the call. It goes over the keys block by block, keeps the largest
# so far and the sum of exponentials, and scales what it has when either changes. The product is the
# matrix unit's; all else is in the type of the inputs.


_PRECISIONS = {"bf16": "default", "fp32": "highest"}


@call("tpu_custom_call")
def _kernel(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    name = instruction.metadata.get("op_name", "").strip('"')
    if not name.startswith("online-softmax") or len(operands) != 2:
        raise NotKnownError(f"a kernel of its own for TPUs: {name or instruction.name}")
    body = _body(instruction)
    found = re.search(r"@qk_fn, window_bounds = array<i64: ([\d, ]+)>", body)
    precision = re.search(r"#tpu\.contract_precision<(\w+)>", body)
    scores, values = operands
    keys = scores.shape.extents[-1]
    block = int(found[1].split(",")[-1]) if found else 0
    if not block or keys % block or precision is None or precision[1] not in _PRECISIONS:
        raise NotKnownError("a kernel for TPUs, online-softmax, of another form than is known")
    asked = f"{{{_PRECISIONS[precision[1]]}}}"
    attributes = instruction.attributes | {"operand_precision": asked}
    told = replace(instruction, attributes=attributes)
    return _Softmax(translation, writer, told).over(scores, values, block)


def _body(instruction: Instruction) -> str:
    told = json.loads(instruction.attributes.get("backend_config", "{}"))
    written = told.get("custom_call_config", {}).get("body", "")
    return base64.b64decode(written).decode(errors="replace")


class _Softmax:
    """Writes the kernel's steps; 16 bits are rounded after each, as it has no wider type."""

    def __init__(self, translation: Translation, writer: Writer, told: Instruction) -> None:
        self._translation = translation
        self._writer = writer
        self._told = told
        self._narrow = told.shape.element if told.shape.element in NARROW else ""

    def over(self, scores: Value, values: Value, block: int) -> Value:
        """All keys, block by block."""
        queries, keys = scores.shape.extents[:-1], scores.shape.extents[-1]
        column, inner = (*queries, 1), "f32"
        scores = self._writer.convert(scores, inner)
        largest = self._writer.full(float("-inf"), Shape(inner, column))
        total = self._writer.full(0, Shape(inner, column))
        made = self._writer.full(0, self._told.shape.of(inner))
        for begin in range(0, keys, block):
            axis = len(queries)
            part = self._cut(scores, axis, begin, block)
            value = self._cut(values, axis - 1, begin, block)
            new = self._op("maximum", largest, self._reduced("maximum", part))
            moved = self._function("exponential", self._difference(largest, new))
            weights = self._function(
                "exponential", self._op("subtract", part, self._spread(new, part.shape))
            )
            before = self._op("multiply", moved, total)
            total = self._op("add", before, self._reduced("add", weights))
            kept = self._op("multiply", self._spread(before, made.shape), made)
            added = self._op("add", self._product(weights, value), kept)
            one = self._writer.full(1, total.shape)
            scale = self._function("divide", one, total)
            made = self._op("multiply", added, self._spread(scale, made.shape))
            largest = new
        return self._writer.convert(made, self._told.shape.element)

    def _difference(self, one: Value, other: Value) -> Value:
        """Zero where both are the same, also where both are infinite."""
        how = (
            "compare_type = #stablehlo<comparison_type FLOAT>, "
            "comparison_direction = #stablehlo<comparison_direction EQ>"
        )
        same = self._writer.op("compare", [one, other], one.shape.of("pred"), how)
        zero = self._writer.full(0, one.shape)
        return self._writer.op("select", [same, zero, self._op("subtract", one, other)], one.shape)

    def _product(self, weights: Value, values: Value) -> Value:
        rank = len(weights.shape.extents)
        axes = Axes([(at, at) for at in range(rank - 2)], [(rank - 1, rank - 2)])
        wide = replace(self._told, shapes=self._told.shape.of("f32"))
        if self._narrow:
            weights = self._writer.convert(weights, self._narrow)
        return product(
            self._translation,
            self._writer,
            wide,
            (weights, values),
            Dot(self._writer, axes),
        )

    def _op(self, name: str, *operands: Value) -> Value:
        return self._rounded(self._writer.op(name, operands, operands[0].shape))

    def _function(self, name: str, *operands: Value) -> Value:
        made = self._writer.op(name, operands, operands[0].shape)
        return self._rounded(loosened_function(self._translation, self._writer, name, made))

    def _rounded(self, value: Value) -> Value:
        if not self._narrow:
            return value
        return self._writer.convert(self._writer.convert(value, self._narrow), "f32")

    def _reduced(self, name: str, value: Value) -> Value:
        """Over the last axis, which stays, with one place."""
        start = float("-inf") if name == "maximum" else 0.0
        extents = value.shape.extents
        scalar = Shape("f32", ())
        region = self._writer.region(
            [scalar, scalar], lambda inner, given: [inner.op(name, given, scalar)]
        )
        how = f"dimensions = {array([len(extents) - 1])}"
        shape = Shape("f32", extents[:-1])
        first = self._writer.full(start, scalar)
        made = self._writer.op("reduce", [value, first], shape, how, [region])
        if name == "add" and self._translation.draw:  # of exponentials: they are their magnitudes
            made = loosened_sum(self._translation, self._writer, made, made, extents[-1])
        return self._rounded(self._writer.reshape(made, (*extents[:-1], 1)))

    def _spread(self, column: Value, to: Shape) -> Value:
        how = f"broadcast_dimensions = {array(range(len(to.extents)))}"
        return self._writer.op("broadcast_in_dim", [column], to.of("f32"), how)

    def _cut(self, value: Value, axis: int, begin: int, size: int) -> Value:
        extents = value.shape.extents
        starts = [begin if at == axis else 0 for at in range(len(extents))]
        limits = [begin + size if at == axis else extent for at, extent in enumerate(extents)]
        how = (
            f"limit_indices = {array(limits)}, start_indices = {array(starts)}, "
            f"strides = {array([1] * len(extents))}"
        )
        made = tuple(limit - start for limit, start in zip(limits, starts, strict=True))
        return self._writer.op("slice", [value], value.shape.of(extents=made), how)
