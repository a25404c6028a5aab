"""Kernels that XLA:TPU writes itself: a softmax and the product after it, as attention has them.

The kernel's own text comes with the call. It goes over the keys block by block, keeps the largest
so far and the sum of exponentials, and scales what it has when either changes. The product is the
matrix unit's; all else is in the type of the inputs.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount.emulate.rules.custom_calls import call
from jitcount.emulate.rules.dots import Axes, Dot
from jitcount.emulate.rules.loosened import loosened_function, loosened_sum
from jitcount.emulate.rules.products import product
from jitcount.emulate.shapes import NARROW, Shape
from jitcount.emulate.translating import NotKnownError
from jitcount.emulate.writing import array

if TYPE_CHECKING:
    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Value, Writer

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
