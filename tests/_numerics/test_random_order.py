"""The variance of a sum in a random order, against sums that were added up in many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from jitcount._numerics.random_order import variance_factors

if TYPE_CHECKING:
    from collections.abc import Callable

_UNIT = 2.0**-24


def _width(terms: np.ndarray) -> float:
    """The standard deviation that the model has for a sum in float32."""
    wide = terms.astype(np.float64)
    squares, total = np.sum(wide**2), np.sum(wide)
    single, pairs = variance_factors(terms.size)
    return float(_UNIT * np.sqrt((single * squares + pairs * (total**2 - squares)) / 3))


def _sum_in_tiles(terms: np.ndarray) -> float:
    """The terms one by one in tiles of 1,024, then the tiles one by one, in float32."""
    tiles = -(-terms.size // 1024)
    rows = np.pad(terms, (0, tiles * 1024 - terms.size)).reshape(tiles, 1024)
    each = np.cumsum(rows, 1, dtype=np.float32)[:, -1]
    return float(np.cumsum(each, dtype=np.float32)[-1])


def test_one_term_is_not_rounded() -> None:
    assert variance_factors(0) == variance_factors(1) == (0.0, 0.0)


def test_the_factors_are_the_mean_squares_of_partial_sums() -> None:
    terms = np.array([3.0, -1.0, 4.0, 1.0, -5.0])
    rng = np.random.default_rng(0)
    orders = [np.cumsum(rng.permutation(terms))[1:] for _ in range(20_000)]
    squares, total = np.sum(terms**2), np.sum(terms)
    single, pairs = variance_factors(terms.size)
    expected = single * squares + pairs * (total**2 - squares)
    assert np.mean([np.sum(partial**2) for partial in orders]) == pytest.approx(expected, rel=0.02)


def test_factors_of_terms_in_many_tiles_follow_their_definition() -> None:
    terms, tiles = 10_000, 10
    in_a_tile = np.arange(2, 1025.0)
    between = np.minimum(np.arange(2, tiles + 1.0) * 1024, terms)
    single = (tiles * in_a_tile.sum() + between.sum()) / terms
    squares = tiles * (in_a_tile * (in_a_tile - 1)).sum() + (between * (between - 1)).sum()
    assert variance_factors(terms) == pytest.approx((single, squares / (terms * (terms - 1))))


@pytest.mark.parametrize("terms", [100, 4096, 30_000])
@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda rng, n: rng.normal(size=n), id="normal"),
        pytest.param(lambda rng, n: rng.uniform(size=n), id="uniform"),
        pytest.param(lambda rng, n: rng.lognormal(0, 3, n), id="lognormal"),
    ],
)
def test_sums_in_many_orders_are_as_far_off_as_the_model_says(
    draw: Callable[[np.random.Generator, int], np.ndarray], terms: int
) -> None:
    rng = np.random.default_rng(terms)
    shares = []
    for _ in range(40):
        data = draw(rng, terms).astype(np.float32)
        true = float(np.sum(data.astype(np.float64)))
        shares.append((_sum_in_tiles(rng.permutation(data)) - true) / _width(data))
    assert 0.4 < np.sqrt(np.mean(np.square(shares))) < 1.3
    assert np.max(np.abs(shares)) < 6
