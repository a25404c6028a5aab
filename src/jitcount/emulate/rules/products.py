"""Products of matrices and convolutions, with the target's rounding of their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount.emulate.arithmetic import BITS
from jitcount.emulate.rules.reducing import Window
from jitcount.emulate.shapes import NARROW, Shape, flat
from jitcount.emulate.translating import rule
from jitcount.emulate.writing import array, listed, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.emulate.arithmetic import Rounding
    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Value, Writer

    Product = Callable[[Value, Value, str], Value]
    """Of a left and a right, with elements of a type."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Which axes of a product are multiplied: pairs of a left and a right one."""

    batch: list[tuple[int, int]]
    contracted: list[tuple[int, int]]


def product(
    translation: Translation,
    writer: Writer,
    instruction: Instruction,
    given: tuple[Value, Value],
    make: Product,
) -> Value:
    """A product as the target computes it: inputs rounded, perhaps in parts, sums in float32."""
    left, right = given
    result = flat(instruction.shapes)[0]
    inner = _inner(left.shape.element, right.shape.element, result.element)
    left, right = writer.convert(left, inner), writer.convert(right, inner)
    rounding = _rounding(translation, instruction, given)
    if rounding is None or not translation.site(instruction, rounding):
        return writer.convert(make(left, right, inner), result.element)
    lefts = _parts(writer, left, rounding, max(one for one, _ in rounding.passes))
    rights = _parts(writer, right, rounding, max(other for _, other in rounding.passes))
    # The smallest first, so that the sum of the passes keeps what they add.
    total: Value | None = None
    for one, other in reversed(rounding.passes):
        made = make(lefts[one], rights[other], inner)
        total = made if total is None else writer.op("add", [total, made], made.shape)
    assert total is not None  # noqa: S101
    return writer.convert(total, result.element)


def _inner(left: str, right: str, result: str) -> str:
    """In which type products are summed: 16 bits in float32, as every matrix unit does."""
    widest = max((left, right, result), key=lambda element: Shape(element, ()).bits)
    if widest in NARROW or widest.startswith("f8"):
        return "f32"
    return result if result[0] in "suc" else widest


def _rounding(
    translation: Translation, instruction: Instruction, given: tuple[Value, Value]
) -> Rounding | None:
    elements = {value.shape.element for value in given}
    if "f32" not in elements or not elements <= {"f32", "bf16"}:
        return None
    if translation.is_in_loop and not translation.arithmetic.in_loops:
        return None
    asked = instruction.attributes.get("operand_precision", "{default}").strip("{}").split(",")
    order = ("default", "high", "highest")
    precision = max((each.strip() for each in asked), key=order.index)
    return translation.arithmetic.products.get(precision)


def _parts(writer: Writer, value: Value, rounding: Rounding, last: int) -> list[Value]:
    """A number as the sum of a few of fewer bits."""
    bits = BITS[rounding.to]
    found = [writer.rounded(value, *bits)]
    rest = value
    for _ in range(last):
        rest = writer.op("subtract", [rest, found[-1]], value.shape.of())
        found.append(writer.rounded(rest, *bits))
    return found


# --- Dots ---------------------------------------------------------------------------------------


