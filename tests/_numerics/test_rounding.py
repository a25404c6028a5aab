"""The bounds hold for what float32 really computes, in whatever order, and are not far too wide."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jitcount._numerics.error_bounds import EXPECTED_ULPS, LARGEST_ULPS, gamma
from jitcount._numerics.rounding import Rounded
from jitcount._suite.data import spread

FLOATS = st.floats(width=32, min_value=-1e6, max_value=1e6)
VECTORS = arrays.arrays(np.float32, st.integers(1, 40), elements=FLOATS)


def added_up(values: np.ndarray, generator: np.random.Generator) -> np.float32:
    """A sum in float32, in a random order of additions, as a parallel machine may choose it."""
    rest = list(values)
    while len(rest) > 1:
        one = rest.pop(int(generator.integers(len(rest))))
        other = rest.pop(int(generator.integers(len(rest))))
        rest.append(np.float32(one + other))
    return np.float32(rest[0])


@settings(max_examples=200, deadline=None)
@given(VECTORS, st.integers(0, 2**32))
def test_a_sum_in_any_order_is_within_its_bound_of_the_exact_one(
    values: np.ndarray, seed: int
) -> None:
    exact = sum(map(Fraction, values.tolist()))
    total = Rounded.exactly(values).sum()
    assert float(total.values) == float(exact)
    found = added_up(values, np.random.default_rng(seed))
    assert abs(Fraction(float(found)) - exact) <= Fraction(float(total.errors))


def test_the_bound_of_a_sum_is_the_standard_one() -> None:
    values = np.linspace(-1, 2, 1001, dtype=np.float32)
    bound = float(Rounded.exactly(values).sum().errors)
    standard = gamma(1000, "float32") * math.fsum(np.abs(values).tolist())
    assert standard <= bound <= standard * 1.001


def test_the_reference_of_a_very_long_sum_is_as_good_as_the_exact_one() -> None:
    values = spread(3_000_001)
    total = Rounded.exactly(values).sum()
    exact, size = math.fsum(values.tolist()), math.fsum(np.abs(values).tolist())
    assert abs(float(total.values) - exact) < 2.0**-46 * size < 2.0**-20 * float(total.likely)


def softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max())
    return raised / raised.sum()


def true_softmax(x: Rounded) -> Rounded:
    raised = (x - x.max()).exp()
    return raised / raised.sum()


def normal(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(dtype=np.float32)
    return centred / np.sqrt((centred * centred).mean(dtype=np.float32) + np.float32(1e-5))


def true_normal(x: Rounded) -> Rounded:
    centred = x - x.mean()
    return centred / ((centred * centred).mean() + 1e-5).sqrt()


COMPUTATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Rounded]]] = {
    "product": (lambda x: x * x * x, lambda x: x * x * x),
    "quotient": (
        lambda x: x / (x * x + np.float32(1)),
        lambda x: x / (x * x + 1.0),
    ),
    "tanh": (np.tanh, Rounded.tanh),
    "cumsum": (lambda x: np.cumsum(x, dtype=np.float32), Rounded.cumsum),
    "var": (lambda x: x.var(dtype=np.float32), Rounded.var),
    "softmax": (softmax, true_softmax),
    "normal": (normal, true_normal),
}


@pytest.mark.parametrize("name", COMPUTATIONS)
@settings(max_examples=100, deadline=None)
@given(
    values=arrays.arrays(np.float32, 17, elements=st.floats(width=32, min_value=-8, max_value=8))
)
def test_what_float32_computes_is_within_the_bounds(name: str, values: np.ndarray) -> None:
    compute, reference = COMPUTATIONS[name]
    true = reference(Rounded.exactly(values))
    found = np.asarray(compute(values))
    assert found.dtype == np.float32
    off = np.abs(found.astype(np.float64) - true.values)
    assert np.all(off <= true.errors)
    assert np.all(true.likely <= true.errors)
    assert np.all(off <= true.likely)


def test_a_matrix_product_is_within_its_bound_and_one_of_bfloat16_within_a_wider_one() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=size).astype(np.float32) for size in ((20, 500), (500, 20)))
    narrow = Rounded.exactly(a).matmul(Rounded.exactly(b))
    wide = Rounded.exactly(a).matmul(Rounded.exactly(b), inputs="bfloat16")
    off = np.abs((a @ b).astype(np.float64) - narrow.values)
    assert np.all(off <= narrow.likely)
    assert np.all(narrow.likely < narrow.errors)
    assert np.all(50 * narrow.errors < wide.errors)
    assert np.all(wide.likely < 2 * narrow.likely)


def test_a_divisor_that_may_be_zero_has_no_bound() -> None:
    zero = Rounded.declared(1e-9, 1e-8, "float32")
    with pytest.raises(ZeroDivisionError, match="a divisor that may be zero has no bound"):
        Rounded.exactly(np.ones(1, np.float32)) / zero


def test_a_function_of_exact_numbers_has_its_own_rounding_only() -> None:
    x = Rounded.exactly(np.array([0.5, 3.0], np.float32))
    found = x.function("erf", np.sqrt)
    assert np.array_equal(found.values, np.sqrt(x.values))
    assert found.likely == pytest.approx(EXPECTED_ULPS["erf"] * 2.0**-23 * found.values, rel=1e-6)
    assert found.errors == pytest.approx(LARGEST_ULPS["erf"] * 2.0**-23 * found.values, rel=1e-6)
    with pytest.raises(ValueError, match=r"^erf of numbers that are off has no bound here$"):
        (x + 1.0).function("erf", np.sqrt)


def test_nothing_is_expected_to_be_off_more_than_is_possible() -> None:
    assert EXPECTED_ULPS.keys() == LARGEST_ULPS.keys()
    assert all(EXPECTED_ULPS[name] <= LARGEST_ULPS[name] for name in EXPECTED_ULPS)
