"""Products and convolutions that XLA:GPU leaves to cuBLAS and cuDNN."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jitcount._emulate.rules.convolutions import Labels, convolution
from jitcount._emulate.rules.custom_calls import call, config, with_scratch
from jitcount._emulate.rules.products import Axes, Dot, product
from jitcount._emulate.rules.reducing import Window, widened
from jitcount._emulate.translate import NotKnownError
from jitcount._emulate.writer import array

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values, Writer


def _widened(context: Context, **attributes: str) -> Context:
    """The same call with a result of 16 bits not yet rounded: what follows is in float32 too."""
    first = context.results[0]
    return context.changed(
        shapes=first.replace(widened(first.element)), attributes=context.attributes | attributes
    )


def _finished(context: Context, made: Value) -> Values:
    """What the call returns, rounded at last."""
    return with_scratch(context, context.writer.convert(made, context.results[0].element))


def _scaled(writer: Writer, value: Value, factor: float) -> Value:
    if factor == 1:
        return value
    return writer.apply("multiply", value, writer.full(factor, value.shape))


def _added(writer: Writer, value: Value, more: Value, factor: float) -> Value:
    more = _scaled(writer, writer.convert(more, value.shape.element), factor)
    return writer.apply("add", value, more)


def _biased(writer: Writer, value: Value, bias: Value, axis: int) -> Value:
    bias = writer.convert(bias, value.shape.element)
    return writer.apply("add", value, writer.broadcast(bias, value.shape, [axis]))


def _positive(writer: Writer, value: Value) -> Value:
    return writer.apply("maximum", value, writer.full(0, value.shape))


# --- cuBLAS ---------------------------------------------------------------------------------------


@call("__cublas$gemm", "__cublas$lt$matmul")
def _gemm(context: Context) -> Values:
    """A product, scaled; perhaps with what is added to it, a bias, and an activation."""
    writer = context.writer
    told = config(context, "gemm_backend_config")
    numbers = told["dot_dimension_numbers"]

    def pairs(kind: str) -> list[tuple[int, int]]:
        left, right = (numbers.get(f"{side}_{kind}_dimensions", []) for side in ("lhs", "rhs"))
        return [(int(one), int(other)) for one, other in zip(left, right, strict=True)]

    axes = Axes(pairs("batch"), pairs("contracting"))
    if float(told.get("alpha_imag", 0)):
        raise NotKnownError("a product scaled by a complex number")
    asked = told.get("precision_config", {})
    precision = ",".join(asked.get("operand_precision", ["DEFAULT"]))
    wide = _widened(
        context,
        operand_precision=f"{{{precision.lower()}}}",
        algorithm=asked.get("algorithm", ""),
    )
    left, right, *more = context.arrays
    made = product(wide, (left, right), Dot(writer, axes))
    made = _scaled(writer, made, float(told.get("alpha_real", 1)))
    if (beta := float(told.get("beta", 0))) and more:
        made = _added(writer, made, more.pop(0), beta)
    made = _epilogue(writer, made, told.get("epilogue", "DEFAULT"), more)
    return _finished(context, made)


def _epilogue(writer: Writer, value: Value, name: str, more: list[Value]) -> Value:
    if name not in {"DEFAULT", "RELU", "BIAS", "BIAS_RELU"}:
        raise NotKnownError(f"a product with the epilogue {name}")
    if "BIAS" in name:
        value = _biased(writer, value, more.pop(0), len(value.shape.extents) - 1)
    return _positive(writer, value) if "RELU" in name else value


# --- cuDNN ----------------------------------------------------------------------------------------

# All calls have the labels and the window of the convolution itself, also those that return the
# gradient of its input or of its filter.


@call("__cudnn$convForward")
def _forward(context: Context) -> Values:
    return _scaled_only(context, _convolved(context))


@call("__cudnn$convBiasActivationForward")
def _forward_and_more(context: Context) -> Values:
    """A convolution, scaled, with another input, scaled, a bias and an activation."""
    writer = context.writer
    _, _, bias, *more = context.arrays
    told = config(context, "cudnn_conv_backend_config")
    made = _convolved(context)
    made = _scaled(writer, made, float(told.get("conv_result_scale", 1)))
    side = float(told.get("side_input_scale", 0))
    if side and more:
        made = _added(writer, made, more[0], side)
    axis = Labels(context.attributes["dim_labels"]).output.index("f")
    made = _biased(writer, made, bias, axis)
    return _finished(context, _activated(writer, made, told))


def _activated(writer: Writer, value: Value, told: dict[str, Any]) -> Value:
    mode = told.get("activation_mode", "kNone")
    if mode == "kNone":
        return value
    positive = _positive(writer, value)
    if mode == "kRelu":
        return positive
    if mode == "kRelu6":
        return writer.apply("minimum", positive, writer.full(6, value.shape))
    if mode == "kElu":
        below = writer.apply("exponential_minus_one", value)
    elif mode == "kLeakyRelu":
        below = _scaled(writer, value, float(told.get("leakyrelu_alpha", 0)))
    else:
        raise NotKnownError(f"a convolution with the activation {mode}")
    above = writer.compare(value, writer.full(0, value.shape), "GT")
    return writer.select(above, value, below)


@call("__cudnn$convBackwardInput")
def _backward_input(context: Context) -> Values:
    """The convolution of what comes back, dilated, with the filter turned round."""
    labels, window, groups = _described(context)
    back, filters = context.arrays[:2]
    if any(each != 1 for each in window.lhs_dilations):
        raise NotKnownError("the gradient of a convolution whose input is dilated")
    wanted = context.results[0].extents
    padding = []
    for at, label in enumerate(labels.spatial):
        reach = (window.sizes[at] - 1) * window.rhs_dilations[at]
        low = reach - window.padding[at][0]
        given = (back.shape.extents[labels.output.index(label)] - 1) * window.strides[at] + 1
        padding.append((low, wanted[labels.left.index(label)] - given - low + reach))
    turned = replace(
        window,
        strides=window.lhs_dilations,
        lhs_dilations=window.strides,
        padding=padding,
        reversals=[1 - each for each in window.reversals],
    )
    # What goes in comes out: each group's own, so that with groups those of the output come first.
    kernel = labels.right.translate(_SWAPPED)
    filters = _regrouped(context.writer, filters, labels.right, groups)
    inverse = Labels(f"{labels.output}_{kernel}->{labels.left}")
    made = convolution(_widened(context), (back, filters), inverse, turned, [groups, 1])
    return _scaled_only(context, made)


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
def _backward_filter(context: Context) -> Values:
    """The convolution of the input with what comes back, over the batch; strides dilate it."""
    labels, window, groups = _described(context)
    given, back = context.arrays[:2]
    if any(each != 1 for each in window.lhs_dilations):
        raise NotKnownError("the gradient of a convolution whose input is dilated")
    padding = []
    for at, label in enumerate(labels.spatial):
        low = window.padding[at][0]
        size = (back.shape.extents[labels.output.index(label)] - 1) * window.strides[at] + 1
        reach = (window.sizes[at] - 1) * window.rhs_dilations[at]
        padding.append((low, reach + size - given.shape.extents[labels.left.index(label)] - low))
    turned = replace(
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
    made = convolution(_widened(context), (given, back), inverse, turned, [1, groups])
    pairs = zip(labels.spatial, window.reversals, strict=True)
    axes = [labels.right.index(label) for label, is_reversed in pairs if is_reversed]
    if axes:
        how = f"dimensions = {array(axes)}"
        made = context.writer.op("reverse", [made], made.shape, how)
    return _scaled_only(context, made)


def _described(context: Context) -> tuple[Labels, Window, int]:
    labels = Labels(context.attributes["dim_labels"])
    window = Window.parse(context.attributes.get("window", "{}"), len(labels.spatial))
    (groups,) = context.numbers("feature_group_count") or (1,)
    if (context.numbers("batch_group_count") or (1,)) != (1,):
        raise NotKnownError("a convolution by cuDNN with groups of a batch")
    return labels, window, groups


def _convolved(context: Context) -> Value:
    left, right = context.arrays[:2]
    if any(value.shape.element[0] in "su" for value in (left, right)):
        raise NotKnownError("a convolution of whole numbers by cuDNN")
    labels, window, groups = _described(context)
    return convolution(_widened(context), (left, right), labels, window, [groups, 1])


def _scaled_only(context: Context, made: Value) -> Values:
    """What a convolution without bias and activation returns."""
    told = config(context, "cudnn_conv_backend_config")
    if told.get("activation_mode", "kNone") != "kNone":
        raise NotKnownError(f"a convolution with the activation {told['activation_mode']}")
    made = _scaled(context.writer, made, float(told.get("conv_result_scale", 1)))
    return _finished(context, made)
