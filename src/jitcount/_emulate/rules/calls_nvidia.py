"""Products and convolutions that XLA:GPU leaves to cuBLAS and cuDNN."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jitcount._emulate.rules.convolutions import Labels, convolution
from jitcount._emulate.rules.custom_calls import beside, call, config
from jitcount._emulate.rules.products import Axes, Dot, product
from jitcount._emulate.rules.reducing import Window, widened
from jitcount._emulate.translate import NotKnownError
from jitcount._emulate.writer import array
from jitcount._hlo.parser import flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction


def _widened(instruction: Instruction, asked: dict[str, str] | None = None) -> Instruction:
    """The same call with a result of 16 bits not yet rounded: what follows is in float32 too."""
    first = flat(instruction.shapes)[0]
    return replace(
        instruction,
        shapes=first.of(widened(first.element)),
        attributes=instruction.attributes | (asked or {}),
    )


def _scaled(writer: Writer, value: Value, factor: float) -> Value:
    if factor == 1:
        return value
    return writer.op("multiply", [value, writer.full(factor, value.shape)], value.shape)


def _added(writer: Writer, value: Value, more: Value, factor: float) -> Value:
    more = _scaled(writer, writer.convert(more, value.shape.element), factor)
    return writer.op("add", [value, more], value.shape)


def _biased(writer: Writer, value: Value, bias: Value, axis: int) -> Value:
    bias = writer.convert(bias, value.shape.element)
    how = f"broadcast_dimensions = {array([axis])}"
    bias = writer.op("broadcast_in_dim", [bias], value.shape, how)
    return writer.op("add", [value, bias], value.shape)


def _positive(writer: Writer, value: Value) -> Value:
    return writer.op("maximum", [value, writer.full(0, value.shape)], value.shape)


# --- cuBLAS ---------------------------------------------------------------------------------------


@call("__cublas$gemm", "__cublas$lt$matmul")
def _gemm(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """A product, scaled; perhaps with what is added to it, a bias, and an activation."""
    told = config(instruction, "gemm_backend_config")
    numbers = told["dot_dimension_numbers"]

    def axes(name: str) -> list[int]:
        return [int(axis) for axis in numbers.get(name, [])]

    pairs = Axes(
        list(zip(axes("lhs_batch_dimensions"), axes("rhs_batch_dimensions"), strict=True)),
        list(
            zip(axes("lhs_contracting_dimensions"), axes("rhs_contracting_dimensions"), strict=True)
        ),
    )
    if float(told.get("alpha_imag", 0)):
        raise NotKnownError("a product scaled by a complex number")
    asked = told.get("precision_config", {})
    precision = ",".join(asked.get("operand_precision", ["DEFAULT"]))
    how = {"operand_precision": f"{{{precision.lower()}}}", "algorithm": asked.get("algorithm", "")}
    left, right, *more = operands
    made = product(
        translation,
        writer,
        _widened(instruction, how),
        (left, right),
        Dot(writer, pairs),
    )
    made = _scaled(writer, made, float(told.get("alpha_real", 1)))
    if (beta := float(told.get("beta", 0))) and more:
        made = _added(writer, made, more.pop(0), beta)
    made = _epilogue(writer, made, told.get("epilogue", "DEFAULT"), more)
    made = writer.convert(made, flat(instruction.shapes)[0].element)
    return beside(writer, made, instruction.shapes)


def _epilogue(writer: Writer, value: Value, name: str, more: list[Value]) -> Value:
    if name not in {"DEFAULT", "RELU", "BIAS", "BIAS_RELU"}:
        raise NotKnownError(f"a product with the epilogue {name}")
    if "BIAS" in name:
        value = _biased(writer, value, more.pop(0), len(value.shape.extents) - 1)
    return _positive(writer, value) if "RELU" in name else value


# --- cuDNN ----------------------------------------------------------------------------------------

# All calls have the labels and the window of the convolution itself, also those that give the
# gradient of its input or of its filter.


@call("__cudnn$convForward")
def _forward(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    made = _convolved(translation, writer, instruction, operands[:2])
    return _finished(writer, instruction, made)


@call("__cudnn$convBiasActivationForward")
def _forward_and_more(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """A convolution, scaled, with another input, scaled, a bias and an activation."""
    left, right, bias, *more = operands
    told = config(instruction, "cudnn_conv_backend_config")
    made = _convolved(translation, writer, instruction, [left, right])
    made = _scaled(writer, made, float(told.get("conv_result_scale", 1)))
    side = float(told.get("side_input_scale", 0))
    if side and more:
        made = _added(writer, made, more[0], side)
    axis = Labels(instruction.attributes["dim_labels"]).output.index("f")
    made = _biased(writer, made, bias, axis)
    made = _activated(writer, made, told)
    return beside(
        writer, writer.convert(made, flat(instruction.shapes)[0].element), instruction.shapes
    )


def _activated(writer: Writer, value: Value, told: dict[str, Any]) -> Value:
    mode = told.get("activation_mode", "kNone")
    if mode == "kNone":
        return value
    positive = _positive(writer, value)
    if mode == "kRelu":
        return positive
    if mode == "kRelu6":
        return writer.op("minimum", [positive, writer.full(6, value.shape)], value.shape)
    if mode == "kElu":
        below = writer.op("exponential_minus_one", [value], value.shape)
    elif mode == "kLeakyRelu":
        below = _scaled(writer, value, float(told.get("leakyrelu_alpha", 0)))
    else:
        raise NotKnownError(f"a convolution with the activation {mode}")
    how = "comparison_direction = #stablehlo<comparison_direction GT>"
    zero = writer.full(0, value.shape)
    above = writer.op("compare", [value, zero], value.shape.of("pred"), how)
    return writer.op("select", [above, value, below], value.shape)


@call("__cudnn$convBackwardInput")
def _backward_input(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """The convolution of what comes back, dilated, with the filter turned round."""
    labels, window, groups = _described(instruction)
    back, filters = operands[:2]
    if any(each != 1 for each in window.lhs_dilations):
        raise NotKnownError("the gradient of a convolution whose input is dilated")
    wanted = flat(instruction.shapes)[0].extents
    padding = []
    for at, label in enumerate(labels.spatial):
        reach = (window.sizes[at] - 1) * window.rhs_dilations[at]
        low = reach - window.padding[at][0]
        given = (back.shape.extents[labels.output.index(label)] - 1) * window.strides[at] + 1
        padding.append((low, wanted[labels.left.index(label)] - given - low + reach))
    turned = _changed(
        window,
        strides=window.lhs_dilations,
        lhs_dilations=window.strides,
        padding=padding,
        reversals=[1 - each for each in window.reversals],
    )
    # What goes in comes out: each group's own, so that with groups those of the output come first.
    kernel = labels.right.translate(_SWAPPED)
    filters = _regrouped(writer, filters, labels.right, groups)
    inverse = Labels(f"{labels.output}_{kernel}->{labels.left}")
    made = convolution(
        translation, writer, _widened(instruction), (back, filters), (inverse, turned, [groups, 1])
    )
    return _finished(writer, instruction, made)


_SWAPPED = str.maketrans("io", "oi")


def _regrouped(writer: Writer, filters: Value, labels: str, groups: int) -> Value:
    """Filters with the groups moved from the axis of outputs to the one of inputs."""
    if groups == 1:
        return filters
    axis, to = labels.index("o"), labels.index("i")
    extents = list(filters.shape.extents)
    apart = [*extents[:axis], groups, extents[axis] // groups, *extents[axis + 1 :]]
    value = writer.reshape(filters, tuple(apart))
    order = [at for at in range(len(apart)) if at != axis]
    order.insert(order.index(to + (to > axis)), axis)
    value = writer.transpose(value, tuple(order))
    extents[axis] //= groups
    extents[to] *= groups
    return writer.reshape(value, tuple(extents))


@call("__cudnn$convBackwardFilter")
def _backward_filter(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """The convolution of the input with what comes back, over the batch; strides dilate it."""
    labels, window, groups = _described(instruction)
    given, back = operands[:2]
    if any(each != 1 for each in window.lhs_dilations):
        raise NotKnownError("the gradient of a convolution whose input is dilated")
    padding = []
    for at, label in enumerate(labels.spatial):
        low = window.padding[at][0]
        size = (back.shape.extents[labels.output.index(label)] - 1) * window.strides[at] + 1
        reach = (window.sizes[at] - 1) * window.rhs_dilations[at]
        padding.append((low, reach + size - given.shape.extents[labels.left.index(label)] - low))
    turned = _changed(
        window,
        strides=window.rhs_dilations,
        rhs_dilations=window.strides,
        padding=padding,
        reversals=[0] * len(padding),
    )
    as_left = labels.left.translate(str.maketrans("bf", "fb"))
    as_right = labels.output.translate(str.maketrans("bf", "io"))
    as_output = labels.right.translate(str.maketrans("io", "bf"))
    inverse = Labels(f"{as_left}_{as_right}->{as_output}")
    made = convolution(
        translation, writer, _widened(instruction), (given, back), (inverse, turned, [1, groups])
    )
    axes = [labels.right.index(each) for each in _reversed(labels, window)]
    if axes:
        made = writer.op("reverse", [made], made.shape, f"dimensions = {array(axes)}")
    return _finished(writer, instruction, made)


def _reversed(labels: Labels, window: Window) -> list[str]:
    return [label for at, label in enumerate(labels.spatial) if window.reversals[at]]


def _changed(window: Window, **changes: Any) -> Window:
    found = copy.copy(window)
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def _described(instruction: Instruction) -> tuple[Labels, Window, int]:
    labels = Labels(instruction.attributes["dim_labels"])
    window = Window(instruction.attributes.get("window", "{}"), len(labels.spatial))
    (groups,) = instruction.numbers("feature_group_count") or (1,)
    if (instruction.numbers("batch_group_count") or (1,)) != (1,):
        raise NotKnownError("a convolution by cuDNN with groups of a batch")
    return labels, window, groups


def _convolved(
    translation: Translation, writer: Writer, instruction: Instruction, given: Sequence[Value]
) -> Value:
    if any(value.shape.element[0] in "su" for value in given):
        raise NotKnownError("a convolution of whole numbers by cuDNN")
    labels, window, groups = _described(instruction)
    left, right = given
    return convolution(
        translation, writer, _widened(instruction), (left, right), (labels, window, [groups, 1])
    )


def _finished(writer: Writer, instruction: Instruction, made: Value) -> Values:
    told = config(instruction, "cudnn_conv_backend_config")
    if told.get("activation_mode", "kNone") != "kNone":
        raise NotKnownError(f"a convolution with the activation {told['activation_mode']}")
    made = _scaled(writer, made, float(told.get("conv_result_scale", 1)))
    made = writer.convert(made, flat(instruction.shapes)[0].element)
    return beside(writer, made, instruction.shapes)
