"""Calls that XLA:TPU makes, by the operations that they stand for."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING

from jitcount._emulate.rules.calls_solvers import is_complex
from jitcount._emulate.rules.custom_calls import call
from jitcount._emulate.rules.perturb import perturbed_function, perturbed_sum
from jitcount._emulate.rules.products import Axes, Dot, product
from jitcount._emulate.rules.sorting import top_k
from jitcount._emulate.translate import NotKnownError
from jitcount._hlo.parser import NARROW, Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values


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
def _same(context: Context) -> Values:
    return context.operands[0]


@call("dce_sink")
def _sink(context: Context) -> Values:
    """Takes a value so that the compiler keeps what it is made of, here too; returns nothing."""
    how = 'call_target_name = "dce_sink", has_side_effect = true, api_version = 4 : i32'
    return tuple(context.writer.ops("custom_call", context.arrays, [], how))


@call("AllocateBuffer")
def _zeros(context: Context) -> Value:
    """Memory that is written to before it is read."""
    return context.writer.full(0, context.result)


@call("ConcatBitcast")
def _joined(context: Context) -> Value:
    """Slices that were moved one by one, each to its own place: the array is whole again.

    They stand in the order in which they are moved, which is not that of their places.
    """
    arrays = context.arrays
    pairs = enumerate(zip(arrays[0].shape.extents, context.result.extents, strict=True))
    axes = [axis for axis, (part, whole) in pairs if part != whole]
    if len(arrays) == 1 and not axes:
        return arrays[0]
    begins = [_slice_begin(context, name) for name in context.instruction.operands]
    if len(axes) != 1 or not all(begins):
        raise NotKnownError("a call of ConcatBitcast of other forms")
    (axis,) = axes
    order = sorted(range(len(arrays)), key=lambda number: begins[number][axis])
    in_place = [arrays[number] for number in order]
    return context.writer.op("concatenate", in_place, context.result, f"dimension = {axis} : i64")


def _slice_begin(context: Context, name: str) -> tuple[int, ...]:
    """Where a slice that was moved begins, along each axis; empty if it is no slice."""
    instructions = context.translation.module.instructions
    instruction = instructions[name]
    while instruction.opcode.endswith("-done"):
        instruction = instructions[instruction.operands[0]]
    return tuple(map(int, re.findall(r"\[(\d+):", instruction.attributes.get("slice", ""))))


# A TPU has no 64 bits: XLA splits a number in two before the first operation, and joins them after
# the last. Of a whole number these are its lower and its upper half; of a float64 the nearest
# float32 and what that leaves; of a complex number its real and its imaginary part.


@call("X64SplitLow")
def _low(context: Context) -> Value:
    (value,) = context.arrays
    name = "real" if is_complex(value) else "convert"
    return context.writer.op(name, [value], context.result)


@call("X64SplitHigh")
def _high(context: Context) -> Value:
    (value,) = context.arrays
    writer, shape = context.writer, context.result
    if is_complex(value):
        return writer.op("imag", [value], shape)
    if value.shape.element == "f64":
        nearest = writer.op("convert", [value], shape)
        rest = writer.apply("subtract", value, writer.op("convert", [nearest], value.shape))
        rest = writer.op("convert", [rest], shape)
        is_finite = writer.op("is_finite", [nearest], shape.replace("pred"))
        return writer.select(is_finite, rest, writer.full(0, shape))
    upper = writer.apply("shift_right_logical", value, writer.full(32, value.shape))
    return writer.op("convert", [upper], shape)


@call("X64Combine")
def _combined(context: Context) -> Value:
    low, high = context.arrays
    writer, shape = context.writer, context.result
    if shape.element.startswith("c"):
        return writer.op("complex", [low, high], shape)
    if shape.element == "f64":
        one, other = (writer.op("convert", [each], shape) for each in (low, high))
        return writer.apply("add", one, other)
    low = writer.op("bitcast_convert", [low], low.shape.replace("u32"))
    lower, upper = (writer.op("convert", [each], shape) for each in (low, high))
    upper = writer.apply("shift_left", upper, writer.full(32, shape))
    return writer.apply("or", lower, upper)


@call("TopK", "__gpu$TopK")
def _top_k(context: Context) -> Values:
    return top_k(context.writer, context.arrays[0], context.results[0].extents[-1])


# --- A kernel that XLA:TPU writes itself: a softmax and the product after it, as attention has ----
#
# The kernel's own text comes with the call. It goes over the keys block by block, keeps the largest
# so far and the sum of exponentials, and scales what it has when either changes. The product is the
# matrix unit's; all else is in the type of the inputs.

_PRECISIONS = {"bf16": "default", "fp32": "highest"}


@call("tpu_custom_call")
def _kernel(context: Context) -> Value:
    name = context.instruction.metadata.get("op_name", "").strip('"')
    if not name.startswith("online-softmax") or len(context.operands) != 2:
        raise NotKnownError(f"a kernel of its own for TPUs: {name or context.instruction.name}")
    told = json.loads(context.attributes.get("backend_config", "{}"))
    written = told.get("custom_call_config", {}).get("body", "")
    body = base64.b64decode(written).decode(errors="replace")
    found = re.search(r"@qk_fn, window_bounds = array<i64: ([\d, ]+)>", body)
    precision = re.search(r"#tpu\.contract_precision<(\w+)>", body)
    scores, values = context.arrays
    keys = scores.shape.extents[-1]
    block = int(found[1].split(",")[-1]) if found else 0
    if not block or keys % block or precision is None or precision[1] not in _PRECISIONS:
        raise NotKnownError("a kernel for TPUs, online-softmax, of another form than is known")
    asked = {"operand_precision": f"{{{_PRECISIONS[precision[1]]}}}"}
    context = context.changed(attributes=context.attributes | asked)
    return _Softmax(context).over(scores, values, block)


class _Softmax:
    """Writes the kernel's steps; 16 bits are rounded after each, as it has no wider type."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._writer = context.writer
        element = context.result.element
        self._narrow = element if element in NARROW else ""

    def over(self, scores: Value, values: Value, block: int) -> Value:
        """The kernel's result for all keys, block by block."""
        writer = self._writer
        queries, keys = scores.shape.extents[:-1], scores.shape.extents[-1]
        scores = writer.convert(scores, "f32")
        largest = writer.full(float("-inf"), Shape("f32", (*queries, 1)))
        total = writer.full(0, largest.shape)
        made = writer.full(0, self._context.result.replace("f32"))
        for begin in range(0, keys, block):
            axis = len(queries)
            part = writer.part(scores, {axis: (begin, block)})
            value = writer.part(values, {axis - 1: (begin, block)})
            new = self._op("maximum", largest, self._reduced("maximum", part))
            moved = self._function("exponential", self._difference(largest, new))
            weights = self._function(
                "exponential", self._op("subtract", part, self._spread(new, part.shape))
            )
            before = self._op("multiply", moved, total)
            total = self._op("add", before, self._reduced("add", weights))
            kept = self._op("multiply", self._spread(before, made.shape), made)
            added = self._op("add", self._product(weights, value), kept)
            scale = self._function("divide", writer.full(1, total.shape), total)
            made = self._op("multiply", added, self._spread(scale, made.shape))
            largest = new
        return writer.convert(made, self._context.result.element)

    def _difference(self, one: Value, other: Value) -> Value:
        """Zero where both are the same, also where both are infinite."""
        same = self._writer.compare(one, other, "EQ", "FLOAT")
        zero = self._writer.full(0, one.shape)
        return self._writer.select(same, zero, self._op("subtract", one, other))

    def _product(self, weights: Value, values: Value) -> Value:
        rank = len(weights.shape.extents)
        axes = Axes([(at, at) for at in range(rank - 2)], [(rank - 1, rank - 2)])
        wide = self._context.changed(shapes=self._context.result.replace("f32"))
        if self._narrow:
            weights = self._writer.convert(weights, self._narrow)
        return product(wide, (weights, values), Dot(self._writer, axes))

    def _op(self, name: str, *operands: Value) -> Value:
        return self._rounded(self._writer.apply(name, *operands))

    def _function(self, name: str, *operands: Value) -> Value:
        made = self._writer.apply(name, *operands)
        return self._rounded(perturbed_function(self._context, name, made))

    def _rounded(self, value: Value) -> Value:
        if not self._narrow:
            return value
        return self._writer.convert(self._writer.convert(value, self._narrow), "f32")

    def _reduced(self, name: str, value: Value) -> Value:
        """An array reduced over its last axis, which stays, with one place."""
        *others, count = value.shape.extents
        start = float("-inf") if name == "maximum" else 0.0
        made = self._writer.reduce(name, value, [len(others)], start)
        if name == "add" and self._context.translation.perturbation_seed:
            # The terms are exponentials, and so their own magnitudes.
            made = perturbed_sum(self._context, made, made, count)
        return self._rounded(self._writer.reshape(made, (*others, 1)))

    def _spread(self, column: Value, to: Shape) -> Value:
        return self._writer.broadcast(column, to.replace("f32"), range(len(to.extents)))
