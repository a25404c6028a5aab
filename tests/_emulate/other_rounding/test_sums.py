"""Sums: how far they move, and which are exact in any order."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._numerics.random_order import variance_factors
from tests._emulate.other_rounding.moving import RANDOM, WHOLE, X, assert_unmoved, here_and_moved


def test_a_sum_of_many_normals_moves_as_another_order_would() -> None:
    normals = RANDOM.normal(size=100_000).astype(np.float32)
    wide = normals.astype(np.float64)
    single, pairs = variance_factors(normals.size)
    squares, total = np.sum(wide**2), np.sum(wide)
    width = 2.0**-24 * np.sqrt((single * squares + pairs * (total**2 - squares)) / 3)
    off = []
    for seed in range(6):
        here, moved = here_and_moved(jnp.sum, normals, seed=seed)
        off.append(float(moved) - float(here))
    assert 0.2 * width < np.sqrt(np.mean(np.square(off))) < 2 * width
    assert len(set(off)) > 3


def test_sums_of_rows_products_and_windows_move() -> None:
    def f(x: Any) -> Any:
        return x.sum(0), x @ x, jnp.cumsum(x[0]), jnp.convolve(x[0], x[1]), (x * x).mean()

    here, moved = here_and_moved(f, X)
    for one, other in zip(here, moved, strict=True):
        assert np.mean(one != other) > 0.2
        assert np.linalg.norm(one - other) < 1e-5 * np.linalg.norm(one)


def test_sums_that_are_exact_in_any_order_stay() -> None:
    def exact(x: Any, whole: Any) -> Any:
        return (
            whole.sum(),
            whole @ whole,
            (x > 0).sum(0, dtype=jnp.float32),
            jnp.ones((1000, 7)).sum(0),
            jax.nn.one_hot(jnp.arange(32), 32) @ x,
            x @ jnp.eye(32)[::-1],
            x @ jnp.zeros((32, 3)),
            jnp.zeros(10).at[jnp.array([1, 1, 2])].add(jnp.array([1.0, 2.0, 0.1])),
            jax.ops.segment_sum(jnp.ones(100), jnp.arange(100) % 7, num_segments=7),
            jax.nn.one_hot(jnp.arange(5) * 50, 300) @ jnp.tile(x, (10, 1))[:300],
            x.at[3:5].add(0.0),
            lax.reduce(x, -jnp.inf, lax.max, (0,)),
        )

    assert_unmoved(exact, X, WHOLE)


def test_whole_numbers_near_the_largest_stay_whole() -> None:
    whole = RANDOM.integers(-200, 200, size=(64, 128)).astype(np.float32)
    _, moved = here_and_moved(lambda x: x @ x.T, whole)
    np.testing.assert_array_equal(moved, np.round(moved))


def test_empty_and_huge_sums_are_as_ever() -> None:
    def f(x: Any) -> Any:
        empty = jnp.zeros((0, 3)).sum(0), jnp.zeros((2, 0)) @ jnp.zeros((0, 2))
        return (
            *empty,
            (x * 2.0**110).sum(),
            jnp.full(10, 1e38).sum(),
            x.at[jnp.zeros(0, int)].add(0.3),
        )

    assert_unmoved(f, X)


def test_products_of_16_bits_are_summed_in_32() -> None:
    narrow = jnp.asarray(X, jnp.bfloat16)
    here, moved = here_and_moved(
        lambda x: (x @ x, lax.reduce(x, jnp.bfloat16(0), lax.add, (0,))), narrow
    )
    for one, other in zip(here, moved, strict=True):
        one, other = one.astype(np.float32), other.astype(np.float32)  # noqa: PLW2901 (the same)
        assert 0.05 < np.mean(one != other) < 0.9
        assert np.linalg.norm(one - other) < 2**-7 * np.linalg.norm(one)


def test_long_products_move_as_far_as_short_ones() -> None:
    wide = RANDOM.normal(size=(64, 1000)).astype(np.float32)
    here, moved = here_and_moved(lambda x: x @ x.T, wide)
    single, _ = variance_factors(1000)
    width = 2.0**-24 * np.sqrt(single * 1000 / 3)
    off = (moved - here)[~np.eye(64, dtype=bool)]
    assert 0.3 * width < np.std(off) < 1.5 * width


def test_complex_products_move() -> None:
    numbers = X + 1j * X.T
    here, moved = here_and_moved(lambda z: (z @ z, z.sum(0)), numbers)
    for one, other in zip(here, moved, strict=True):
        assert np.mean(one != other) > 0.2
        assert np.linalg.norm(one - other) < 1e-6 * np.linalg.norm(one)
