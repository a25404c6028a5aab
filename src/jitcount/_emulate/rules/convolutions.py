"""Convolutions; XLA:TPU writes every product of matrices as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._emulate.rules.products import Axes, Dot, product
from jitcount._emulate.rules.reducing import Window
from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array, table

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Writer
    from jitcount._hlo.parser import Shape


@rule("convolution")
def _convolution(context: Context) -> Value:
    labels = Labels(context.attributes["dim_labels"])
    window = Window.parse(context.attributes.get("window", "{}"), len(labels.spatial))
    groups = [(context.numbers(f"{each}_group_count") or (1,))[0] for each in ("feature", "batch")]
    left, right = context.arrays
    return convolution(context, (left, right), labels, window, groups)


def convolution(
    context: Context,
    given: tuple[Value, Value],
    labels: Labels,
    window: Window,
    groups: list[int],
) -> Value:
    """A convolution by its labels, its window, and its groups of features and of a batch."""
    writer, shape = context.writer, context.result
    as_dot = None
    if groups == [1, 1]:
        as_dot = _as_dot(labels, window, given[0].shape, given[1].shape, shape)
    if as_dot is not None:
        axes, order = as_dot
        dot = Dot(
            writer,
            axes.axes,
            lambda one, other: _without_ones(writer, one, other, axes),
            lambda made: writer.transpose(writer.reshape(made, order.extents), order.axes),
        )
        return product(context, given, dot)
    how = _written(labels, window, groups)
    return product(
        context,
        given,
        lambda one, other, element: writer.op(
            "convolution", [one, other], shape.replace(element), how
        ),
    )


class Labels:
    """Which axis is which: ``b01f_01io->b01f``."""

    def __init__(self, text: str) -> None:
        inputs, self.output = text.split("->")
        self.left, self.right = inputs.split("_")
        self.spatial = sorted(label for label in self.left if label.isdigit())

    @property
    def text(self) -> str:
        """The labels as StableHLO writes them: ``[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]``."""
        one, other, out = (", ".join(each) for each in (self.left, self.right, self.output))
        return f"[{one}]x[{other}]->[{out}]"


def _written(labels: Labels, window: Window, groups: list[int]) -> str:
    features, batches = groups
    reversals = ", ".join("true" if each else "false" for each in window.reversals)
    reversals = f"array<i1: {reversals}>" if reversals else "array<i1>"
    highest = "#stablehlo<precision HIGHEST>"
    return (
        f"batch_group_count = {batches} : i64, "
        f"dimension_numbers = #stablehlo.conv<{labels.text}>, "
        f"feature_group_count = {features} : i64, "
        f"lhs_dilation = {array(window.lhs_dilations)}, "
        f"padding = {table(window.padding, 2)}, "
        f"precision_config = [{highest}, {highest}], "
        f"rhs_dilation = {array(window.rhs_dilations)}, "
        f"window_reversal = {reversals}, "
        f"window_strides = {array(window.strides)}"
    )


@dataclass(frozen=True, slots=True)
class _DotAxes:
    """A product that a convolution stands for; axes that have only one place are dropped."""

    left: list[int]
    """The axes of the left operand that stay."""

    right: list[int]
    """The axes of the right operand that stay."""

    axes: Axes
    """The axes that are multiplied, counted among those that stay."""


@dataclass(frozen=True, slots=True)
class _Order:
    """The product's extents with the dropped axes, and the order of axes that the result has."""

    extents: tuple[int, ...]
    axes: tuple[int, ...]


def _without_ones(writer: Writer, left: Value, right: Value, axes: _DotAxes) -> tuple[Value, Value]:
    one = writer.reshape(left, tuple(left.shape.extents[axis] for axis in axes.left))
    other = writer.reshape(right, tuple(right.shape.extents[axis] for axis in axes.right))
    return one, other


def _as_dot(
    labels: Labels, window: Window, left: Shape, right: Shape, result: Shape
) -> tuple[_DotAxes, _Order] | None:
    """XLA:TPU writes every product of matrices as a convolution; this finds the product again.

    A spatial axis then is one of four. With n places: *batch*, where the left is dilated by n and
    the window of n moves by n - 1, so that each place meets its own; *contracted*, where the window
    of n covers all; *of the left*, where the window is 1; *of the right*, where the left has one
    place and the window, reversed, moves over it.
    """
    batch, contracted = [], [("f", "i")]
    lefts, rights = ["b"], ["o"]
    for at, label in enumerate(labels.spatial):
        kind = _kind(at, label, labels, window, (left, right, result))
        if kind == "batch":
            batch.append((label, label))
        elif kind == "contracted":
            contracted.append((label, label))
        elif kind == "left":
            lefts.append(label)
        elif kind == "right":
            rights.append(label)
        else:
            return None
    multiplied = {label for label, _ in batch + contracted}
    left_kept = [label for label in labels.left if label in {*"bf", *lefts, *multiplied}]
    right_kept = [label for label in labels.right if label in {*"io", *rights, *multiplied}]
    axes = Axes(
        [(left_kept.index(one), right_kept.index(other)) for one, other in batch],
        [(left_kept.index(one), right_kept.index(other)) for one, other in contracted],
    )
    # The product's axes: batch, then the left's in their order, then the right's.
    made = [one for one, _ in batch]
    made += [label for label in left_kept if label in lefts]
    made += ["f" if label == "o" else label for label in right_kept if label in rights]
    dropped = [label for label in labels.output if label not in made]
    sizes = dict(zip(labels.output, result.extents, strict=True))
    order = made + dropped
    return (
        _DotAxes(
            [labels.left.index(label) for label in left_kept],
            [labels.right.index(label) for label in right_kept],
            axes,
        ),
        _Order(
            tuple(sizes[label] for label in order),
            tuple(order.index(label) for label in labels.output),
        ),
    )


def _kind(
    at: int, label: str, labels: Labels, window: Window, shapes: tuple[Shape, Shape, Shape]
) -> str:
    """What a spatial axis is in a product of matrices; empty where there is no such product."""
    left, right, result = shapes
    given = left.extents[labels.left.index(label)]
    size = right.extents[labels.right.index(label)]
    made = result.extents[labels.output.index(label)]
    stride, dilation = window.strides[at], window.lhs_dilations[at]
    padding, is_reversed = window.padding[at], bool(window.reversals[at])
    if window.rhs_dilations[at] != 1:
        return ""
    if size == 1 and dilation == 1 and stride == 1 and padding == (0, 0):
        return "left"
    if given == size == made and dilation == size and stride == size - 1 and padding == (0, 0):
        return "" if is_reversed else "batch"
    if given == size and made == 1 and dilation == 1 and padding == (0, 0):
        return "" if is_reversed else "contracted"
    if given == 1 and made == size and padding == (size - 1, size - 1) and stride == 1:
        return "right" if is_reversed else ""
    return ""
