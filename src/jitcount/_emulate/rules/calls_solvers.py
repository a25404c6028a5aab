"""Linear algebra that XLA:GPU leaves to cuSOLVER, cuBLAS and cuSPARSE: LAPACK has the same here.

What a factorisation leaves open, such as the signs of singular vectors, is LAPACK's choice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount._emulate.rules.custom_calls import beside, call, config
from jitcount._emulate.translate import NotKnownError
from jitcount._emulate.writer import array
from jitcount._hlo.parser import Shape, flat, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction

_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


def _told(instruction: Instruction) -> dict[str, str]:
    """What a call is told: ``{lower = true}``."""
    written = split(instruction.attributes.get("backend_config", "{}")[1:-1])
    pairs = (each.partition("=") for each in written)
    return {name.strip(): value.strip() for name, _, value in pairs}


def lapack(
    writer: Writer,
    name: str,
    operands: Sequence[Value],
    results: Sequence[Shape],
    **letters: str,
) -> list[Value]:
    """A call of LAPACK's, as JAX makes it on a CPU; matrices lie column by column."""
    element = operands[0].shape.element
    if element not in _LETTERS:
        raise NotKnownError(f"{name} of {element}")
    batch = len(operands[0].shape.extents) - (1 if name == "gtsv" else 2)
    told = ", ".join(f"{key} = {ord(letter)} : ui8" for key, letter in letters.items())
    how = (
        f'call_target_name = "lapack_{_LETTERS[element]}{name}_ffi", api_version = 4 : i32, '
        f"backend_config = {{{told}}}, "
        f"operand_layouts = [{', '.join(_layout(each.shape, batch) for each in operands)}], "
        f"result_layouts = [{', '.join(_layout(each, batch) for each in results)}]"
    )
    return writer.ops("custom_call", operands, [each.of() for each in results], how)


def _layout(shape: Shape, batch: int) -> str:
    rank = len(shape.extents)
    axes = [*range(batch, rank), *reversed(range(batch))]
    return f"dense<{axes or ''}> : tensor<{rank}xindex>"


def is_complex(value: Value) -> bool:
    """Whether its elements are."""
    return value.shape.element.startswith("c")


def _triangle(instruction: Instruction) -> str:
    return "L" if _told(instruction).get("lower", "false") == "true" else "U"


