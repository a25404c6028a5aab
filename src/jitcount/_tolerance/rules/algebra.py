"""Linear algebra and Fourier transforms.

What LAPACK and its like return is right for a matrix near the one that was given: that much the
matrix is moved in each draw. Vectors that are right with either sign get one at random: a result
that depends on it has no tolerance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from jitcount._tolerance.lanes import FIRST_DRAW, NEAREST, format_of
from jitcount._tolerance.rules.rule import NotFollowedError, dtype_of, rule, same_lanes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._tolerance.lanes import Lanes
    from jitcount._tolerance.rules.rule import Compute

# How far off a factorisation's matrix is, in units of √n roundings of its elements' size.
_BACKWARD = 4.0


def _moved(lanes: Lanes, matrix: np.ndarray, dtype: str, *, symmetric: bool = False) -> np.ndarray:
    """A matrix as a factorisation may have seen it: another one near it in each draw."""
    n = max(matrix.shape[-2:])
    size = np.sqrt(np.mean(np.abs(matrix[:1]) ** 2, (-1, -2), keepdims=True))
    deviation = np.where(np.isfinite(size), size, 0.0) * _BACKWARD * math.sqrt(n)
    moved = lanes.scattered(np.array(matrix), deviation * format_of(dtype).unit)
    if symmetric:
        return (moved + np.conj(np.swapaxes(moved, -1, -2))) / 2
    return moved


def _each(compute: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """Compute one matrix after another; NaN for those that cannot be factorised."""
    lead = arrays[0].shape[:-2]
    flat = [array.reshape(-1, *array.shape[-2:]) for array in arrays]
    found: list[tuple[np.ndarray, ...]] = []
    for matrices in zip(*flat, strict=True):
        try:
            with np.errstate(all="ignore"):
                made = compute(*matrices)
        except (np.linalg.LinAlgError, ValueError):
            shapes = compute(*(np.eye(*one.shape, dtype=one.dtype) for one in matrices))
            made = [
                np.full_like(one, np.nan) if one.dtype.kind in "fc" else np.zeros_like(one)
                for one in (shapes if isinstance(shapes, tuple) else (shapes,))
            ]
        found.append(tuple(made) if isinstance(made, tuple | list) else (made,))
    return [
        np.stack(column).reshape(*lead, *column[0].shape) for column in zip(*found, strict=True)
    ]


@rule("cholesky")
def _cholesky(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])

    def compute(lanes: Lanes, matrix: np.ndarray) -> np.ndarray:
        moved = _moved(lanes, matrix, dtype, symmetric=True)
        return lanes.rounded(_each(np.linalg.cholesky, moved)[0], dtype)

    return compute


@rule("triangular_solve")
def _triangular_solve(equation: Any) -> Compute:
    given, dtype = equation.params, dtype_of(equation.outvars[0])

    def compute(lanes: Lanes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a = np.tril(a) if given["lower"] else np.triu(a)
        if given["unit_diagonal"]:
            a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
        # A triangular system is solved rightly for a matrix that differs little in each element.
        unit = format_of(dtype).unit * math.sqrt(a.shape[-1])
        deviation = np.where(np.isfinite(a[:1]), np.abs(a[:1]), 0.0) * unit
        a = lanes.scattered(np.array(a), deviation)
        if given["transpose_a"]:
            a = np.swapaxes(a, -1, -2)
        if given["conjugate_a"]:
            a = np.conj(a)
        a, b = same_lanes([a, b])
        if given["left_side"]:
            solved = _solved(a, b)
        else:
            solved = np.swapaxes(_solved(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
        return lanes.rounded(np.array(solved), dtype)

    return compute


def _solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return np.asarray(np.linalg.solve(a, b))
    except np.linalg.LinAlgError:
        return _each(np.linalg.solve, a, b)[0]


@rule("lu")
def _lu(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    whole = equation.outvars[1].aval.dtype

    def factorised(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        factors, pivots = scipy.linalg.lu_factor(matrix, check_finite=False)
        order = np.arange(matrix.shape[0])
        for at, pivot in enumerate(pivots):
            order[[at, pivot]] = order[[pivot, at]]
        return factors, pivots[:, None].astype(whole), order[:, None].astype(whole)

    def compute(lanes: Lanes, matrix: np.ndarray) -> Any:
        factors, pivots, order = _each(factorised, _moved(lanes, matrix, dtype))
        return (
            lanes.rounded(factors, dtype),
            lanes.settled(pivots[..., 0], "the choice of a pivot"),
            lanes.settled(order[..., 0], "the choice of a pivot"),
        )

    return compute


@rule("lu_pivots_to_permutation")
def _permutation(equation: Any) -> Compute:
    size = equation.params["permutation_size"]

    def compute(lanes: Lanes, pivots: np.ndarray) -> np.ndarray:
        order = np.broadcast_to(np.arange(size), (*pivots.shape[:-1], size)).copy()
        flat, rows = order.reshape(-1, size), pivots.reshape(-1, pivots.shape[-1])
        for one, swaps in zip(flat, rows, strict=True):
            for at, pivot in enumerate(swaps):
                one[[at, pivot]] = one[[pivot, at]]
        return order.astype(equation.outvars[0].aval.dtype)

    return compute


@rule("geqrf")
def _geqrf(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])

    def factorised(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        (packed, taus), _ = scipy.linalg.qr(matrix, mode="raw", check_finite=False)
        return packed, taus[:, None]

    def compute(lanes: Lanes, matrix: np.ndarray) -> Any:
        packed, taus = _each(factorised, _moved(lanes, matrix, dtype))
        return lanes.rounded(packed, dtype), lanes.rounded(np.array(taus[..., 0]), dtype)

    return compute


@rule("householder_product")
def _householder_product(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])

    def compute(lanes: Lanes, packed: np.ndarray, taus: np.ndarray) -> np.ndarray:
        rows, columns = packed.shape[-2:]
        identity = np.broadcast_to(np.eye(rows, columns, dtype=packed.dtype), packed.shape)
        return _after_reflections(lanes, _reflected(packed, taus, identity, reverse=True), dtype)

    return compute


@rule("ormqr")
def _ormqr(equation: Any) -> Compute:
    """A matrix times the orthogonal one of a factorisation, which is made of reflections."""
    given, dtype = equation.params, dtype_of(equation.outvars[0])

    def compute(lanes: Lanes, packed: np.ndarray, taus: np.ndarray, c: np.ndarray) -> np.ndarray:
        transposes = given["transpose"]
        if not given["left"]:
            c, transposes = np.conj(np.swapaxes(c, -1, -2)), not transposes
        taus = np.conj(taus) if transposes else taus
        made = _reflected(packed, taus, c, reverse=not transposes)
        if not given["left"]:
            made = np.conj(np.swapaxes(made, -1, -2))
        return _after_reflections(lanes, made, dtype)

    return compute


def _reflected(
    packed: np.ndarray, taus: np.ndarray, matrix: np.ndarray, *, reverse: bool
) -> np.ndarray:
    """A matrix after the reflections of a factorisation, the last one first or last."""
    packed, taus, made = same_lanes([packed, taus, matrix])
    rows = packed.shape[-2]
    lower = np.tril(packed, -1) + np.eye(rows, packed.shape[-1])
    order = range(taus.shape[-1])
    for at in reversed(order) if reverse else order:
        v = lower[..., :, at : at + 1]
        made = made - taus[..., at, None, None] * v @ (np.conj(np.swapaxes(v, -1, -2)) @ made)
    return np.array(made)


def _after_reflections(lanes: Lanes, made: np.ndarray, dtype: str) -> np.ndarray:
    """Reflections keep the norm of each column, and round by a part of it."""
    norm = np.sqrt(np.sum(np.abs(made[:1]) ** 2, -2, keepdims=True))
    return lanes.rounded(lanes.scattered(made, norm * format_of(dtype).unit), dtype)


@rule("qr")
def _qr(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    mode: Any = "complete" if equation.params["full_matrices"] else "reduced"

    def compute(lanes: Lanes, matrix: np.ndarray) -> Any:
        found = np.linalg.qr(_moved(lanes, matrix, dtype), mode)
        made = [lanes.rounded(np.array(part), dtype) for part in found]
        if len(equation.outvars) > len(made):  # with pivoting
            raise NotFollowedError("qr with pivoting has no rule")
        return made

    return compute


# --- Eigenvalues and singular values --------------------------------------------------------------


def _signs(lanes: Lanes, shape: tuple[int, ...], words: str) -> np.ndarray:
    """A sign for each vector: any is right, so each draw has its own."""
    signs = np.ones(shape)
    drawn = signs[FIRST_DRAW:]
    drawn[...] = np.where(lanes.normals(drawn.size).reshape(drawn.shape) < 0, -1.0, 1.0)
    if drawn.size:
        lanes.flip(words, (signs != signs[:1]).reshape(len(signs), -1).any(1))
    return signs


def _aligned(vectors: np.ndarray) -> np.ndarray:
    """The signs that turn each lane's vectors towards those of the reference."""
    along = np.sum(np.conj(vectors[:1]) * vectors, -2).real
    return np.where(along < 0, -1.0, 1.0)