@rule("dot")
def _dot(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    if (algorithm := instruction.attributes.get("algorithm")) is not None:
        raise ValueError(f"a product by the algorithm {algorithm}")
    if "sparsity" in instruction.attributes:
        raise ValueError("a sparse product")
    n = instruction.numbers
    axes = Axes(
        list(zip(n("lhs_batch_dims"), n("rhs_batch_dims"), strict=True)),
        list(zip(n("lhs_contracting_dims"), n("rhs_contracting_dims"), strict=True)),
    )
    left, right = operands
    return product(
        translation,
        writer,
        instruction,
        (left, right),
        lambda one, other, element: dot(writer, one, other, axes, element),
    )


def dot(writer: Writer, left: Value, right: Value, axes: Axes, element: str) -> Value:
    """A product without further rounding: batch axes, then those of the left, then the right."""
    lefts = [axis for axis, _ in axes.batch], [axis for axis, _ in axes.contracted]
    rights = [axis for _, axis in axes.batch], [axis for _, axis in axes.contracted]
    extents = [left.shape.extents[axis] for axis in lefts[0]]
    for value, taken in ((left, lefts), (right, rights)):
        used = {*taken[0], *taken[1]}
        extents += [e for axis, e in enumerate(value.shape.extents) if axis not in used]
    parts = {
        "lhs_batching_dimensions": lefts[0],
        "rhs_batching_dimensions": rights[0],
        "lhs_contracting_dimensions": lefts[1],
        "rhs_contracting_dimensions": rights[1],
    }
    numbers = ", ".join(f"{name} = {listed(axes)}" for name, axes in parts.items() if axes)
    how = (
        f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, "
        "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
    )
    return writer.op("dot_general", [left, right], Shape(element, tuple(extents)), how)


# --- Convolutions -------------------------------------------------------------------------------


@rule("convolution")
def _convolution(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    labels = Labels(instruction.attributes["dim_labels"])
    window = Window(instruction.attributes.get("window", "{}"), len(labels.spatial))
    groups = [(instruction.numbers(name) or (1,))[0] for name in _GROUPS]
    left, right = operands
    return convolution(translation, writer, instruction, (left, right), (labels, window, groups))


def convolution(
    translation: Translation,
    writer: Writer,
    instruction: Instruction,
    given: tuple[Value, Value],
    described: tuple[Labels, Window, list[int]],
) -> Value:
    """A convolution by its labels, its window, and its groups of features and of a batch."""
    labels, window, groups = described
    left, right = given
    shape = instruction.shape.of()
    as_dot = None
    if groups == [1, 1]:
        as_dot = _as_dot(labels, window, left.shape, right.shape, shape)
    if as_dot is not None:
        axes, order = as_dot

        def make(one: Value, other: Value, element: str) -> Value:
            made = dot(writer, *_without_ones(writer, one, other, axes), axes.axes, element)
            made = writer.reshape(made, order.extents)
            return writer.transpose(made, order.axes)
    else:
        how = _written(labels, window, groups)

        def make(one: Value, other: Value, element: str) -> Value:
            return writer.op("convolution", [one, other], shape.of(element), how)

    return product(translation, writer, instruction, given, make)


_GROUPS = ("feature_group_count", "batch_group_count")


class Labels:
    """Which axis is which: ``b01f_01io->b01f``."""

    def __init__(self, text: str) -> None:
        inputs, self.output = text.split("->")
        self.left, self.right = inputs.split("_")
        self.spatial = sorted(label for label in self.left if label.isdigit())

    @property
    def text(self) -> str:
        """As StableHLO writes it."""
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
    """A product that a convolution stands for; the axes that have but one place are dropped."""

    left: list[int]
    """Of the left, the axes that stay."""

    right: list[int]
    axes: Axes
    """Counted among those that stay."""


@dataclass(frozen=True, slots=True)
class _Order:
    """What the product gives, with the dropped axes, and how it is turned into the result."""

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
    kept = {
        "left": [
            label
            for label in labels.left
            if label in {*"bf", *lefts} or _in(label, batch, contracted)
        ],
        "right": [
            label
            for label in labels.right
            if label in {*"io", *rights} or _in(label, batch, contracted)
        ],
    }
    axes = Axes(
        [(kept["left"].index(one), kept["right"].index(other)) for one, other in batch],
        [(kept["left"].index(one), kept["right"].index(other)) for one, other in contracted],
    )
    # The product's axes: batch, then the left's in their order, then the right's.
    made = [one for one, _ in batch]
    made += [label for label in kept["left"] if label in lefts]
    made += ["f" if label == "o" else label for label in kept["right"] if label in rights]
    dropped = [label for label in labels.output if label not in made]
    sizes = dict(zip(labels.output, result.extents, strict=True))
    order = made + dropped
    return (
        _DotAxes(
            [labels.left.index(label) for label in kept["left"]],
            [labels.right.index(label) for label in kept["right"]],
            axes,
        ),
        _Order(
            tuple(sizes[label] for label in order),
            tuple(order.index(label) for label in labels.output),
        ),
    )


def _in(label: str, *pairs: list[tuple[str, str]]) -> bool:
    return any(label == one for each in pairs for one, _ in each)


def _kind(
    at: int, label: str, labels: Labels, window: Window, shapes: tuple[Shape, Shape, Shape]
) -> str:
    left, right, result = shapes
    given = left.extents[labels.left.index(label)]
    size = right.extents[labels.right.index(label)]
    made = result.extents[labels.output.index(label)]
    stride, dilation = window.strides[at], window.lhs_dilations[at]
    padding, is_reversed = tuple(window.padding[at]), bool(window.reversals[at])
    plain = window.rhs_dilations[at] == 1
    if not plain:
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


# --- What has a name of its own in linear algebra -----------------------------------------------


@rule("fft")
def _fft(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    kind = instruction.attributes["fft_type"]
    how = (
        f"fft_length = {array(instruction.numbers('fft_length'))}, "
        f"fft_type = #stablehlo<fft_type {kind}>"
    )
    return writer.op("fft", operands, instruction.shape.of(), how)


@rule("cholesky")
def _cholesky(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    lower = instruction.attributes.get("lower", "false")
    return writer.op("cholesky", operands, instruction.shape.of(), f"lower = {lower}")


@rule("triangular-solve")
def _triangular_solve(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    get = instruction.attributes.get
    how = (
        f"left_side = {get('left_side', 'false')}, lower = {get('lower', 'false')}, "
        f"transpose_a = #stablehlo<transpose {get('transpose_a', 'NO_TRANSPOSE')}>, "
        f"unit_diagonal = {get('unit_diagonal', 'false')}"
    )
    return writer.op("triangular_solve", operands, instruction.shape.of(), how)


@rule("rng-bit-generator")
def _random_bits(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> tuple[Value, ...]:
    """Those whose algorithm is known are the same everywhere."""
    algorithm = instruction.attributes.get("algorithm", "rng_default")
    names = {"rng_philox": "PHILOX", "rng_three_fry": "THREE_FRY"}
    if algorithm not in names or not isinstance(instruction.shapes, tuple):
        raise ValueError(f"random bits by {algorithm}, which is the hardware's own")
    how = f"rng_algorithm = #stablehlo<rng_algorithm {names[algorithm]}>"
    shapes = [shape.of() for shape in instruction.shapes if isinstance(shape, Shape)]
    return tuple(writer.ops("rng_bit_generator", operands, shapes, how))
