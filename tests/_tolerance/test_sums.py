"""Sums: real orders of addition stay within what is expected, and exact ones do not move."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from jitcount._tolerance.lanes import Lanes
from jitcount._tolerance.sums import lowest_bit, summed
from jitcount._tolerance.widths import spread_of

_random = np.random.default_rng(1)


def one_by_one(x: np.ndarray) -> float:
    return float(np.cumsum(x, dtype=np.float32)[-1])


def by_lanes(x: np.ndarray) -> float:
    return one_by_one(np.cumsum(x.reshape(-1, min(x.size, 1024)), 0, dtype=np.float32)[-1])


def pairwise(x: np.ndarray) -> float:
    while x.size > 1:
        x = x[::2] + x[1::2]
    return float(x[0])


DATA: dict[str, Callable[[int], np.ndarray]] = {
    "normal": lambda n: _random.normal(size=n),
    "positive": lambda n: _random.uniform(size=n),
    "sorted": lambda n: np.linspace(-1, 1, n),
    "of many sizes": lambda n: _random.lognormal(0, 3, n),
    "alternating": lambda n: np.where(np.arange(n) % 2, -1e3, 1e3) + _random.normal(size=n),
}


@pytest.mark.parametrize(("name", "order"), list(itertools.product(DATA, [by_lanes, pairwise])))
def test_any_order_is_within_the_tolerance(name: str, order: Callable[..., float]) -> None:
    for n in 128, 4096:
        x = DATA[name](n).astype(np.float32)
        wide = x[None].astype(np.float64)
        spread = spread_of(summed(Lanes(16), wide, "float32"), "float32", 2.0**-24)
        assert abs(order(x) - spread.reference) <= spread.width
        # It is the scatter of a random order that allows it, and not the proven bound.
        assert spread.width < 1e-4 * np.abs(x).sum()


def test_a_pattern_is_added_up_as_it_is() -> None:
    tenths = np.full(1 << 20, 0.1, np.float32)
    wide = tenths[None].astype(np.float64)
    spread = spread_of(summed(Lanes(4), wide, "float32"), "float32", 2.0**-24)
    assert abs(by_lanes(tenths) - spread.reference) <= spread.width


@pytest.mark.parametrize(
    "terms",
    [np.arange(1000.0), np.arange(-99, 100) * 0.25, np.array([0.1, 0.0, 0.0]).astype(np.float32)],
    ids=["integers", "quarters", "one of all"],
)
def test_exact_sums_do_not_move(terms: np.ndarray) -> None:
    found = summed(Lanes(8), terms[None].astype(np.float64), "float32")
    assert found.tolist() == [float(terms.sum(dtype=np.float64))]


def test_sums_beyond_the_dtype_s_digits_do() -> None:
    terms = np.array([[2.0**24, 1.0, 1.0, 1.0]])
    assert len(set(summed(Lanes(8), terms, "float32").tolist())) > 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3.0, 8.0], 1.0), ([0.75, 2.0, 0.0], 0.25), ([0.0], np.inf), ([2.0**-130], 2.0**-130)],
)
def test_the_lowest_bit_of_numbers(values: list[float], expected: float) -> None:
    assert lowest_bit(np.array(values)) == expected