@rule("eigh")
def _eigh(equation: Any) -> Compute:
    lower = equation.params["lower"]
    # Vectors come first, values second.
    dtype, real = map(dtype_of, equation.outvars)

    def compute(lanes: Lanes, matrix: np.ndarray) -> Any:
        half = np.tril(matrix) if lower else np.triu(matrix)
        rest = np.tril(half, -1) if lower else np.triu(half, 1)
        moved = _moved(lanes, half + np.conj(np.swapaxes(rest, -1, -2)), dtype, symmetric=True)
        values, vectors = _each_eigh(moved)
        turned = vectors * _aligned(vectors)[..., None, :]
        signs = _signs(lanes, values.shape, "the sign of an eigenvector")
        vectors = turned * signs[..., None, :]
        return lanes.rounded(vectors, dtype), lanes.rounded(values, real)

    return compute


def _each_eigh(matrix: np.ndarray) -> list[np.ndarray]:
    def factorised(one: np.ndarray) -> tuple[np.ndarray, ...]:
        values, vectors = np.linalg.eigh(one)
        return values[:, None], vectors

    values, vectors = _each(factorised, matrix)
    return [values[..., 0], vectors]


@rule("svd")
def _svd(equation: Any) -> Compute:
    given = equation.params
    dtype = dtype_of(equation.invars[0])
    real = dtype_of(equation.outvars[0])

    def factorised(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        u, s, v = np.linalg.svd(matrix, full_matrices=given["full_matrices"])
        return s[:, None], u, v

    def compute(lanes: Lanes, matrix: np.ndarray) -> Any:
        s, u, v = _each(factorised, _moved(lanes, matrix, dtype))
        values = lanes.rounded(np.array(s[..., 0]), real)
        if not given["compute_uv"]:
            return (values,)
        count = values.shape[-1]
        toward = _aligned(u)
        signs = _signs(lanes, toward.shape, "the sign of a singular vector")
        turn = toward * signs
        u = u * turn[..., None, :]
        v[..., :count, :] = v[..., :count, :] * turn[..., :count, None]
        return values, lanes.rounded(u, dtype), lanes.rounded(v, dtype)

    return compute


# --- Others ---------------------------------------------------------------------------------------


@rule("tridiagonal_solve")
def _tridiagonal_solve(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])

    def compute(lanes: Lanes, *bands: np.ndarray) -> np.ndarray:
        low, mid, high, b = same_lanes(list(bands))
        n = mid.shape[-1]
        at = np.arange(n)
        matrix = np.zeros((*mid.shape, n), mid.dtype)
        matrix[..., at, at] = mid
        matrix[..., at[1:], at[:-1]] = low[..., 1:]
        matrix[..., at[:-1], at[1:]] = high[..., :-1]
        deviation = np.abs(matrix[:1]) * format_of(dtype).unit * 4
        return lanes.rounded(np.array(_solved(lanes.scattered(matrix, deviation), b)), dtype)

    return compute


@rule("fft")
def _fft(equation: Any) -> Compute:
    given, dtype = equation.params, dtype_of(equation.outvars[0])
    kind = str(getattr(given["fft_type"], "name", given["fft_type"])).rpartition(".")[2].upper()
    kind = {"0": "FFT", "1": "IFFT", "2": "RFFT", "3": "IRFFT"}.get(kind, kind)
    lengths = given["fft_lengths"]
    transform: Any = {
        "FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn,
    }[kind]  # fmt: skip
    axes = tuple(range(-len(lengths), 0))
    size = math.prod(lengths)
    is_inverse = kind in ("IFFT", "IRFFT")

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        made = np.array(transform(x, s=lengths, axes=axes))
        if size < 2 or not made.size:
            return made
        norm = np.sqrt(np.sum(np.abs(x[:1]) ** 2, axes, keepdims=True))
        if kind == "IRFFT":
            norm = norm * math.sqrt(2)
        steps = math.sqrt(math.log2(size)) / (size if is_inverse else 1)
        moved = lanes.scattered(made, norm * steps * format_of(dtype).unit)
        moved[NEAREST] = made[0]
        return lanes.rounded(moved, dtype)

    return compute
