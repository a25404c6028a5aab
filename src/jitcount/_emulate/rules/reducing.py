"""Operations that make one element of many: reductions and windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._emulate.rules.perturb import perturbed_sum
from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array, table
from jitcount._hlo.parser import NARROW, Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values


@rule("reduce")
def _reduce(context: Context) -> Values:
    return _reduced(context, f"dimensions = {array(context.numbers('dimensions'))}")


@rule("reduce-window")
def _reduce_window(context: Context) -> Values:
    window = _window(context)
    how = (
        f"base_dilations = {array(window.lhs_dilations)}, "
        f"padding = {table(window.padding, 2)}, "
        f"window_dilations = {array(window.rhs_dilations)}, "
        f"window_dimensions = {array(window.sizes)}, "
        f"window_strides = {array(window.strides)}"
    )
    return _reduced(context, how)


def _reduced(context: Context, how: str) -> Values:
    """A reduction of any number of arrays, each with its first value.

    Sums of 16 bits are of float32, and rounded once: XLA:TPU leaves out the conversions around such
    a reduction because its hardware adds so.
    """
    writer, translation, results = context.writer, context.translation, context.results
    computation = translation.module.computations[context.called("to_apply")]
    count = len(results)
    elements = [widened(each.shape.element) for each in computation.parameters[:count]]
    given = [writer.convert(each, elements[i % count]) for i, each in enumerate(context.arrays)]
    shapes = [shape.replace(element) for shape, element in zip(results, elements, strict=True)]
    scalars = [Shape(element, ()) for element in elements * 2]
    with translation.wide():
        region = writer.region(scalars, context.region("to_apply"))
    name = context.opcode.replace("-", "_")
    made = writer.ops(name, given, shapes, how, [region])
    root = computation.root
    is_sum = count == 1 and root.opcode == "add" and root.shape.element not in {"c64", "c128"}
    if translation.perturbation_seed and is_sum:
        sizes = [writer.apply("abs", each) for each in given]
        (magnitudes,) = writer.ops(name, sizes, shapes, how, [region])
        # A window may cover a whole axis, and then has as many terms as that.
        longest = max(given[0].shape.extents, default=1)
        terms = max(given[0].shape.size // max(shapes[0].size, 1), longest)
        made = [perturbed_sum(context, made[0], magnitudes, terms)]
    pairs = zip(made, results, strict=True)
    return context.structured([writer.convert(each, shape.element) for each, shape in pairs])


def widened(element: str) -> str:
    """The type in which elements of a type are added up."""
    return "f32" if element in NARROW else element


@rule("select-and-scatter")
def _select_and_scatter(context: Context) -> Value:
    writer, window = context.writer, _window(context)
    how = (
        f"padding = {table(window.padding, 2)}, "
        f"window_dimensions = {array(window.sizes)}, "
        f"window_strides = {array(window.strides)}"
    )
    scalar = context.arrays[0].shape.replace(extents=())
    regions = [
        writer.region([scalar, scalar], context.region(name)) for name in ("select", "scatter")
    ]
    return writer.op("select_and_scatter", context.arrays, context.result, how, regions)


def _window(context: Context) -> Window:
    rank = len(context.arrays[0].shape.extents)
    return Window.parse(context.attributes["window"], rank)


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves over an array; each field has an entry for each axis."""

    sizes: list[int]
    strides: list[int]
    lhs_dilations: list[int]
    rhs_dilations: list[int]
    reversals: list[int]
    padding: list[tuple[int, int]]

    @classmethod
    def parse(cls, text: str, rank: int) -> Window:
        """Read ``{size=3x3 stride=2x2 pad=1_1x0_0}``; what is not written does nothing."""
        inner = text.strip()[1:-1]
        parts = dict(part.split("=", 1) for part in inner.split()) if inner else {}

        def each(name: str, default: int) -> list[int]:
            written = parts.get(name)
            return [int(n) for n in written.split("x")] if written else [default] * rank

        pads = [part.split("_") for part in parts.get("pad", "").split("x") if part]
        return cls(
            each("size", 1),
            each("stride", 1),
            each("lhs_dilate", 1),
            each("rhs_dilate", 1),
            each("rhs_reversal", 0),
            [(int(low), int(high)) for low, high in pads] or [(0, 0)] * rank,
        )
