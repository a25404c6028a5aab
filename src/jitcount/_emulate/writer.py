"""Writes StableHLO as text, in its generic form: one line an operation, and nested regions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from jitcount._hlo.parser import ELEMENTS, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Value:
    """What an operation gave."""

    name: str
    shape: Shape


Values = Value | tuple["Values", ...]
"""An array, or a tuple of such."""


def flat_values(values: Values) -> list[Value]:
    """The arrays of a tuple, in order, however deep."""
    if isinstance(values, Value):
        return [values]
    return [value for each in values for value in flat_values(each)]


def like(structure: Values, values: Iterator[Value]) -> Values:
    """Other arrays in the same structure."""
    if isinstance(structure, Value):
        return next(values)
    return tuple(like(each, values) for each in structure)


def array(numbers: Iterable[int]) -> str:
    """A list of numbers, as an attribute."""
    written = ", ".join(map(str, numbers))
    return f"array<i64: {written}>" if written else "array<i64>"


def listed(numbers: Iterable[int]) -> str:
    """A list of numbers, inside an attribute."""
    return f"[{', '.join(map(str, numbers))}]"


def table(rows: Sequence[Sequence[int]], columns: int) -> str:
    """A matrix of numbers, as an attribute."""
    written = f"[{', '.join(listed(row) for row in rows)}]"
    return f"dense<{written if rows else ''}> : tensor<{len(rows)}x{columns}xi64>"


_NUMPY = {
    "pred": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
    **{f"s{bits}": np.dtype(f"int{bits}").type for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}").type for bits in (8, 16, 32, 64)},
    **{name: getattr(ml_dtypes, f"int{name[1:]}") for name in ("s4", "s2")},
    **{name: getattr(ml_dtypes, f"uint{name[1:]}") for name in ("u4", "u2")},
    **{
        name: getattr(ml_dtypes, name.replace("f8", "float8_")) for name in ELEMENTS if "f8" in name
    },
}


def numpy_type(element: str) -> np.dtype:
    """The NumPy dtype of an element type."""
    return np.dtype(_NUMPY[element])


@dataclass(slots=True)
class Writer:
    """Collects the lines of one region; names are its whole program's."""

    names: Iterator[int] = field(default_factory=itertools.count)
    lines: list[str] = field(default_factory=list)

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        result: Shape,
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> Value:
        """An operation with one result."""
        return self.ops(name, operands, [result], attributes, regions)[0]

    def ops(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[Shape],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> list[Value]:
        """An operation with any number of results."""
        name = name if "." in name else f"stablehlo.{name}"
        made = f"%v{next(self.names)}"
        head = f"{made}:{len(results)} = " if len(results) != 1 else f"{made} = "
        given = ", ".join(operand.name for operand in operands)
        held = f" <{{{attributes}}}>" if attributes else ""
        nested = f" ({', '.join(regions)})" if regions else ""
        types = ", ".join(operand.shape.type for operand in operands)
        back = ", ".join(shape.type for shape in results)
        back = back if len(results) == 1 else f"({back})"
        head = head if results else ""
        self.lines.append(f'{head}"{name}"({given}){held}{nested} : ({types}) -> {back}')
        if len(results) == 1:
            return [Value(made, results[0])]
        return [Value(f"{made}#{i}", shape) for i, shape in enumerate(results)]

    def manual(self, name: str, result: Shape) -> Value:
        """An operation without operands that is another on each device.

        Which it is follows from nothing that it takes: so it is written.
        """
        made = f"%v{next(self.names)}"
        how = '{mhlo.sharding = "{manual}"}'
        self.lines.append(f'{made} = "stablehlo.{name}"() {how} : () -> {result.type}')
        return Value(made, result)

    def region(
        self, parameters: Sequence[Shape], body: Callable[[Writer, list[Value]], Sequence[Value]]
    ) -> str:
        """A region of an operation; `body` writes into it, and says what it returns."""
        inner = Writer(self.names)
        values = [Value(f"%v{next(self.names)}", shape) for shape in parameters]
        returned = body(inner, values)
        heads = ", ".join(f"{value.name}: {value.shape.type}" for value in values)
        given = ", ".join(value.name for value in returned)
        types = ", ".join(value.shape.type for value in returned)
        inner.lines.append(f'"stablehlo.return"({given}) : ({types}) -> ()')
        first = f"^bb0({heads}):\n" if values else ""
        return "{\n" + first + "\n".join(inner.lines) + "\n}"

    # --- What many rules need -------------------------------------------------------------------

    def constant(self, values: np.ndarray, shape: Shape) -> Value:
        """A constant, to the bit."""
        return self.op("constant", [], shape, f"value = {_dense(values)} : {shape.type}")

    def full(self, number: float, shape: Shape) -> Value:
        """The same number everywhere."""
        return self.constant(np.full((), number, numpy_type(shape.element)), shape)

    def reshape(self, value: Value, extents: tuple[int, ...]) -> Value:
        """The same elements in the same order."""
        if value.shape.extents == extents:
            return value
        return self.op("reshape", [value], value.shape.of(extents=extents))

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """Axes in another order."""
        if axes == tuple(range(len(axes))):
            return value
        extents = tuple(value.shape.extents[axis] for axis in axes)
        shape = value.shape.of(extents=extents)
        return self.op("transpose", [value], shape, f"permutation = {array(axes)}")

    def slice(self, value: Value, limits: tuple[int, ...]) -> Value:
        """The first of each axis."""
        if value.shape.extents == limits:
            return value
        rank = len(limits)
        how = (
            f"limit_indices = {array(limits)}, start_indices = {array([0] * rank)}, "
            f"strides = {array([1] * rank)}"
        )
        return self.op("slice", [value], value.shape.of(extents=limits), how)

    def taken(self, value: Value, at: int) -> Value:
        """One of those along the first axis, which goes."""
        extents = value.shape.extents
        how = (
            f"limit_indices = {array([at + 1, *extents[1:]])}, "
            f"start_indices = {array([at, *[0] * (len(extents) - 1)])}, "
            f"strides = {array([1] * len(extents))}"
        )
        made = self.op("slice", [value], value.shape.of(extents=(1, *extents[1:])), how)
        return self.reshape(made, extents[1:])

    def pad(self, value: Value, extents: tuple[int, ...]) -> Value:
        """Zeros behind the last of each axis."""
        if value.shape.extents == extents:
            return value
        rank = len(extents)
        more = [to - of for to, of in zip(extents, value.shape.extents, strict=True)]
        how = (
            f"edge_padding_high = {array(more)}, edge_padding_low = {array([0] * rank)}, "
            f"interior_padding = {array([0] * rank)}"
        )
        zero = self.full(0, value.shape.of(extents=()))
        return self.op("pad", [value, zero], value.shape.of(extents=extents), how)

    def convert(self, value: Value, element: str) -> Value:
        """Other elements; a rounding that is written must not be taken away as excess."""
        if value.shape.element == element:
            return value
        bits = PRECISIONS.get(element)
        if bits is not None and value.shape.element in _WIDER.get(element, ()):
            value = self.rounded(value, *bits)
        return self.op("convert", [value], value.shape.of(element))

    def rounded(self, value: Value, exponent: int, mantissa: int) -> Value:
        """Rounded to so many bits, in the type that it has."""
        how = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
        return self.op("reduce_precision", [value], value.shape.of(), how)

    def rounded_away(self, value: Value, mantissa: int) -> Value:
        """A float32 rounded to so many bits of mantissa; what is halfway goes away from zero.

        Half of the last bit that stays is added to the bits as a whole number, and what lies below
        is cut off: a carry goes into the exponent, as it should.
        """
        shape = value.shape.of("u32")
        drop = _MANTISSA - mantissa
        bits = self.op("bitcast_convert", [value], shape)
        bits = self.op("add", [bits, self.full(1 << (drop - 1), shape)], shape)
        kept = self.full((1 << 32) - (1 << drop), shape)
        made = self.op("bitcast_convert", [self.op("and", [bits, kept], shape)], value.shape.of())
        is_finite = self.op("is_finite", [value], shape.of("pred"))
        return self.op("select", [is_finite, made, value], value.shape.of())


_MANTISSA = 23  # bits of a float32's
PRECISIONS = {"bf16": (8, 7), "f16": (5, 10)}
_WIDER = {"bf16": {"f32", "f64"}, "f16": {"f32", "f64"}}


def _dense(values: np.ndarray) -> str:
    """To the bit: as hexadecimal bytes, but for booleans."""
    if values.dtype == np.bool_:
        if values.ndim == 0:
            return f"dense<{str(bool(values)).lower()}>"
        return f"dense<{str(values.tolist()).lower()}>" if values.size else "dense<>"
    if values.dtype.name in {"int2", "int4", "uint2", "uint4"}:
        return f"dense<{values.astype(np.int32).tolist()}>" if values.size else "dense<>"
    if not values.size:
        return "dense<>"
    return f'dense<"0x{np.ascontiguousarray(values).tobytes().hex().upper()}">'
