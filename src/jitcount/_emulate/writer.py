"""Writes StableHLO as text, in its generic form: one line an operation, and nested regions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from jitcount._hlo.parser import ELEMENTS, FLOATS, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_finfo: Any = ml_dtypes.finfo  # NumPy's own does not know bfloat16 and float8; it has no types


@dataclass(frozen=True, slots=True)
class Value:
    """An array that an operation of the program returns."""

    name: str
    """Its name in the text: ``%v7``."""

    shape: Shape
    """Without a layout: how an array lies in memory is for the compiler to say."""


Values = Value | tuple["Values", ...]
"""An array, or a tuple of such."""


def flat_values(values: Values) -> list[Value]:
    """The arrays of a tuple, in order, however deep."""
    if isinstance(values, Value):
        return [values]
    return [value for each in values for value in flat_values(each)]


def like(structure: Values, values: Iterator[Value]) -> Values:
    """Other arrays in the structure of a tuple, or of an array."""
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
    """Collects the lines of one region; all regions of a program count their names together."""

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
        """An operation without operands whose result is another on each device.

        Nothing that it takes says so, and so it is written as an attribute.
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

    # --- Operations that many rules write ---------------------------------------------------------

    def apply(self, name: str, *operands: Value) -> Value:
        """An operation whose result has the shape of its first operand."""
        return self.op(name, operands, operands[0].shape)

    def constant(self, values: np.ndarray, shape: Shape) -> Value:
        """A constant, to the bit."""
        return self.op("constant", [], shape, f"value = {_dense(values)} : {shape.type}")

    def full(self, number: float, shape: Shape) -> Value:
        """An array that holds the same number everywhere."""
        return self.constant(np.full((), number, numpy_type(shape.element)), shape)

    def iota(self, shape: Shape, axis: int) -> Value:
        """An array of the places along an axis: 0, 1, 2 and so on."""
        return self.op("iota", [], shape, f"iota_dimension = {axis} : i64")

    def compare(self, one: Value, other: Value, direction: str, kind: str = "") -> Value:
        """Compare elements: ``"EQ"``, ``"LT"``; `kind` is StableHLO's, such as ``"TOTALORDER"``."""
        how = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
        if kind:
            how = f"compare_type = #stablehlo<comparison_type {kind}>, {how}"
        return self.op("compare", [one, other], one.shape.replace("pred"), how)

    def select(self, which: Value, one: Value, other: Value) -> Value:
        """Elements of `one` where `which` is true, and of `other` elsewhere."""
        return self.op("select", [which, one, other], one.shape)

    def broadcast(self, value: Value, shape: Shape, axes: Iterable[int]) -> Value:
        """An array repeated to a larger shape; `axes` are the places of its own axes there."""
        return self.op("broadcast_in_dim", [value], shape, f"broadcast_dimensions = {array(axes)}")

    def reduce(self, name: str, value: Value, axes: Sequence[int], start: float = 0) -> Value:
        """An array reduced over some axes by an operation of two elements, such as ``"add"``."""
        scalar = value.shape.replace(extents=())
        extents = tuple(e for axis, e in enumerate(value.shape.extents) if axis not in axes)
        region = self.region([scalar, scalar], lambda inner, pair: [inner.op(name, pair, scalar)])
        given = [value, self.full(start, scalar)]
        shape, how = value.shape.replace(extents=extents), f"dimensions = {array(axes)}"
        return self.op("reduce", given, shape, how, [region])

    def reshape(self, value: Value, extents: tuple[int, ...]) -> Value:
        """The same elements in the same order, with other extents."""
        if value.shape.extents == extents:
            return value
        return self.op("reshape", [value], value.shape.replace(extents=extents))

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """An array with its axes in another order."""
        if axes == tuple(range(len(axes))):
            return value
        extents = tuple(value.shape.extents[axis] for axis in axes)
        shape = value.shape.replace(extents=extents)
        return self.op("transpose", [value], shape, f"permutation = {array(axes)}")

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        """Arrays joined along an axis."""
        extents = list(values[0].shape.extents)
        extents[axis] = sum(value.shape.extents[axis] for value in values)
        shape = values[0].shape.replace(extents=tuple(extents))
        return self.op("concatenate", values, shape, f"dimension = {axis} : i64")

    def slice(self, value: Value, limits: tuple[int, ...]) -> Value:
        """The first places of each axis, up to its limit."""
        if value.shape.extents == limits:
            return value
        return self.part(value, {axis: (0, limit) for axis, limit in enumerate(limits)})

    def part(self, value: Value, taken: dict[int, tuple[int, int]]) -> Value:
        """A part of an array: for some axes, the place where it begins, and its extent there."""
        extents = value.shape.extents
        parts = [taken.get(axis, (0, extent)) for axis, extent in enumerate(extents)]
        how = (
            f"limit_indices = {array(begin + size for begin, size in parts)}, "
            f"start_indices = {array(begin for begin, _ in parts)}, "
            f"strides = {array([1] * len(extents))}"
        )
        return self.op(
            "slice", [value], value.shape.replace(extents=tuple(s for _, s in parts)), how
        )

    def taken(self, value: Value, at: int) -> Value:
        """One place along the first axis, without that axis."""
        return self.reshape(self.part(value, {0: (at, 1)}), value.shape.extents[1:])

    def pad(self, value: Value, extents: tuple[int, ...]) -> Value:
        """An array with zeros after the last place of each axis, up to some extents."""
        if value.shape.extents == extents:
            return value
        rank = len(extents)
        more = [to - of for to, of in zip(extents, value.shape.extents, strict=True)]
        how = (
            f"edge_padding_high = {array(more)}, edge_padding_low = {array([0] * rank)}, "
            f"interior_padding = {array([0] * rank)}"
        )
        zero = self.full(0, value.shape.replace(extents=()))
        return self.op("pad", [value, zero], value.shape.replace(extents=extents), how)

    def convert(self, value: Value, element: str) -> Value:
        """An array with other elements.

        To fewer bits it is rounded first, by operations that XLA does not remove as excess.
        """
        if value.shape.element == element:
            return value
        if element in _ROUNDED_TO and value.shape.element in FLOATS:
            value = value if value.shape.element == "f64" else self._plainly(value, "f32")
            value = self._rounded_to(value, element)
        return self._plainly(value, element)

    def _plainly(self, value: Value, element: str) -> Value:
        if value.shape.element == element:
            return value
        return self.op("convert", [value], value.shape.replace(element))

    def _rounded_to(self, value: Value, element: str) -> Value:
        """A float32 or float64 rounded to what a narrower type can hold, in the type that it has.

        Normal numbers lose bits of their mantissa. The denormals of a type are the whole multiples
        of its smallest one: `reduce_precision` to fewer bits of exponent would make zeros of them.
        A type without infinities has NaN beyond its largest number.
        """
        info = _finfo(numpy_type(element))
        size = self.apply("abs", value)
        made = self.rounded(value, _EXPONENTS[value.shape.element], info.nmant)
        if info.smallest_normal > _finfo(numpy_type(value.shape.element)).smallest_normal:
            smallest = float(info.smallest_subnormal)
            steps = self.apply("multiply", value, self.full(1 / smallest, value.shape))
            steps = self.apply("round_nearest_even", steps)
            denormal = self.apply("multiply", steps, self.full(smallest, value.shape))
            normal = self.full(float(info.smallest_normal), value.shape)
            made = self.select(self.compare(size, normal, "LT"), denormal, made)
        # Infinities come out of the comparison, too; NaN stays as it is.
        largest = self.full(float(info.max), value.shape)
        is_beyond = self.compare(self.apply("abs", made), largest, "GT")
        infinity = self.full(math.inf, value.shape)
        beyond = self.full(math.nan, value.shape)
        if np.isinf(np.array(math.inf).astype(numpy_type(element))):
            is_negative = self.compare(value, self.full(0, value.shape), "LT")
            beyond = self.select(is_negative, self.apply("negate", infinity), infinity)
        return self.select(is_beyond, beyond, made)

    def rounded(self, value: Value, exponent: int, mantissa: int) -> Value:
        """An array rounded to so many bits, in the type that it has."""
        how = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
        return self.op("reduce_precision", [value], value.shape, how)

    def rounded_away(self, value: Value, mantissa: int) -> Value:
        """A float32 rounded to so many bits of mantissa; what is halfway goes away from zero.

        Half of the last bit that stays is added to the bits as a whole number, and what lies below
        is cut off: a carry goes into the exponent, as it should.
        """
        shape = value.shape.replace("u32")
        drop = _MANTISSA - mantissa
        bits = self.op("bitcast_convert", [value], shape)
        bits = self.apply("add", bits, self.full(1 << (drop - 1), shape))
        kept = self.full((1 << 32) - (1 << drop), shape)
        made = self.op("bitcast_convert", [self.apply("and", bits, kept)], value.shape)
        is_finite = self.op("is_finite", [value], shape.replace("pred"))
        return self.select(is_finite, made, value)


_MANTISSA = 23  # bits of a float32's
_EXPONENTS = {"f32": 8, "f64": 11}  # bits
_ROUNDED_TO = FLOATS - {"f32", "f64"}


def _dense(values: np.ndarray) -> str:
    """A constant's value, to the bit: as hexadecimal bytes, where MLIR takes them."""
    if values.dtype == np.bool_:
        if values.ndim == 0:
            return f"dense<{str(bool(values)).lower()}>"
        return f"dense<{str(values.tolist()).lower()}>" if values.size else "dense<>"
    if values.dtype.name in {"int2", "int4", "uint2", "uint4"}:
        return f"dense<{values.astype(np.int32).tolist()}>" if values.size else "dense<>"
    if not values.size:
        return "dense<>"
    return f'dense<"0x{np.ascontiguousarray(values).tobytes().hex().upper()}">'
