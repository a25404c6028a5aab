"""Products, convolutions, Fourier transforms, factorisations and complex numbers, by their size.

A factorisation is not unique, and the error of each number in it is not known beforehand; what is
known is how far the product of the factors is from the matrix, as a whole (Higham, "Accuracy and
Stability of Numerical Algorithms", chapters 8 to 10, 19 and 20). So that is what is returned, and
compared with zero, besides exact zeros and ones.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._emulate.active_target import active_target
from jitcount._numerics.expected import (
    DECLARED,
    MATMUL,
    exactly,
    within,
    within_complex,
)
from jitcount._numerics.rounding import Rounded
from jitcount._suite.arguments import binades
from jitcount._suite.data import one_sign, spread, whole
from jitcount._suite.function_cases import may_be_off
from jitcount._suite.jitted import jitted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._numerics.expected import Expected

_U = 2.0**-24
_HIGHEST = lax.Precision.HIGHEST

# --- Products -------------------------------------------------------------------------------------

_TERMS = (0, 1, 7, 129, 4097, 8200)


def _products(*arrays: Any) -> list[Any]:
    """Products of so many terms, at the highest precision: of matrices, batched, as integers."""
    found = [
        lax.dot_general(a, b, (((1,), (0,)), ((), ())), precision=_HIGHEST)
        for a, b in zip(arrays[: len(_TERMS)], arrays[len(_TERMS) : 2 * len(_TERMS)], strict=True)
    ]
    x, y, i, j = arrays[2 * len(_TERMS) :]
    return [
        *found,
        lax.dot_general(x, y, (((2,), (1,)), ((0,), (2,))), precision=_HIGHEST),
        lax.dot_general(x, x, (((0, 2), (0, 2)), ((), ())), precision=_HIGHEST),
        lax.dot_general(i, j, (((1,), (0,)), ((), ())), preferred_element_type=np.int32),
    ]


def _products_by_hand(*arrays: np.ndarray) -> list[np.ndarray]:
    wide = [one.astype(np.float64) for one in arrays]
    x, y, i, j = wide[2 * len(_TERMS) :]
    found = [wide[n] @ wide[n + len(_TERMS)] for n in range(len(_TERMS))]
    found += [np.einsum("bij,kjb->bik", x, y), np.einsum("bij,bkj->ik", x, x)]
    return [*(one.astype(np.float32) for one in found), (i @ j).astype(np.int32)]


def _factors() -> list[np.ndarray]:
    left = [whole(9, terms, most=12, seed=90) for terms in _TERMS]
    right = [whole(terms, 7, most=12, seed=91) for terms in _TERMS]
    small = [whole(3, 5, 17, most=9, seed=92), whole(6, 17, 3, most=9, seed=93)]
    ints = [
        whole(9, 129, most=100, dtype="int8", seed=94),
        whole(129, 5, most=100, dtype="int8", seed=95),
    ]
    return [*left, *right, *small, *ints]


_SPECIAL = np.array([[np.inf, 1, 2], [np.nan, 1, 1], [0, -np.inf, 3], [1, 2, 3]], np.float32)


def _convolutions(x: Any, kernel: Any) -> list[Any]:
    """Convolutions along one axis: with strides, padding, holes in both, and groups."""
    how: tuple[dict[str, Any], ...] = (
        {"window_strides": (1,), "padding": ((0, 0),)},
        {"window_strides": (2,), "padding": ((3, 1),)},
        {"window_strides": (1,), "padding": ((4, 4),), "lhs_dilation": (3,)},
        {"window_strides": (3,), "padding": ((0, 2),), "rhs_dilation": (2,)},
        {"window_strides": (1,), "padding": ((1, 1),), "feature_group_count": 2},
    )
    return [
        lax.conv_general_dilated(
            x,
            kernel[:, :2] if "feature_group_count" in each else kernel,
            precision=_HIGHEST,
            **each,
        )
        for each in how
    ]


def _convolved(
    x: np.ndarray, kernel: np.ndarray, stride: int, padding: tuple[int, int], holes: tuple[int, int]
) -> np.ndarray:
    spaced = np.zeros((*x.shape[:2], (x.shape[2] - 1) * holes[0] + 1))
    spaced[:, :, :: holes[0]] = x
    padded = np.pad(spaced, ((0, 0), (0, 0), padding))
    reach = (kernel.shape[2] - 1) * holes[1] + 1
    begins = range(0, padded.shape[2] - reach + 1, stride)
    windows = np.stack([padded[:, :, at : at + reach : holes[1]] for at in begins], 2)
    return np.einsum("bcnk,ock->bon", windows, kernel)


def _convolutions_by_hand(x: np.ndarray, kernel: np.ndarray) -> list[Expected]:
    grouped = [
        _convolved(x[:, 2 * g : 2 * g + 2], kernel[3 * g : 3 * g + 3, :2], 1, (1, 1), (1, 1))
        for g in range(2)
    ]
    found = [
        _convolved(x, kernel, 1, (0, 0), (1, 1)),
        _convolved(x, kernel, 2, (3, 1), (1, 1)),
        _convolved(x, kernel, 1, (4, 4), (3, 1)),
        _convolved(x, kernel, 3, (0, 2), (1, 2)),
        np.concatenate(grouped, 1),
    ]
    return [exactly(one.astype(np.float32)) for one in found]


# --- Fourier transforms ---------------------------------------------------------------------------

# Powers of two, a product of small primes, a prime, one, and a length past 4,096.
_LENGTHS = (1, 2, 8, 15, 31, 128, 4099)


def _transformed(*arrays: Any) -> list[Any]:
    found = []
    for x in arrays:
        (n,) = x.shape
        spectrum = lax.fft(x, "RFFT", (n,))
        found += [lax.fft(lax.complex(x, x[::-1]), "FFT", (n,)), spectrum]
        found += [lax.fft(spectrum, "IRFFT", (n,)), lax.fft(lax.complex(x, -x), "IFFT", (n,))]
    return found


def _near(values: np.ndarray, size: float, ulps: float) -> Expected:
    """The values, off by so many ulps of a size that they all came from."""
    wide = np.asarray(values)
    bound = np.full(wide.shape, ulps * 2 * _U * size)
    scale = np.full(wide.shape, max(size, 1e-30))

    def part(one: np.ndarray) -> Rounded:
        return Rounded(one, 4 * bound, bound, scale, "float32")

    if np.iscomplexobj(wide):
        return within_complex(DECLARED, part(wide.real), part(wide.imag))
    return within(DECLARED, part(wide), may=may_be_off())


def _transformed_by_hand(*arrays: np.ndarray) -> list[Expected]:
    """A fast transform is off by ulps of the root of the sum of squares, about log2(n) of them."""
    found = []
    for x in arrays:
        wide = x.astype(np.float64)
        n = len(x)
        size = float(np.sqrt(np.sum(wide**2) * 2))
        ulps = 2 + np.log2(n)
        found += [_near(np.fft.fft(wide + 1j * wide[::-1]), size, ulps)]
        found += [
            _near(np.fft.rfft(wide), size, ulps),
            _near(wide, size / np.sqrt(n) * 2, 2 * ulps),
        ]
        found += [_near(np.fft.ifft(wide - 1j * wide), size / n, ulps)]
    return found


# --- Factorisations and solutions -----------------------------------------------------------------

_SIDES = (1, 3, 33, 65)

# Roundings that follow one another add up like their root, as a rule.
_FIRST_ULPS = 3.0


def _definite(side: int) -> np.ndarray:
    """A symmetric matrix whose eigenvalues are between one and about three."""
    x = spread(side, side, dtype="float64", seed=96) / np.sqrt(side)
    return (np.eye(side) + 2 * (x @ x.T)).astype(np.float32)


def _times(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision=_HIGHEST)


def _solved(*arrays: Any) -> list[Any]:
    """How far products of factors are from their matrix, and solutions from the right side."""
    found: list[Any] = []
    for a in arrays:
        factor = lax.linalg.cholesky(a, symmetrize_input=False)
        found += [_times(factor, factor.T) - a, jnp.triu(factor, 1)]
        for how in _ways(a.shape[0]):
            matrix, b = _system(jnp, a, how)
            left, upper, turned, unit = how
            x = lax.linalg.triangular_solve(
                matrix, b, left_side=left, lower=not upper, transpose_a=turned, unit_diagonal=unit
            )
            used = matrix.T if turned else matrix
            if unit:
                used = used - jnp.diag(jnp.diag(used)) + jnp.eye(len(used), dtype=used.dtype)
            found.append((_times(used, x) if left else _times(x, used)) - b)
    return found


def _ways(side: int) -> list[tuple[bool, ...]]:
    """From the left or right, upper or lower, turned or not, with a diagonal of ones or not."""
    every = list(itertools.product((True, False), repeat=4))
    return every[:: {3: 3, 33: 7}.get(side, 15)]


def _system(module: Any, a: Any, how: tuple[bool, ...]) -> tuple[Any, Any]:
    left, upper, *_ = how
    b = a[:, :2] + 1
    return module.triu(a) if upper else module.tril(a), b if left else b.T


def _zeros(found: Sequence[tuple[tuple[int, ...], float, float]]) -> list[Expected]:
    return [_near(np.zeros(shape), size, ulps) for shape, size, ulps in found]


def _solved_by_hand(*arrays: np.ndarray) -> list[Expected]:
    found: list[Expected] = []
    for a in arrays:
        side = len(a)
        ulps = _FIRST_ULPS + np.sqrt(side)
        found += _zeros([((side, side), float(np.abs(a).max()), ulps)])
        found.append(exactly(np.zeros((side, side), np.float32)))
        for how in _ways(side):
            b = _system(np, a, how)[1]
            found += _zeros([(b.shape, 2 * float(np.abs(b).max()), ulps)])
    return found


def _factored(a: Any, general: Any) -> list[Any]:
    """How far the products of the factors are from the matrix, and from the identity."""
    packed, _, order = lax.linalg.lu(general)
    side = a.shape[0]
    eye = jnp.eye(side, dtype=a.dtype)
    lower, upper = jnp.tril(packed, -1) + eye, jnp.triu(packed)
    q, r = lax.linalg.qr(general, full_matrices=False)
    vectors, values = lax.linalg.eigh(a)
    u, s, vt = lax.linalg.svd(general, full_matrices=False)
    return [
        _times(lower, upper) - general[order],
        _times(q, r) - general,
        _times(q.T, q) - eye,
        jnp.tril(r, -1),
        _times(vectors * values, vectors.T) - a,
        jnp.sort(values) - values,
        _times(u * s, vt) - general,
        _times(vt, vt.T) - eye,
    ]


def _factored_by_hand(a: np.ndarray, general: np.ndarray) -> list[Expected]:
    square = a.shape
    size = float(np.linalg.norm(general, 2))
    ulps = 2 * (_FIRST_ULPS + np.sqrt(len(a)))
    return [
        *_zeros([(square, size * 4, ulps), (square, size, ulps), (square, 1.0, ulps)]),
        exactly(np.zeros(square, np.float32)),
        *_zeros([(square, 3.0, ulps)]),
        exactly(np.zeros(len(a), np.float32)),
        *_zeros([(square, size, ulps), (square, 1.0, ulps)]),
    ]


def _on_cpu_only() -> str:
    if active_target() or jax.devices()[0].platform != "cpu":
        return "only the CPU has all of these factorisations"
    return ""


def _reflected(packed: Any, taus: Any) -> Any:
    """The orthogonal matrix that LAPACK keeps below the diagonal, as reflections."""
    turned = lax.linalg.householder_product(packed[1:, :-1], taus)
    return jnp.zeros_like(packed).at[0, 0].set(1).at[1:, 1:].set(turned)


def _reduced(a: Any, general: Any) -> list[Any]:
    """How far similar matrices, turned back, are from the matrix that they came from."""
    packed, taus = lax.linalg.hessenberg(general)
    upper = jnp.triu(packed, -1)
    q = _reflected(packed, taus)
    triangle, vectors = lax.linalg.schur(general)
    values, right = lax.linalg.eig(general, compute_left_eigenvectors=False)
    reflections, diagonal, beside, sizes = lax.linalg.tridiagonal(a, lower=True)
    p = _reflected(reflections, sizes)
    banded = jnp.diag(diagonal) + jnp.diag(beside, -1) + jnp.diag(beside, 1)
    w = general[0]
    root = lax.linalg.cholesky(a, symmetrize_input=False)
    updated = lax.linalg.cholesky_update(root.T, w)
    square = lax.linalg.symmetric_product(general, a, alpha=2.0, beta=1.0, symmetrize_output=True)
    return [
        _times(_times(q, upper), q.T) - general,
        _times(_times(vectors, triangle), vectors.T) - general,
        jnp.abs(_times(general.astype(values.dtype), right) - right * values),
        _times(_times(p, banded), p.T) - a,
        _times(updated.T, updated) - a - w[:, None] * w,
        square - 2 * _times(general, general.T) - a,
    ]


def _reduced_by_hand(a: np.ndarray, general: np.ndarray) -> list[Expected]:
    square, size, ulps = (
        a.shape,
        float(np.linalg.norm(general, 2)),
        2 * (_FIRST_ULPS + np.sqrt(len(a))),
    )
    return _zeros(
        [
            *[(square, size, ulps)] * 3,
            *[(square, 3.0, ulps), (square, 3.0, ulps), (square, 2 * size**2, ulps)],
        ]
    )


def _without_ormqr() -> str:
    return _on_cpu_only() or (
        "" if hasattr(lax.linalg, "ormqr") else "this JAX has no lax.linalg.ormqr"
    )


def _orthogonal(general: Any, c: Any) -> list[Any]:
    """Products with an orthogonal matrix that is kept as reflections, minus those with itself."""
    packed, taus = lax.linalg.hessenberg(general)
    reflections = packed[1:, :-1]
    q = lax.linalg.householder_product(reflections, taus)
    return [
        lax.linalg.ormqr(reflections, taus, c) - _times(q, c),
        lax.linalg.ormqr(reflections, taus, c, transpose=True) - _times(q.T, c),
        lax.linalg.ormqr(reflections, taus, c.T, left=False) - _times(c.T, q),
    ]


def _tridiagonal(below: Any, middle: Any, above: Any, b: Any) -> Any:
    x = lax.linalg.tridiagonal_solve(below, middle, above, b)
    shifted = jnp.pad(x, ((1, 1), (0, 0)))
    return below[:, None] * shifted[:-2] + middle[:, None] * x + above[:, None] * shifted[2:] - b


def _diagonals() -> list[np.ndarray]:
    below, above = one_sign(33, seed=97), one_sign(33, seed=98)
    below[0] = above[-1] = 0
    return [below, 5 + one_sign(33, seed=99), above, whole(33, 2, most=9, seed=89)]


# --- Complex numbers ------------------------------------------------------------------------------

_COMPLEX: tuple[tuple[str, Callable[..., Any], Callable[..., Any]], ...] = (
    ("exp", lax.exp, np.exp),
    ("log", lax.log, np.log),
    ("sqrt", lax.sqrt, np.sqrt),
    ("rsqrt", lax.rsqrt, lambda z: 1 / np.sqrt(z)),
    ("sin", lax.sin, np.sin),
    ("cos", lax.cos, np.cos),
    ("tan", lax.tan, np.tan),
    ("sinh", lax.sinh, np.sinh),
    ("cosh", lax.cosh, np.cosh),
    ("tanh", lax.tanh, np.tanh),
    ("expm1", lax.expm1, np.expm1),
    ("log1p", lax.log1p, np.log1p),
    ("logistic", lax.logistic, lambda z: 1 / (1 + np.exp(-z))),
    ("sign", lax.sign, lambda z: z / np.abs(z)),
    ("square", lax.square, lambda z: z * z),
    ("asin", lax.asin, np.arcsin),
    ("acos", lax.acos, np.arccos),
    ("atan", lax.atan, np.arctan),
    ("asinh", lax.asinh, np.arcsinh),
    ("acosh", lax.acosh, np.arccosh),
    ("atanh", lax.atanh, np.arctanh),
    ("integer_pow", lambda z: lax.integer_pow(z, 3), lambda z: z**3),
)
_COMPLEX_OF_TWO: tuple[tuple[str, Callable[..., Any], Callable[..., Any]], ...] = (
    ("add", lax.add, np.add), ("sub", lax.sub, np.subtract), ("mul", lax.mul, np.multiply),
    ("div", lax.div, np.divide), ("pow", lax.pow, np.power),
)  # fmt: skip
_COMPLEX_ULPS = 6.0


def _planes() -> list[np.ndarray]:
    """Numbers around zero of sizes between 1/8 and 8, in all directions; not near a pole."""
    turns = 2j * np.pi * (spread(129, dtype="float64", seed=86) + 0.5)
    size = np.exp2(6 * spread(129, dtype="float64", seed=87))
    near = np.resize([1.0, 0.5, 2.0], 129) * np.exp(turns)
    every = binades(count=1, near=4)
    far = every + 1j * every[np.argsort(spread(len(every), dtype="float64", seed=104))]
    return [one.astype(np.complex64) for one in (size * np.exp(turns), near, far)]


def _of_complex(z: Any, w: Any, far: Any) -> list[Any]:
    exact = [
        *(lax.real(far), lax.imag(far), lax.conj(far), lax.neg(far), lax.eq(z, w), lax.ne(z, z)),
        lax.complex(lax.imag(far), lax.real(far)),
    ]
    near = [compute(z) for _, compute, _ in _COMPLEX]
    near += [compute(z, w) for _, compute, _ in _COMPLEX_OF_TWO]
    return [*exact, lax.abs(z), jnp.stack(near)]


def _cancelling(z: np.ndarray) -> dict[str, np.ndarray]:
    """The sizes that roundings have in functions that are made of sums of exponentials.

    These cancel near the zeros of sinh and cosh, and near the poles of what is divided by them.
    """
    upright, across = np.cosh(z.real), np.cosh(z.imag)
    return {
        "sinh": upright,
        "cosh": upright,
        "tanh": np.abs(np.tanh(z) / np.cosh(z)) * upright,
        "tan": np.abs(np.tan(z) / np.cos(z)) * across,
        "logistic": (1 + np.abs(np.exp(-z))) / np.abs(1 + np.exp(-z)) ** 2,
    }


def _of_complex_by_hand(z: np.ndarray, w: np.ndarray, far: np.ndarray) -> list[Expected]:
    wide, other = z.astype(np.complex128), w.astype(np.complex128)
    turned = (far.imag + 1j * far.real).astype(np.complex64)
    exact = [far.real, far.imag, far.conj(), -far, z == w, z != z, turned]  # noqa: PLR0124
    values = [reference(wide) for _, _, reference in _COMPLEX]
    values += [reference(wide, other) for _, _, reference in _COMPLEX_OF_TWO]
    near = np.stack(values)
    # As a whole, not each part: nothing is promised of the smaller part of a complex number.
    size = np.abs(near)
    cancelling = _cancelling(wide)
    for row, (name, *_) in enumerate(_COMPLEX):
        size[row] = np.maximum(size[row], cancelling.get(name, 0.0))
    ulps = np.full((len(near), 1), _COMPLEX_ULPS)
    bound = 2 * _U * ulps * size
    size_of = np.abs(wide)
    return [
        *(exactly(np.array(one)) for one in exact),
        within(DECLARED, Rounded(size_of, 8 * _U * size_of, 8 * _U * size_of, size_of, "float32")),
        within_complex(
            DECLARED,
            *(Rounded(part, 2 * bound, bound, size, "float32") for part in (near.real, near.imag)),
        ),
    ]


ALGEBRA_CASES = (
    jitted(
        "op-dot-general",
        "products of 0, 1, around a tile, and more than 4,096 terms; batched; of whole numbers",
        _products,
        _factors,
        lambda *arrays: [exactly(one) for one in _products_by_hand(*arrays)],
    ),
    jitted(
        "op-dot-specials",
        "infinities and NaN in a product reach what they are in, and nothing else",
        # Not in the highest precision: a TPU multiplies in pieces then: inf has inf - inf.
        lambda x: lax.dot(x, np.ones((3, 2), np.float32)),
        (_SPECIAL,),
        lambda x: exactly(np.repeat(x.sum(1, keepdims=True), 2, 1)),
    ),
    jitted(
        "op-dot-rounded",
        "products of 4,097 numbers between 1 and 2",
        _times,
        lambda: [one_sign(3, 4097, seed=88), one_sign(4097, 5, seed=85)],
        lambda a, b: within(MATMUL, Rounded.exactly(a).matmul(Rounded.exactly(b), ulps=2.0)),
    ),
    jitted(
        "op-conv-general-dilated",
        "convolutions with strides, holes, padding and groups",
        _convolutions,
        lambda: [whole(2, 4, 37, most=9, seed=83), whole(6, 4, 5, most=9, seed=84)],
        _convolutions_by_hand,
    ),
    jitted(
        "op-fft",
        "Fourier transforms and back, of lengths with all kinds of factors",
        _transformed,
        lambda: [spread(length, seed=82) for length in _LENGTHS],
        _transformed_by_hand,
    ),
    jitted(
        "op-cholesky-triangular-solve",
        "Cholesky factors and triangular systems, from either side, turned or not",
        _solved,
        lambda: [_definite(side) for side in _SIDES],
        _solved_by_hand,
    ),
    jitted(
        "op-factorisations",
        "LU, QR, eigenvalues and singular values: the factors multiply to the matrix",
        _factored,
        lambda: [_definite(33), spread(33, 33, seed=100)],
        _factored_by_hand,
    ),
    replace(
        jitted(
            "op-similar",
            "Hessenberg, Schur, eigenvalue and tridiagonal forms, turned back; updated factors",
            _reduced,
            lambda: [_definite(17), spread(17, 17, seed=101)],
            _reduced_by_hand,
        ),
        unsupported=_on_cpu_only,
    ),
    replace(
        jitted(
            "op-ormqr",
            "products with reflections, from either side",
            _orthogonal,
            lambda: [spread(18, 18, seed=102), spread(17, 3, seed=103)],
            lambda _, c: _zeros([(shape, 1.0, 4.0) for shape in (c.shape, c.shape, c.T.shape)]),
        ),
        unsupported=_without_ormqr,
    ),
    jitted(
        "op-tridiagonal-solve",
        "systems with three diagonals",
        _tridiagonal,
        _diagonals,
        lambda *arrays: _near(np.zeros(arrays[-1].shape), 16.0, 8.0),
    ),
    jitted(
        "op-complex",
        "every function of complex numbers, near zero and far from poles",
        _of_complex,
        _planes,
        _of_complex_by_hand,
    ),
)
