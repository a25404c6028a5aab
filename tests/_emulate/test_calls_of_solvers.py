"""Calls of a target's linear algebra, as its compiler wrote them: each gives what it stands for."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jitcount._emulate.translate import NotKnownError, translate
from tests._emulate.test_custom_calls import module, normal, run

pytestmark = pytest.mark.thorough

close = np.testing.assert_allclose
TOLD: dict[str, Any] = {"rtol": 2e-4, "atol": 2e-4}


@pytest.fixture(autouse=True, scope="module")
def _lapack_is_there() -> None:
    """JAX loads LAPACK when it first lowers a call of it; a user's program has done so."""
    jax.jit(jnp.linalg.cholesky).lower(jnp.eye(2))


def symmetric(*batch: int, size: int, positive: float = 0) -> np.ndarray:
    value = normal(*batch, size, size)
    return (value + np.swapaxes(value, -1, -2) + positive * np.eye(size)).astype(np.float32)


def matrices(*extents: int, element: str, seed: int) -> np.ndarray:
    imaginary = 1j * normal(*extents, seed=seed + 10) if element == "c64" else np.float32(0)
    return np.asarray(normal(*extents, seed=seed) + imaginary)


def order_of(pivots: np.ndarray, size: int) -> np.ndarray:
    found = np.arange(size)
    for at, pivot in enumerate(pivots):
        found[[at, pivot]] = found[[pivot, at]]
    return found


def transposed(value: np.ndarray) -> np.ndarray:
    return np.swapaxes(value, -1, -2)


# --- NVIDIA's -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [True, False])
def test_potrf(lower: bool) -> None:  # noqa: FBT001
    value = symmetric(2, size=5, positive=20)
    text = module(
        "(f32[2,5,5]{1,2,0}, s32[2]{0})",
        "f32[2,5,5]{1,2,0}",
        target="cusolver_potrf_ffi",
        rest=f", backend_config={{lower = {str(lower).lower()}}}",
    )
    made, info = run(text, value)
    factor = np.tril(made) if lower else transposed(np.triu(made))
    close(factor @ transposed(factor), value, **TOLD)
    assert info.tolist() == [0, 0]


def test_potrf_says_where_a_matrix_is_not_positive() -> None:
    text = module(
        "(f32[2,2]{0,1}, s32[])",
        "f32[2,2]{0,1}",
        target="cusolver_potrf_ffi",
        rest=", backend_config={lower = true}",
    )
    _, info = run(text, np.diag([1, -1]).astype(np.float32))
    assert info == 2


def test_getrf_and_the_order_of_rows() -> None:
    value = normal(2, 7, 5)
    text = module(
        "(f32[2,7,5]{1,2,0}, s32[2,5]{1,0}, s32[2]{0})",
        "f32[2,7,5]{1,2,0}",
        target="cusolver_getrf_ffi",
        rest=", backend_config={}",
    )
    factors, pivots, info = run(text, value)
    text = module(
        "s32[2,7]{1,0}", "s32[2,5]{1,0}", target="cu_lu_pivots_to_permutation", rest=_EMPTY
    )
    (orders,) = run(text, pivots - 1)
    for matrix, both, order, pivot in zip(value, factors, orders, pivots, strict=True):
        assert order.tolist() == order_of(pivot - 1, 7).tolist()
        close((np.tril(both, -1) + np.eye(7, 5)) @ np.triu(both[:5]), matrix[order], **TOLD)
    assert info.tolist() == [0, 0]


_EMPTY = ", backend_config={}"


@pytest.mark.parametrize("element", ["f32", "c64"])
def test_geqrf_and_orgqr(element: str) -> None:
    value = normal(7, 5) if element == "f32" else normal(7, 5) + 1j * normal(7, 5, seed=1)
    shapes = f"{element}[7,5]{{0,1}}", f"{element}[5]{{0}}"
    text = module(f"({', '.join(shapes)})", shapes[0], target="cusolver_geqrf_ffi", rest=_EMPTY)
    packed, factors = run(text, value)
    text = module(shapes[0], *shapes, target="cusolver_orgqr_ffi", rest=_EMPTY)
    (made,) = run(text, packed, factors)
    close(made @ np.triu(packed[:5]), value, **TOLD)
    close(made.conj().T @ made, np.eye(5), **TOLD)


