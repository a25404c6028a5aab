"""Decompositions and solvers: the input moves; transforms: the output.

What LAPACK returns is the exact answer to a problem near by. How near, its authors say: some
roundings of the matrix as a whole. So it is the input that is moved, by so much; a zero stays one,
and a symmetric matrix symmetric, since equal numbers move alike. Of a Fourier transform each result
is off by a part of what all of them are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount._emulate.other_rounding.formats import unit
from jitcount._jax.rewriting import numbers_in

if TYPE_CHECKING:
    from jitcount._emulate.other_rounding.chance import Chance
    from jitcount._jax.rewriting import Array, Builder, Operation

# Roundings of the whole matrix, times the root of its size.
_ROUNDINGS = 4.0


def is_decomposition(operation: Operation) -> bool:
    """Whether an operation decomposes a matrix, or solves an equation with one."""
    if operation.name == "custom_call":
        return operation.call_target.startswith(("lapack_", "blas_"))
    return operation.name in {"cholesky", "triangular_solve"}


def moved_input(builder: Builder, chance: Chance, place: int, matrix: Array) -> Array:
    """A matrix near by, or a batch of them."""
    rows = matrix.shape[-2] if len(matrix.shape) > 1 else 1
    columns = matrix.shape[-1]
    farthest = _ROUNDINGS * math.sqrt(max(rows, columns))
    return _moved(builder, chance, place, matrix, farthest, last=2, is_diagonal_kept=True)


def moved_transform(
    builder: Builder, chance: Chance, place: int, operation: Operation, result: Array
) -> Array:
    """A Fourier transform as another algorithm would have computed it."""
    lengths = numbers_in(operation.attribute("fft_length").partition(":")[2])
    steps = max(1.0, math.log2(max(2, math.prod(lengths))))
    return _moved(builder, chance, place, result, math.sqrt(6 * steps), last=len(lengths))


def _moved(
    builder: Builder,
    chance: Chance,
    place: int,
    array: Array,
    farthest: float,
    *,
    last: int,
    is_diagonal_kept: bool = False,
) -> Array:
    """Each element moved, by a part of what the last dimensions have in the mean."""
    last = min(last, len(array.shape))
    if array.is_complex:
        element = array.element[len("complex<") : -1]
        parts = [builder.apply(part, array, element=element) for part in ("real", "imag")]
    else:
        parts = [array]
    squares = [builder.apply("multiply", part, part) for part in parts]
    square = builder.apply("add", *squares) if len(squares) == 2 else squares[0]
    kept = len(array.shape) - last
    dimensions = list(range(kept, len(array.shape)))
    total = builder.reduce(square, 0.0, "add", dimensions) if dimensions else square
    count = math.prod(array.shape[kept:])
    mean = builder.apply("multiply", total, builder.full(1 / max(count, 1), total))
    size = builder.broadcast(builder.apply("sqrt", mean), array.shape, list(range(kept)))
    moved = []
    for at, part in enumerate(parts):
        share = chance.spread(builder, part, "input", farthest * unit(part.element), place + at)
        beside = builder.apply("add", part, builder.apply("multiply", size, share))
        is_zero = builder.compare(part, "EQ", builder.full(0.0, part))
        is_known = builder.apply("is_finite", size, element="i1")
        left = builder.apply("or", is_zero, builder.apply("not", is_known))
        if is_diagonal_kept and last == 2:
            left = builder.apply("or", left, _is_diagonal(builder, square))
        moved.append(builder.select(left, part, beside))
    return moved[0] if len(moved) == 1 else builder.apply("complex", *moved, element=array.element)


def _is_diagonal(builder: Builder, squares: Array) -> Array:
    """Where a matrix has nothing beside its diagonal: there is nothing to compute."""
    row, column = (builder.iota(squares.shape, len(squares.shape) - back) for back in (2, 1))
    zeros = builder.full(0.0, squares)
    on_it = builder.compare(row, "EQ", column)
    beside = builder.select(on_it, zeros, squares)
    dimensions = [len(squares.shape) - 2, len(squares.shape) - 1]
    largest = builder.reduce(beside, 0.0, "maximum", dimensions)
    whole = builder.broadcast(largest, squares.shape, list(range(len(squares.shape) - 2)))
    return builder.compare(whole, "EQ", zeros)
