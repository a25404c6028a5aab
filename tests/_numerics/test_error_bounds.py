"""What chance does to sums: the expected bound holds for real ones, and is not far too wide."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from jitcount._numerics.error_bounds import (
    confidence,
    expected_error,
    unit_roundoff,
    worst_error,
)
from jitcount._numerics.rounding import Rounded
from jitcount._suite.data import one_sign

DRAWS, TERMS = 1000, 4096
UNIT = unit_roundoff("float32")


def one_by_one(values: np.ndarray) -> np.ndarray:
    return np.add.accumulate(values, axis=-1, dtype=np.float32)[..., -1]


def in_lanes(values: np.ndarray) -> np.ndarray:
    """Sixteen lanes, each one by one, then the lanes."""
    lanes = values.reshape(*values.shape[:-1], -1, 16).swapaxes(-1, -2)
    return one_by_one(one_by_one(lanes))


def in_pairs(values: np.ndarray) -> np.ndarray:
    while values.shape[-1] > 1:
        values = values[..., ::2] + values[..., 1::2]
    return values[..., 0]


# How it adds, and the longest chain of additions that there is in it.
ORDERS = {
    "one by one": (one_by_one, TERMS - 1),
    "in lanes": (in_lanes, TERMS // 16 - 1 + 15),
    "in pairs": (in_pairs, 12),
}


def of_both_signs() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(DRAWS, TERMS)).astype(np.float32)


def of_one_sign() -> np.ndarray:
    return one_sign(DRAWS, TERMS)


@pytest.mark.parametrize("data", [of_one_sign, of_both_signs])
@pytest.mark.parametrize("order", ORDERS)
def test_sums_are_off_no_more_than_the_model_says_and_no_more_often(
    order: str, data: Callable[[], np.ndarray]
) -> None:
    add_up, length = ORDERS[order]
    values = data()
    assert values.dtype == np.float32
    wide = values.astype(np.float64)
    off = np.abs(add_up(values).astype(np.float64) - wide.sum(1))
    in_units = off / (math.sqrt(length) * UNIT * np.abs(wide).sum(1))
    for certainty in (0.5, 1, 2, 3):
        chance = 2 * math.exp(-(certainty**2) / 2)
        assert np.mean(in_units > certainty) <= chance
    assert np.all(in_units < confidence(1))


def test_the_bound_is_not_far_too_wide_for_sums_of_one_sign() -> None:
    """Else it finds nothing: what comes out one by one uses some of it."""
    values = one_sign(DRAWS, TERMS, seed=2)
    total = Rounded.exactly(values).sum(1)
    off = np.abs(one_by_one(values).astype(np.float64) - total.values)
    assert 0.02 < np.max(off / total.likely) < 1


def test_numbers_with_a_pattern_break_the_model_and_have_a_bound_of_their_own() -> None:
    values = np.full(1_000_000, 0.1, np.float32)
    off = abs(float(in_lanes(values)) - float(Rounded.exactly(values).sum().values))
    chained = expected_error(values.size // 16 + 14, UNIT, 1) * 1e5
    assert off > chained
    assert off < worst_error(values.size // 16 + 14, UNIT) * 1e5
    plain, steady = (
        float(Rounded.exactly(values).sum(has_pattern=pattern).likely) for pattern in (False, True)
    )
    assert plain < steady < float(Rounded.exactly(values).sum().errors)


def test_a_false_alarm_comes_in_less_than_one_of_a_billion_results() -> None:
    for elements in (1, 100, 1_000_000):
        chance = 2 * math.exp(-(confidence(elements) ** 2) / 2)
        assert elements * chance < 1e-9