@pytest.mark.parametrize("element", ["f32", "c64"])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_ormqr(left: bool, transpose: bool, element: str) -> None:  # noqa: FBT001
    value = matrices(7, 7, element=element, seed=0)
    other = matrices(7, 7, element=element, seed=1)
    packed, factors = np.linalg.qr(value, mode="raw")
    q = np.linalg.qr(value, mode="complete")[0]
    told = f"left = {str(left).lower()}, transpose = {str(transpose).lower()}"
    matrix = f"{element}[7,7]{{0,1}}"
    text = module(
        matrix, matrix, f"{element}[7]{{0}}", matrix, target="cusolver_ormqr_ffi",
        rest=f", backend_config={{{told}}}",
    )  # fmt: skip
    (made,) = run(text, packed.T, factors, other)
    q = q.conj().T if transpose else q
    close(made, q @ other if left else other @ q, **TOLD)


def test_geqp3_takes_the_largest_column_first() -> None:
    value = normal(2, 7, 5)
    shapes = "f32[2,7,5]{1,2,0}", "s32[2,5]{1,0}"
    text = module(
        f"({', '.join(shapes)}, f32[2,5]{{1,0}})",
        *shapes,
        target="cuhybrid_geqp3",
        rest=', backend_config={magma = "auto"}',
    )
    packed, order, _ = run(text, value, np.zeros((2, 5), np.int32))
    for matrix, triangle, columns in zip(value, np.triu(packed[:, :5]), order - 1, strict=True):
        assert sorted(columns) == list(range(5))
        assert columns[0] == np.argmax(np.linalg.norm(matrix, axis=0))
        gram = matrix[:, columns].T @ matrix[:, columns]
        close(triangle.T @ triangle, gram, **TOLD)


@pytest.mark.parametrize("element", ["f32", "c64"])
@pytest.mark.parametrize("lower", [True, False])
def test_sytrd(lower: bool, element: str) -> None:  # noqa: FBT001
    value, skew = symmetric(2, size=6), normal(2, 6, 6, seed=1)
    if element == "c64":
        value = value + 1j * (skew - transposed(skew))
    matrix = f"{element}[2,6,6]{{1,2,0}}"
    text = module(
        f"({matrix}, f32[2,6]{{1,0}}, f32[2,5]{{1,0}}, {element}[2,5]{{1,0}}, s32[2]{{0}})",
        matrix,
        target="cusolver_sytrd_ffi",
        rest=f", backend_config={{lower = {str(lower).lower()}}}",
    )
    _, diagonal, beside, _, info = run(text, np.tril(value) if lower else np.triu(value))
    assert info.tolist() == [0, 0]
    for each, on, off in zip(value, diagonal, beside, strict=True):
        three = np.diag(on) + np.diag(off, 1) + np.diag(off, -1)
        close(np.linalg.eigvalsh(three), np.linalg.eigvalsh(each), **TOLD)


@pytest.mark.parametrize("transpose", [True, False])
def test_syrk(transpose: bool) -> None:  # noqa: FBT001
    value, more = normal(2, 4, 4), symmetric(2, size=4)
    text = module(
        "f32[2,4,4]{2,1,0}", *["f32[2,4,4]{2,1,0}"] * 2, "f32[]", "f32[]",
        target="cusolver_syrk_ffi",
        rest=f", backend_config={{transpose = {str(transpose).lower()}}}",
    )  # fmt: skip
    (made,) = run(text, value, more, np.asarray(2, np.float32), np.asarray(3, np.float32))
    other = transposed(value)
    wanted = 2 * (other @ value if transpose else value @ other) + 3 * more
    close(made, wanted, **TOLD)


@pytest.mark.parametrize("lower", [True, False])
def test_syevd_reads_one_triangle(lower: bool) -> None:  # noqa: FBT001
    value = symmetric(2, size=6)
    half = np.tril(value) if lower else np.triu(value)
    text = module(
        "(f32[2,6,6]{1,2,0}, f32[2,6]{1,0}, s32[2]{0})",
        "f32[2,6,6]{1,2,0}",
        target="cusolver_syevd_ffi",
        rest=f", backend_config={{algorithm = 0 : ui8, lower = {str(lower).lower()}}}",
    )
    vectors, values, _ = run(text, half)
    close(values, np.linalg.eigvalsh(value), **TOLD)
    close((vectors * values[:, None]) @ transposed(vectors), value, **TOLD)


