"""Linear algebra that XLA:TPU leaves to kernels of its own.

XLA writes the blocked algorithm around them as operations; a kernel factorises a block. What each
gives is what XLA's own expansions of the same operations give (``qr_expander``, ``eigh_expander``
and ``triangular_solve_expander``), which XLA:TPU cuts at that place. All are in float32. A complex
block comes as two, its real and its imaginary part, and goes so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.rules.calls_solvers import is_complex, lapack, permutation
from jitcount._emulate.rules.custom_calls import call
from jitcount._emulate.writer import array
from jitcount._hlo.parser import Shape, flat

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction


def _joined(writer: Writer, operands: list[Value]) -> Value:
    if len(operands) == 1:
        return operands[0]
    real, imaginary = operands
    return writer.op("complex", [real, imaginary], real.shape.of("c64"))


def _parts(writer: Writer, value: Value) -> list[Value]:
    if not is_complex(value):
        return [value]
    return [writer.op(name, [value], value.shape.of("f32")) for name in ("real", "imag")]


def _as_given(instruction: Instruction, made: list[Value]) -> Values:
    wanted = [shape.of() for shape in flat(instruction.shapes)]
    if wanted != [value.shape for value in made]:
        raise ValueError(f"{instruction.attributes['custom_call_target']} with other results")
    return tuple(made) if isinstance(instruction.shapes, tuple) else made[0]


@call("Cholesky")
def _cholesky(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    value = _joined(writer, operands)
    made = writer.op("cholesky", [value], value.shape, "lower = true")
    return _as_given(instruction, _parts(writer, made))


@call("LuDecompositionBlock", "LuRealDecompositionBlock", "LuComplexDecompositionBlock")
def _lu(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """Both factors in one, the pivots from 0, and the order of rows that they make."""
    value = _joined(writer, operands)
    *batch, rows, columns = value.shape.extents
    pivots = Shape("s32", (*batch, min(rows, columns)))
    shapes = [value.shape, pivots, Shape("s32", tuple(batch))]
    factors, from_one, _ = lapack(writer, "getrf", [value], shapes)
    from_zero = writer.op("subtract", [from_one, writer.full(1, pivots)], pivots)
    order = permutation(writer, from_zero, rows)
    return _as_given(instruction, [*_parts(writer, factors), from_zero, order])


@call("QrDecompositionBlock")
def _qr(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """The reflections below the diagonal, with what lies on and above it, and their factors."""
    value = _joined(writer, operands)
    *batch, rows, columns = value.shape.extents
    factors = value.shape.of(extents=(*batch, min(rows, columns)))
    made = lapack(writer, "geqrf", [value], [value.shape, factors])
    return _as_given(instruction, [part for each in made for part in _parts(writer, each)])


@call("CompactWyHelper")
def _compact(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """Reflections as one: T with column j equal to (T up to j, then ones on the diagonal) M[:, j].

    With M = D + S, its diagonal and what is above it, that is T = T S + D: a triangular system.
    """
    value = _joined(writer, operands)
    is_diagonal, is_above = _places(writer, value.shape, "EQ"), _places(writer, value.shape, "LT")
    zero = writer.full(0, value.shape)
    diagonal = writer.op("select", [is_diagonal, value, zero], value.shape)
    above = writer.op("select", [is_above, value, zero], value.shape)
    ones = writer.op("select", [is_diagonal, writer.full(1, value.shape), zero], value.shape)
    system = writer.op("subtract", [ones, above], value.shape)
    how = (
        "left_side = false, lower = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, "
        "unit_diagonal = true"
    )
    made = writer.op("triangular_solve", [system, diagonal], value.shape, how)
    return _as_given(instruction, _parts(writer, made))


@call("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular")
def _inverse(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    value = _joined(writer, operands)
    is_diagonal = _places(writer, value.shape, "EQ")
    one, zero = writer.full(1, value.shape), writer.full(0, value.shape)
    ones = writer.op("select", [is_diagonal, one, zero], value.shape)
    is_lower = "Lower" in instruction.attributes["custom_call_target"]
    how = (
        f"left_side = true, lower = {str(is_lower).lower()}, "
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false"
    )
    made = writer.op("triangular_solve", [value, ones], value.shape, how)
    return _as_given(instruction, _parts(writer, made))


@call("EighTpu")
def _eigh(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """Of a symmetric matrix in quarters: its values in halves, its vectors as rows in quarters.

    The order is free, as XLA sorts them; but where the last row stands alone it must stay the last:
    so XLA pads a matrix of odd size, and cuts that row off again. Here it is lifted above all
    others for as long.
    """
    top = [operands[0], operands[1]]
    rank = len(top[0].shape.extents)
    *batch, half, _ = top[0].shape.extents
    halves = [_together(writer, each, rank - 1) for each in (top, operands[2:])]
    value = _together(writer, halves, rank - 2)
    lift, last = _lift(writer, value)
    value = writer.op("add", [value, lift], value.shape)
    values = value.shape.of(extents=(*batch, 2 * half))
    shapes = [value.shape, values, Shape("s32", tuple(batch))]
    vectors, found, _ = lapack(writer, "syevd", [value], shapes, mode="V", uplo="L")
    found = writer.op("subtract", [found, last], values)
    vectors = writer.transpose(vectors, (*range(rank - 2), rank - 1, rank - 2))
    made = [_part(writer, found, {rank - 2: (at, half)}) for at in (0, half)]
    made += [
        _part(writer, vectors, {rank - 2: (row, half), rank - 1: (column, half)})
        for row in (0, half)
        for column in (0, half)
    ]
    return _as_given(instruction, made)


def _lift(writer: Writer, value: Value) -> tuple[Value, Value]:
    """What to add to the last of a diagonal, and to take from the last value again."""
    shape = value.shape
    rank, size = len(shape.extents), shape.extents[-1]
    number = shape.of(extents=())
    batch = shape.of(extents=shape.extents[:-2])
    size_of = writer.op("abs", [value], shape)

    def total(of: Value) -> Value:
        add = writer.region([number, number], lambda deep, both: [deep.op("add", both, number)])
        how = f"dimensions = {array([rank - 2, rank - 1])}"
        return writer.op("reduce", [of, writer.full(0, number)], batch, how, [add])

    is_last_row = _is_at(writer, shape, rank - 2, size - 1)
    is_diagonal = _places(writer, shape, "EQ")
    is_beside = writer.op(
        "and", [is_last_row, writer.op("not", [is_diagonal], shape.of("pred"))], shape.of("pred")
    )
    zero = writer.full(0, shape)
    beside = total(writer.op("select", [is_beside, size_of, zero], shape))
    how = "comparison_direction = #stablehlo<comparison_direction EQ>"
    none = writer.full(0, batch)
    is_alone = writer.op("compare", [beside, none], batch.of("pred"), how)
    much = writer.op("multiply", [total(size_of), writer.full(2, batch)], batch)
    much = writer.op("select", [is_alone, much, none], batch)

    def spread(to: Shape) -> Value:
        how = f"broadcast_dimensions = {array(range(rank - 2))}"
        return writer.op("broadcast_in_dim", [much], to, how)

    is_corner = writer.op("and", [is_last_row, is_diagonal], shape.of("pred"))
    lift = writer.op("select", [is_corner, spread(shape), zero], shape)
    values = shape.of(extents=shape.extents[:-1])
    is_last = _is_at(writer, values, rank - 2, size - 1)
    return lift, writer.op("select", [is_last, spread(values), writer.full(0, values)], values)


def _places(writer: Writer, shape: Shape, direction: str) -> Value:
    """Where in matrices the row compares so with the column."""
    rank = len(shape.extents)
    row, column = (
        writer.op("iota", [], shape.of("s32"), f"iota_dimension = {axis} : i64")
        for axis in (rank - 2, rank - 1)
    )
    how = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    return writer.op("compare", [row, column], shape.of("pred"), how)


def _is_at(writer: Writer, shape: Shape, axis: int, place: int) -> Value:
    there = shape.of("s32")
    found = writer.op("iota", [], there, f"iota_dimension = {axis} : i64")
    how = "comparison_direction = #stablehlo<comparison_direction EQ>"
    return writer.op("compare", [found, writer.full(place, there)], shape.of("pred"), how)


def _together(writer: Writer, values: list[Value], axis: int) -> Value:
    extents = list(values[0].shape.extents)
    extents[axis] = sum(value.shape.extents[axis] for value in values)
    shape = values[0].shape.of(extents=tuple(extents))
    return writer.op("concatenate", values, shape, f"dimension = {axis} : i64")


def _part(writer: Writer, value: Value, taken: dict[int, tuple[int, int]]) -> Value:
    """Of some axes so many places from one on."""
    extents = value.shape.extents
    begins = [taken.get(axis, (0, 0))[0] for axis in range(len(extents))]
    sizes = [taken.get(axis, (0, extent))[1] for axis, extent in enumerate(extents)]
    ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]
    how = (
        f"limit_indices = {array(ends)}, start_indices = {array(begins)}, "
        f"strides = {array([1] * len(extents))}"
    )
    return writer.op("slice", [value], value.shape.of(extents=tuple(sizes)), how)
