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
    from jitcount._emulate.other_rounding.chance import Site
    from jitcount._jax.rewriting import Array, Builder, Operation

# Roundings of the whole matrix, times the root of its size.
_ROUNDINGS = 4.0


def is_decomposition(operation: Operation) -> bool:
    """Whether an operation decomposes a matrix, or solves an equation with one."""
    if operation.name == "custom_call":
        return operation.call_target.startswith(("lapack_", "blas_"))
    return operation.name in {"cholesky", "triangular_solve"}


def moved_input(site: Site, matrix: Array) -> Array:
    """A matrix near by, or a batch of them; one with nothing beside its diagonal as it is."""
    last = min(2, len(matrix.shape))
    farthest = _ROUNDINGS * math.sqrt(max(matrix.shape[-last:]))
    return _moved(site, matrix, farthest, last, is_decomposed=last == 2)


def moved_transform(site: Site, operation: Operation, result: Array) -> Array:
    """A Fourier transform as another algorithm would have computed it."""
    lengths = numbers_in(operation.attribute("fft_length").partition(":")[2])
    steps = max(1.0, math.log2(max(2, math.prod(lengths))))
    return _moved(site, result, math.sqrt(6 * steps), len(lengths))


def _moved(
    site: Site, array: Array, farthest: float, last: int, *, is_decomposed: bool = False
) -> Array:
    """Each element moved, by a part of what the last dimensions have in the mean."""
    builder = site.builder
    parts = [array]
    if array.is_complex:
        parts = [builder.part_of(part, array) for part in ("real", "imag")]
    squares = [builder.apply("multiply", part, part) for part in parts]
    square = builder.apply("add", *squares) if len(squares) == 2 else squares[0]
    kept = len(array.shape) - last
    dimensions = list(range(kept, len(array.shape)))
    total = builder.reduce(square, 0.0, "add", dimensions)
    count = math.prod(array.shape[kept:])
    mean = builder.apply("multiply", total, builder.full(1 / max(count, 1), total))
    size = builder.broadcast(builder.apply("sqrt", mean), array.shape, list(range(kept)))
    left = builder.isnt_finite(size)
    if is_decomposed:
        left = builder.apply("or", left, _is_diagonal(builder, square))
    moved = []
    for part in parts:
        share = site.around(part, "input", farthest * unit(part.element))
        beside = builder.apply("add", part, builder.apply("multiply", size, share))
        is_zero = builder.compare(part, "EQ", builder.full(0.0, part))
        moved.append(builder.select(builder.apply("or", left, is_zero), part, beside))
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