def svd(name: str, told: str, value: np.ndarray, *shapes: str) -> tuple[np.ndarray, ...]:
    given, *_ = shapes
    text = module(
        f"({', '.join(shapes)}, s32[])",
        given,
        target=f"cusolver_{name}_ffi",
        rest=f", backend_config={{{told}}}",
    )
    return run(text, value)[1:4]


@pytest.mark.parametrize("name", ["gesvdj", "gesvdp"])
def test_two_of_the_decompositions_give_right_vectors_as_columns(name: str) -> None:
    value = normal(7, 5) + 1j * normal(7, 5, seed=1)
    told = "compute_uv = true, full_matrices = true"
    values, left, right = svd(name, told, value, "c64[7,5]", "f32[5]", "c64[7,7]", "c64[5,5]")
    close(values, np.linalg.svd(value, compute_uv=False), **TOLD)
    close((left[:, :5] * values) @ right.conj().T, value, **TOLD)


def test_gesvd_gives_right_vectors_as_rows_and_first_where_it_is_wide() -> None:
    value = normal(7, 5)
    told = "compute_uv = true, full_matrices = false, transposed = "
    shapes = "f32[7,5]{0,1}", "f32[5]", "f32[7,5]{0,1}", "f32[5,5]{0,1}"
    values, left, right = svd("gesvd", told + "false", value, *shapes)
    close((left * values) @ right, value, **TOLD)
    shapes = "f32[5,7]{1,0}", "f32[5]", "f32[5,7]{1,0}", "f32[5,5]{1,0}"
    values, right, left = svd("gesvd", told + "true", value.T, *shapes)
    close((left * values) @ right, value.T, **TOLD)


def test_singular_values_alone() -> None:
    told = "compute_uv = false, full_matrices = true, transposed = false"
    value = normal(7, 5)
    values, left, right = svd("gesvd", told, value, "f32[7,5]", "f32[5]", "f32[]", "f32[]")
    close(values, np.linalg.svd(value, compute_uv=False), **TOLD)
    assert left.shape == right.shape == ()


def test_three_diagonals() -> None:
    below, on, above = normal(6), normal(6, seed=1) + 5, normal(6, seed=2)
    right = normal(6, 2, seed=3)
    text = module(
        "f32[6,2]{0,1}",
        *["f32[6]{0}"] * 3,
        "f32[6,2]{0,1}",
        target="cusparse_gtsv2_ffi",
        rest=_EMPTY,
    )
    (made,) = run(text, below, on, above, right)
    matrix = np.diag(on) + np.diag(below[1:], -1) + np.diag(above[:-1], 1)
    close(matrix @ made, right, **TOLD)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
def test_triangular_solve(left: bool, transpose: str) -> None:  # noqa: FBT001
    value, right = normal(2, 4, 4) + 3 * np.eye(4, dtype=np.float32), normal(2, 4, 4, seed=1)
    told = f'"left_side":{str(left).lower()},"lower":true,"unit_diagonal":true'
    text = module(
        "(f32[2,4,4]{1,2,0}, s8[32]{0})",
        *["f32[2,4,4]{1,2,0}"] * 2,
        target="__cublas$triangularSolve",
        rest=f', backend_config={{{told},"transpose_a":"{transpose}"}}',
    )
    made, workspace = run(text, value, right)
    matrix = np.tril(value, -1) + np.eye(4)
    matrix = matrix if transpose == "NO_TRANSPOSE" else transposed(matrix)
    close(matrix @ made if left else made @ matrix, right, **TOLD)
    assert workspace.shape == (32,)


# --- The TPU's ------------------------------------------------------------------------------------


def test_indices_that_were_packed_are_themselves() -> None:
    text = module("s32[3,2]", "s32[3,2]", target="GatherScatterIndicesBitpacked")
    indices = np.arange(6, dtype=np.int32).reshape(3, 2)
    assert run(text, indices)[0].tolist() == indices.tolist()


def parts(value: np.ndarray) -> list[np.ndarray]:
    return [value.real.astype(np.float32), value.imag.astype(np.float32)]


def test_cholesky_of_a_complex_matrix_in_parts() -> None:
    value = normal(4, 4) + 1j * normal(4, 4, seed=1)
    value = value @ value.conj().T + 9 * np.eye(4)
    text = module("(f32[4,4], f32[4,4])", "f32[4,4]", "f32[4,4]", target="Cholesky")
    real, imaginary = run(text, *parts(value))
    close(np.tril(real + 1j * imaginary), np.linalg.cholesky(value), **TOLD)