@call("cusolver_potrf_ffi")
def _potrf(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    results = flat(instruction.shapes)
    return tuple(lapack(writer, "potrf", operands, results, uplo=_triangle(instruction)))


@call("cusolver_getrf_ffi")
def _getrf(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    return tuple(lapack(writer, "getrf", operands, flat(instruction.shapes)))


@call("cusolver_geqrf_ffi")
def _geqrf(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    return tuple(lapack(writer, "geqrf", operands, flat(instruction.shapes)))


@call("cusolver_orgqr_ffi")
def _orgqr(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    name = "ungqr" if is_complex(operands[0]) else "orgqr"
    return lapack(writer, name, operands, [instruction.shape])[0]


@call("cusolver_syevd_ffi")
def _syevd(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    name = "heevd" if is_complex(operands[0]) else "syevd"
    results = flat(instruction.shapes)
    return tuple(
        lapack(writer, name, operands, results, mode="V", uplo=_triangle(instruction)),
    )


@call("cusolver_gesvd_ffi", "cusolver_gesdd_ffi", "cusolver_gesvdj_ffi", "cusolver_gesvdp_ffi")
def _gesvd(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """Singular values, the left vectors, and the right ones: as rows, or by two of them columns.

    Where the matrix is wide, gesvd is given its transpose, and gives the right vectors first.
    """
    told = _told(instruction)
    name = instruction.attributes["custom_call_target"].strip('"')
    results = flat(instruction.shapes)
    (value,) = operands
    *batch, rows, columns = value.shape.extents
    least = min(rows, columns)
    is_full = told["full_matrices"] == "true"
    has_vectors = told["compute_uv"] == "true"
    left = value.shape.of(extents=(*batch, rows, rows if is_full else least))
    right = value.shape.of(extents=(*batch, columns if is_full else least, columns))
    mode = ("A" if is_full else "S") if has_vectors else "N"
    shapes = [value.shape, results[1], left, right, results[4]]
    rest, values, lefts, rights, info = lapack(writer, "gesdd", operands, shapes, mode=mode)
    if not has_vectors:
        lefts, rights = (writer.full(0, each.of()) for each in results[2:4])
    elif name in {"cusolver_gesvdj_ffi", "cusolver_gesvdp_ffi"}:
        rights = _adjoint(writer, rights)
    elif told.get("transposed") == "true":
        lefts, rights = rights, lefts
    return rest, values, lefts, rights, info


def _adjoint(writer: Writer, value: Value) -> Value:
    rank = len(value.shape.extents)
    value = writer.transpose(value, (*range(rank - 2), rank - 1, rank - 2))
    if not is_complex(value):
        return value
    part = value.shape.of("f32" if value.shape.element == "c64" else "f64")
    real, imaginary = writer.op("real", [value], part), writer.op("imag", [value], part)
    return writer.op("complex", [real, writer.op("negate", [imaginary], part)], value.shape)


@call("cusparse_gtsv2_ffi")
def _gtsv(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """Systems of equations with three diagonals."""
    batch = operands[0].shape.extents[:-1]
    shapes = [*(each.shape for each in operands), Shape("s32", batch)]
    return lapack(writer, "gtsv", operands, shapes)[3]


@call("__cublas$triangularSolve")
def _triangular_solve(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    told = config(instruction, "triangular_solve_backend_config")

    def is_told(name: str) -> str:
        return "true" if told.get(name, False) else "false"

    how = (
        f"left_side = {is_told('left_side')}, lower = {is_told('lower')}, "
        f"transpose_a = #stablehlo<transpose {told.get('transpose_a', 'NO_TRANSPOSE')}>, "
        f"unit_diagonal = {is_told('unit_diagonal')}"
    )
    shape = flat(instruction.shapes)[0].of()
    made = writer.op("triangular_solve", operands[:2], shape, how)
    return beside(writer, made, instruction.shapes)


# --- Permutations ---------------------------------------------------------------------------------


@call("cu_lu_pivots_to_permutation")
def _permutation(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """The order of rows after each was swapped with its pivot, the first first."""
    (pivots,) = operands
    made = permutation(writer, pivots, instruction.shape.extents[-1])
    return writer.reshape(made, instruction.shape.extents)


def permutation(writer: Writer, pivots: Value, size: int) -> Value:
    """The order of so many rows; pivots count from 0."""
    *batch, count = pivots.shape.extents
    many = math.prod(batch)
    rows, one = Shape("s32", (many, size)), Shape("s32", (many, 1))
    number, truth = Shape("s32", ()), Shape("pred", ())
    places = f"iota_dimension = {1} : i64"
    compared = "comparison_direction = #stablehlo<comparison_direction {}>"

    def goes_on(inner: Writer, state: list[Value]) -> list[Value]:
        last = inner.full(count, number)
        return [inner.op("compare", [state[0], last], truth, compared.format("LT"))]

    def swap(inner: Writer, state: list[Value]) -> list[Value]:
        at, order, given = state
        how = f"slice_sizes = {array(one.extents)}"
        begin = [inner.full(0, number), at]
        pivot = inner.op("dynamic_slice", [given, *begin], one, how)
        mine = inner.op("dynamic_slice", [order, *begin], one, how)
        spread = f"broadcast_dimensions = {array([0, 1])}"
        pivot = inner.op("broadcast_in_dim", [pivot], rows, spread)
        place = inner.op("iota", [], rows, places)
        is_there = inner.op("compare", [place, pivot], rows.of("pred"), compared.format("EQ"))
        theirs = inner.op("select", [is_there, order, inner.full(0, rows)], rows)
        add = inner.region([number, number], lambda deep, both: [deep.op("add", both, number)])
        theirs = inner.op(
            "reduce",
            [theirs, inner.full(0, number)],
            Shape("s32", (many,)),
            f"dimensions = {array([1])}",
            [add],
        )
        theirs = inner.reshape(theirs, one.extents)
        mine = inner.op("broadcast_in_dim", [mine], rows, spread)
        order = inner.op("select", [is_there, mine, order], rows)
        order = inner.op("dynamic_update_slice", [order, theirs, *begin], rows)
        return [inner.op("add", [at, inner.full(1, number)], number), order, given]

    given = writer.convert(writer.reshape(pivots, (many, count)), "s32")
    state = [writer.full(0, number), writer.op("iota", [], rows, places), given]
    shapes = [value.shape for value in state]
    regions = [writer.region(shapes, goes_on), writer.region(shapes, swap)]
    made = writer.ops("while", state, shapes, regions=regions)[1]
    return writer.reshape(made, (*batch, size))
