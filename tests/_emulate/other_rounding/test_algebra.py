"""Decompositions and transforms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests._emulate.other_rounding.moving import X, assert_unmoved, here_and_moved

SYMMETRIC = X @ X.T + 32 * np.eye(32, dtype=np.float32)


def test_what_lapack_returns_moves_a_little() -> None:
    def f(matrix: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return (
            jnp.linalg.solve(matrix, matrix[0] + 0.3),
            jnp.linalg.cholesky(matrix),
            jnp.linalg.eigvalsh(matrix),
            jnp.linalg.svd(matrix, compute_uv=False),
        )

    here, moved = here_and_moved(f, SYMMETRIC)
    for one, other in zip(here, moved, strict=True):
        assert np.mean(one != other) > 0.2
        assert np.linalg.norm(one - other) < 1e-4 * np.linalg.norm(one)


def test_zeros_and_diagonal_matrices_stay() -> None:
    assert_unmoved(jnp.linalg.inv, jnp.eye(4))
    assert_unmoved(lambda x: jnp.linalg.cholesky(4 * x), jnp.eye(5))
    _, moved = here_and_moved(jnp.linalg.cholesky, SYMMETRIC)
    np.testing.assert_array_equal(moved, np.tril(moved))


def test_transforms_move_by_a_part_of_the_whole() -> None:
    here, moved = here_and_moved(jnp.fft.fft, X[0])
    size = np.sqrt(np.mean(np.abs(here) ** 2))
    assert np.mean(here != moved) > 0.5
    assert np.abs(here - moved).max() < 30 * 2**-24 * size