@pytest.mark.parametrize("name", ["LuDecompositionBlock", "LuRealDecompositionBlock"])
def test_lu_of_a_block(name: str) -> None:
    value = normal(7, 5)
    text = module(
        "(f32[7,5]{1,0:T(8,128)}, s32[5]{0}, s32[7]{0})",
        "f32[7,5]{1,0:T(8,128)}",
        target=name,
    )
    both, pivots, order = run(text, value)
    assert order.tolist() == order_of(pivots, 7).tolist()
    assert pivots.tolist() == lax.linalg.lu(value)[1].tolist()
    close((np.tril(both, -1) + np.eye(7, 5)) @ np.triu(both[:5]), value[order], **TOLD)


def test_qr_of_a_block_and_its_reflections_as_one() -> None:
    """As XLA uses them: Q = 1 + Y T Yᵀ, with T of (Yᵀ Y above the diagonal, ones on it) (-τ)."""
    value = normal(7, 5)
    text = module("(f32[7,5]{1,0}, f32[5]{0})", "f32[7,5]{1,0}", target="QrDecompositionBlock")
    packed, factors = run(text, value)
    below = np.tril(packed, -1) + np.eye(7, 5)
    given = ((np.triu(below.T @ below, 1) + np.eye(5)) * -factors).astype(np.float32)
    text = module("f32[5,5]{1,0}", "f32[5,5]{0,1}", target="CompactWyHelper")
    (made,) = run(text, given)
    wanted = np.eye(5)
    for column in range(5):
        wanted[:, column] = wanted @ given[:, column]
    close(made, wanted, **TOLD)
    close((np.eye(7) + below @ made @ below.T)[:, :5] @ np.triu(packed[:5]), value, **TOLD)


@pytest.mark.parametrize(("name", "triangle"), [("Lower", np.tril), ("Upper", np.triu)])
def test_triangular_blocks_are_inverted(
    name: str, triangle: Callable[[np.ndarray], np.ndarray]
) -> None:
    value = triangle(normal(2, 3, 4, 4)) + 3 * np.eye(4, dtype=np.float32)
    shape = "f32[2,3,4,4]"
    text = module(
        f"{shape}{{2,3,1,0}}", f"{shape}{{3,2,1,0}}", target=f"InvertDiagBlocks{name}Triangular"
    )
    close(run(text, value)[0], np.linalg.inv(value), **TOLD)
    text = module(f"({shape}, {shape})", shape, shape, target=f"InvertDiagBlocks{name}Triangular")
    both = value + 1j * triangle(normal(2, 3, 4, 4, seed=1))
    real, imaginary = run(text, *parts(both))
    close(real + 1j * imaginary, np.linalg.inv(both), **TOLD)


def eigh(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = value.shape[-1] // 2
    quarter = f"f32[2,{half},{half}]"
    values = f"f32[2,{half}]"
    text = module(f"({', '.join([values] * 2 + [quarter] * 4)})", *[quarter] * 4, target="EighTpu")
    ends = slice(half), slice(half, None)
    first, last, *made = run(text, *(value[:, row, column] for row in ends for column in ends))
    rows = [np.concatenate(made[at : at + 2], -1) for at in (0, 2)]
    return np.concatenate([first, last], -1), np.concatenate(rows, -2)


def test_eigenvalues_of_a_matrix_in_quarters() -> None:
    value = symmetric(2, size=6)
    values, rows = eigh(value)
    close(np.sort(values), np.linalg.eigvalsh(value), **TOLD)
    close((transposed(rows) * values[:, None]) @ rows, value, **TOLD)


def test_a_row_of_padding_stays_the_last_among_eigenvectors_of_zero() -> None:
    thin = normal(2, 5, 3)
    value = np.pad(thin @ transposed(thin), ((0, 0), (0, 1), (0, 1)))
    values, rows = eigh(value)
    assert np.abs(rows[:, 5]).tolist() == [[0, 0, 0, 0, 0, 1]] * 2
    assert rows[:, :5, 5].tolist() == [[0] * 5] * 2
    close(values[:, 5], 0, **TOLD)
    close(np.sort(values[:, :5]), np.linalg.eigvalsh(value[:, :5, :5]), **TOLD)


def test_results_that_are_not_as_known_are_named() -> None:
    text = module("(f32[7,5], s32[5])", "f32[7,5]", target="LuDecompositionBlock")
    with pytest.raises(NotKnownError, match=r'^"LuDecompositionBlock" with other results$'):
        translate(text)
