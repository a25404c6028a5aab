"""Products of matrices as StableHLO writes them, without further rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount.emulate.shapes import Shape
from jitcount.emulate.writing import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.emulate.writing import Value, Writer


@dataclass(frozen=True, slots=True)
class Axes:
    """Which axes of a product are multiplied: pairs of a left and a right one."""

    batch: list[tuple[int, int]]
    contracted: list[tuple[int, int]]


def _as_they_are(left: Value, right: Value) -> tuple[Value, Value]:
    return left, right


def _as_it_is(made: Value) -> Value:
    return made


@dataclass(frozen=True, slots=True)
class Dot:
    """How a product of matrices is made, of two values or of many at once."""

    writer: Writer
    axes: Axes
    before: Callable[[Value, Value], tuple[Value, Value]] = _as_they_are
    """What the axes are counted in."""

    after: Callable[[Value], Value] = _as_it_is
    """How the result is to be."""

    def __call__(self, left: Value, right: Value, element: str) -> Value:
        """Of two values."""
        return self.after(dot(self.writer, *self.before(left, right), self.axes, element))


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
