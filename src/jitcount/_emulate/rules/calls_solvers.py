"""Linear algebra that XLA:GPU leaves to cuSOLVER, cuBLAS and cuSPARSE: LAPACK has the same here.

What a factorisation leaves open, such as the signs of singular vectors, is LAPACK's choice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount._emulate.rules.custom_calls import call, called_name, config, with_scratch
from jitcount._emulate.rules.products import Axes, Dot, product
from jitcount._emulate.translate import NotKnownError
from jitcount._emulate.writer import array
from jitcount._hlo.parser import Shape, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values, Writer

_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


def _options(context: Context) -> dict[str, str]:
    """The options of a call: ``{lower = true}``."""
    written = split(context.attributes.get("backend_config", "{}")[1:-1])
    pairs = (each.partition("=") for each in written)
    return {name.strip(): value.strip() for name, _, value in pairs}


def lapack(
    writer: Writer,
    name: str,
    operands: Sequence[Value],
    results: Sequence[Shape],
    **told: str | bool,
) -> list[Value]:
    """A call of LAPACK's, as JAX makes it on a CPU: it is told letters and truths.

    Matrices lie column by column.
    """
    element = operands[0].shape.element
    if element not in _LETTERS:
        raise NotKnownError(f"{name} of {element}")
    batch = len(operands[0].shape.extents) - (1 if name == "gtsv" else 2)
    options = ", ".join(
        f"{key} = {str(value).lower() if isinstance(value, bool) else f'{ord(value)} : ui8'}"
        for key, value in told.items()
    )
    how = (
        f'call_target_name = "lapack_{_LETTERS[element]}{name}_ffi", api_version = 4 : i32, '
        f"backend_config = {{{options}}}, "
        f"operand_layouts = [{', '.join(_layout(each.shape, batch) for each in operands)}], "
        f"result_layouts = [{', '.join(_layout(each, batch) for each in results)}]"
    )
    return writer.ops("custom_call", operands, results, how)


def _layout(shape: Shape, batch: int) -> str:
    rank = len(shape.extents)
    axes = [*range(batch, rank), *reversed(range(batch))]
    return f"dense<{axes or ''}> : tensor<{rank}xindex>"


def is_complex(value: Value) -> bool:
    """Whether an array has complex elements."""
    return value.shape.element.startswith("c")


def _is_told(context: Context, name: str) -> bool:
    return _options(context).get(name, "false") == "true"


def _triangle(context: Context) -> str:
    return "L" if _is_told(context, "lower") else "U"


@call("cusolver_potrf_ffi")
def _potrf(context: Context) -> Values:
    triangle = _triangle(context)
    return tuple(lapack(context.writer, "potrf", context.arrays, context.results, uplo=triangle))


@call("cusolver_getrf_ffi")
def _getrf(context: Context) -> Values:
    return tuple(lapack(context.writer, "getrf", context.arrays, context.results))


@call("cusolver_geqrf_ffi")
def _geqrf(context: Context) -> Values:
    return tuple(lapack(context.writer, "geqrf", context.arrays, context.results))


@call("cusolver_orgqr_ffi")
def _orgqr(context: Context) -> Values:
    name = "ungqr" if is_complex(context.arrays[0]) else "orgqr"
    return lapack(context.writer, name, context.arrays, [context.result])[0]


@call("cusolver_ormqr_ffi")
def _ormqr(context: Context) -> Values:
    """A matrix multiplied by that of some reflections, or its adjoint, from either side."""
    name = "unmqr" if is_complex(context.arrays[0]) else "ormqr"
    told = {each: _is_told(context, each) for each in ("left", "transpose")}
    return lapack(context.writer, name, context.arrays, [context.result], **told)[0]


@call("cuhybrid_geqp3")
def _geqp3(context: Context) -> Values:
    """Reflections, with the order of columns: by MAGMA, or by LAPACK itself beside the GPU."""
    return tuple(lapack(context.writer, "geqp3", context.arrays, context.results))


@call("cusolver_sytrd_ffi")
def _sytrd(context: Context) -> Values:
    """Three diagonals of a symmetric matrix, and the reflections that make them."""
    name = "hetrd" if is_complex(context.arrays[0]) else "sytrd"
    triangle = _triangle(context)
    return tuple(lapack(context.writer, name, context.arrays, context.results, uplo=triangle))


@call("cusolver_syrk_ffi")
def _syrk(context: Context) -> Values:
    """A matrix times its transpose, scaled, and another, scaled; both triangles.

    cuBLAS writes one of them, and does not round what it multiplies unless it is told to.
    """
    value, more, *scales = context.arrays
    writer, rank = context.writer, len(value.shape.extents)
    axis = rank - (2 if _is_told(context, "transpose") else 1)
    axes = Axes([(at, at) for at in range(rank - 2)], [(axis, axis)])
    highest = context.changed(attributes={"operand_precision": "{highest,highest}"})
    made = product(highest, (value, value), Dot(writer, axes))
    alpha, beta = (writer.broadcast(each, made.shape, []) for each in scales)
    return writer.apply(
        "add", writer.apply("multiply", alpha, made), writer.apply("multiply", beta, more)
    )


@call("cusolver_syevd_ffi")
def _syevd(context: Context) -> Values:
    name = "heevd" if is_complex(context.arrays[0]) else "syevd"
    letters = {"mode": "V", "uplo": _triangle(context)}
    return tuple(lapack(context.writer, name, context.arrays, context.results, **letters))


@call("cusolver_gesvd_ffi", "cusolver_gesdd_ffi", "cusolver_gesvdj_ffi", "cusolver_gesvdp_ffi")
def _gesvd(context: Context) -> Values:
    """Singular values, the left vectors, and the right ones: as rows, or by two of them columns.

    Where the matrix is wide, gesvd takes its transpose, and returns the right vectors first.
    """
    writer, results, options = context.writer, context.results, _options(context)
    name = called_name(context)
    (value,) = context.arrays
    *batch, rows, columns = value.shape.extents
    least = min(rows, columns)
    is_full = options["full_matrices"] == "true"
    has_vectors = options["compute_uv"] == "true"
    left = value.shape.replace(extents=(*batch, rows, rows if is_full else least))
    right = value.shape.replace(extents=(*batch, columns if is_full else least, columns))
    mode = ("A" if is_full else "S") if has_vectors else "N"
    shapes = [value.shape, results[1], left, right, results[4]]
    rest, values, lefts, rights, info = lapack(writer, "gesdd", [value], shapes, mode=mode)
    if not has_vectors:
        lefts, rights = (writer.full(0, each) for each in results[2:4])
    elif name in {"cusolver_gesvdj_ffi", "cusolver_gesvdp_ffi"}:
        rights = _adjoint(writer, rights)
    elif options.get("transposed") == "true":
        lefts, rights = rights, lefts
    return rest, values, lefts, rights, info


def _adjoint(writer: Writer, value: Value) -> Value:
    rank = len(value.shape.extents)
    value = writer.transpose(value, (*range(rank - 2), rank - 1, rank - 2))
    if not is_complex(value):
        return value
    part = value.shape.replace("f32" if value.shape.element == "c64" else "f64")
    real, imaginary = writer.op("real", [value], part), writer.op("imag", [value], part)
    return writer.op("complex", [real, writer.apply("negate", imaginary)], value.shape)


@call("cusparse_gtsv2_ffi")
def _gtsv(context: Context) -> Values:
    """Systems of equations with three diagonals."""
    batch = context.arrays[0].shape.extents[:-1]
    shapes = [*(each.shape for each in context.arrays), Shape("s32", batch)]
    return lapack(context.writer, "gtsv", context.arrays, shapes)[3]


@call("__cublas$triangularSolve")
def _triangular_solve(context: Context) -> Values:
    told = config(context, "triangular_solve_backend_config")

    def is_told(name: str) -> str:
        return "true" if told.get(name, False) else "false"

    how = (
        f"left_side = {is_told('left_side')}, lower = {is_told('lower')}, "
        f"transpose_a = #stablehlo<transpose {told.get('transpose_a', 'NO_TRANSPOSE')}>, "
        f"unit_diagonal = {is_told('unit_diagonal')}"
    )
    made = context.writer.op("triangular_solve", context.arrays[:2], context.results[0], how)
    return with_scratch(context, made)


# --- Permutations ---------------------------------------------------------------------------------


@call("cu_lu_pivots_to_permutation")
def _permutation(context: Context) -> Values:
    """The order of rows after each was swapped with its pivot, the first first."""
    (pivots,) = context.arrays
    made = permutation(context.writer, pivots, context.result.extents[-1])
    return context.writer.reshape(made, context.result.extents)


def permutation(writer: Writer, pivots: Value, size: int) -> Value:
    """The order of so many rows; pivots count from 0."""
    *batch, count = pivots.shape.extents
    many = math.prod(batch)
    rows, one, number = Shape("s32", (many, size)), Shape("s32", (many, 1)), Shape("s32", ())

    def goes_on(inner: Writer, state: list[Value]) -> list[Value]:
        return [inner.compare(state[0], inner.full(count, number), "LT")]

    def swap(inner: Writer, state: list[Value]) -> list[Value]:
        at, order, given = state
        how = f"slice_sizes = {array(one.extents)}"
        begin = [inner.full(0, number), at]
        pivot = inner.op("dynamic_slice", [given, *begin], one, how)
        mine = inner.op("dynamic_slice", [order, *begin], one, how)
        pivot = inner.broadcast(pivot, rows, [0, 1])
        is_pivot = inner.compare(inner.iota(rows, 1), pivot, "EQ")
        theirs = inner.select(is_pivot, order, inner.full(0, rows))
        theirs = inner.reshape(inner.reduce("add", theirs, [1]), one.extents)
        order = inner.select(is_pivot, inner.broadcast(mine, rows, [0, 1]), order)
        order = inner.op("dynamic_update_slice", [order, theirs, *begin], rows)
        return [inner.apply("add", at, inner.full(1, number)), order, given]

    given = writer.convert(writer.reshape(pivots, (many, count)), "s32")
    state = [writer.full(0, number), writer.iota(rows, 1), given]
    shapes = [value.shape for value in state]
    regions = [writer.region(shapes, goes_on), writer.region(shapes, swap)]
    made = writer.ops("while", state, shapes, regions=regions)[1]
    return writer.reshape(made, (*batch, size))
