"""Linear algebra that XLA:TPU leaves to kernels of its own.

XLA writes the blocked algorithm around them as operations; a kernel factorises a block. It returns
what XLA's own expansions of the same operations do (``qr_expander``, ``eigh_expander`` and
``triangular_solve_expander``), which XLA:TPU cuts at that place. All are in float32. A complex
block is taken and returned as two, its real and its imaginary part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.rules.calls_solvers import is_complex, lapack, permutation
from jitcount._emulate.rules.custom_calls import call, called_name
from jitcount._hlo.parser import Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values, Writer


def _whole(context: Context) -> Value:
    """The block that a kernel takes; a complex one is joined of its two parts."""
    if len(context.arrays) == 1:
        return context.arrays[0]
    real, imaginary = context.arrays
    return context.writer.op("complex", [real, imaginary], real.shape.replace("c64"))


def _parts(writer: Writer, value: Value) -> list[Value]:
    if not is_complex(value):
        return [value]
    return [writer.op(name, [value], value.shape.replace("f32")) for name in ("real", "imag")]


def _returned(context: Context, made: list[Value]) -> Values:
    """What a kernel returns: complex arrays as their parts."""
    made = [part for each in made for part in _parts(context.writer, each)]
    if context.results != [value.shape for value in made]:
        raise ValueError(f"{context.attributes['custom_call_target']} with other results")
    return context.structured(made)


@call("Cholesky")
def _cholesky(context: Context) -> Values:
    value = _whole(context)
    made = context.writer.op("cholesky", [value], value.shape, "lower = true")
    return _returned(context, [made])


@call("LuDecompositionBlock", "LuRealDecompositionBlock", "LuComplexDecompositionBlock")
def _lu(context: Context) -> Values:
    """Both factors in one, the pivots from 0, and the order of rows that they make."""
    writer, value = context.writer, _whole(context)
    *batch, rows, columns = value.shape.extents
    pivots = Shape("s32", (*batch, min(rows, columns)))
    shapes = [value.shape, pivots, Shape("s32", tuple(batch))]
    factors, from_one, _ = lapack(writer, "getrf", [value], shapes)
    from_zero = writer.apply("subtract", from_one, writer.full(1, pivots))
    order = permutation(writer, from_zero, rows)
    return _returned(context, [factors, from_zero, order])


@call("QrDecompositionBlock")
def _qr(context: Context) -> Values:
    """The reflections below the diagonal, with what lies on and above it, and their factors."""
    value = _whole(context)
    *batch, rows, columns = value.shape.extents
    factors = value.shape.replace(extents=(*batch, min(rows, columns)))
    return _returned(context, lapack(context.writer, "geqrf", [value], [value.shape, factors]))


@call("CompactWyHelper")
def _compact(context: Context) -> Values:
    """Reflections as one: T with column j equal to (T up to j, then ones on the diagonal) M[:, j].

    With M = D + S, its diagonal and what is above it, that is T = T S + D: a triangular system.
    """
    writer, value = context.writer, _whole(context)
    is_diagonal, is_above = (_where(writer, value.shape, each) for each in ("EQ", "LT"))
    zero = writer.full(0, value.shape)
    diagonal = writer.select(is_diagonal, value, zero)
    above = writer.select(is_above, value, zero)
    ones = writer.select(is_diagonal, writer.full(1, value.shape), zero)
    system = writer.apply("subtract", ones, above)
    how = (
        "left_side = false, lower = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, "
        "unit_diagonal = true"
    )
    return _returned(context, [writer.op("triangular_solve", [system, diagonal], value.shape, how)])


@call("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular")
def _inverse(context: Context) -> Values:
    writer, value = context.writer, _whole(context)
    is_diagonal = _where(writer, value.shape, "EQ")
    one, zero = writer.full(1, value.shape), writer.full(0, value.shape)
    ones = writer.select(is_diagonal, one, zero)
    is_lower = "Lower" in called_name(context)
    how = (
        f"left_side = true, lower = {str(is_lower).lower()}, "
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false"
    )
    return _returned(context, [writer.op("triangular_solve", [value, ones], value.shape, how)])


@call("EighTpu")
def _eigh(context: Context) -> Values:
    """A symmetric matrix in quarters: its values in halves, its vectors as rows in quarters.

    The order is free, as XLA sorts them; but where the last row stands alone it must stay the last:
    so XLA pads a matrix of odd size, and cuts that row off again. Here it is lifted above all
    others for as long.
    """
    writer, arrays = context.writer, context.arrays
    rank = len(arrays[0].shape.extents)
    *batch, half, _ = arrays[0].shape.extents
    halves = [writer.concatenate(each, rank - 1) for each in (arrays[:2], arrays[2:])]
    value = writer.concatenate(halves, rank - 2)
    lift, last = _lift(writer, value)
    value = writer.apply("add", value, lift)
    values = value.shape.replace(extents=(*batch, 2 * half))
    shapes = [value.shape, values, Shape("s32", tuple(batch))]
    vectors, found, _ = lapack(writer, "syevd", [value], shapes, mode="V", uplo="L")
    found = writer.apply("subtract", found, last)
    vectors = writer.transpose(vectors, (*range(rank - 2), rank - 1, rank - 2))
    made = [writer.part(found, {rank - 2: (at, half)}) for at in (0, half)]
    made += [
        writer.part(vectors, {rank - 2: (row, half), rank - 1: (column, half)})
        for row in (0, half)
        for column in (0, half)
    ]
    return _returned(context, made)


def _lift(writer: Writer, value: Value) -> tuple[Value, Value]:
    """What to add to the last of a diagonal, and to take from the last value again."""
    shape, rank = value.shape, len(value.shape.extents)
    size = writer.apply("abs", value)
    is_last_row = _is_last(writer, shape, rank - 2)
    is_diagonal = _where(writer, shape, "EQ")
    is_beside = writer.apply("and", is_last_row, writer.apply("not", is_diagonal))
    zero = writer.full(0, shape)
    both = [rank - 2, rank - 1]
    beside = writer.reduce("add", writer.select(is_beside, size, zero), both)
    none = writer.full(0, beside.shape)
    is_alone = writer.compare(beside, none, "EQ")
    total = writer.reduce("add", size, both)
    much = writer.apply("multiply", total, writer.full(2, total.shape))
    much = writer.select(is_alone, much, none)
    is_corner = writer.apply("and", is_last_row, is_diagonal)
    lift = writer.select(is_corner, writer.broadcast(much, shape, range(rank - 2)), zero)
    values = shape.replace(extents=shape.extents[:-1])
    is_last = _is_last(writer, values, rank - 2)
    last = writer.broadcast(much, values, range(rank - 2))
    return lift, writer.select(is_last, last, writer.full(0, values))


def _where(writer: Writer, shape: Shape, direction: str) -> Value:
    """The places of matrices where the row's number compares so with the column's."""
    rank = len(shape.extents)
    row, column = (writer.iota(shape.replace("s32"), axis) for axis in (rank - 2, rank - 1))
    return writer.compare(row, column, direction)


def _is_last(writer: Writer, shape: Shape, axis: int) -> Value:
    """The last places along an axis."""
    found = writer.iota(shape.replace("s32"), axis)
    return writer.compare(found, writer.full(shape.extents[axis] - 1, found.shape), "EQ")
