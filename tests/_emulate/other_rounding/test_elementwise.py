"""Operations on each number: what moves, how far, and what is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jitcount._emulate.other_rounding.elementwise import FUNCTIONS, is_exact
from jitcount._numerics.error_bounds import EXPECTED_ULPS
from tests._emulate.other_rounding.moving import (
    RANDOM,
    WHOLE,
    X,
    assert_unmoved,
    here_and_moved,
    ulps,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = np.array([3e38, -3e38, 1e30, np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)


def test_sums_and_products_that_may_be_fused_move_by_an_ulp() -> None:
    here, moved = here_and_moved(lambda x: (x + x.T * 1.7, (x + 0.1) * x.T), X)
    for one, other in zip(here, moved, strict=True):
        assert 0.2 < np.mean(one != other) < 0.8
    sum_alone, _ = here_and_moved(lambda x: x + 0.1, X)
    product = here[1] / X.T
    assert np.allclose(product, sum_alone, rtol=1e-6)


def test_by_itself_a_sum_or_a_product_is_the_same_everywhere() -> None:
    assert_unmoved(lambda x: x + 0.1, X)
    assert_unmoved(lambda x: x * 1.7, X)
    assert_unmoved(lambda x: jnp.exp2(jnp.floor(x)), X)


@pytest.mark.parametrize(
    ("name", "f", "argument"),
    [
        ("exp", jnp.exp, X),
        ("log", jnp.log, np.abs(X)),
        ("tanh", jnp.tanh, X),
        ("sin", jnp.sin, X),
        ("logistic", jax.nn.sigmoid, X),
        ("erf", jax.scipy.special.erf, X),
        ("rsqrt", lax.rsqrt, np.abs(X)),
        ("divide", lambda x: x / x.T, X),
    ],
)
def test_functions_move_within_what_is_expected(
    name: str, f: Callable[..., Any], argument: np.ndarray
) -> None:
    here, moved = here_and_moved(f, argument)
    assert np.mean(here != moved) > 0.5
    assert ulps(here, moved).max() <= EXPECTED_ULPS[name]


def test_what_is_exact_stays_so() -> None:
    def exact(x: Any, whole: Any) -> Any:
        tripled = whole * 3 - 2
        return (
            (x - x) + (x * 0),
            (x + 0) * 1 + 0,
            x * 2 / 4,
            tripled * whole + 1,
            jnp.exp(whole * 0) + jnp.cos(whole * 0),
            jnp.sqrt(whole * whole),
            x / jnp.ones_like(x),
            jnp.arange(1.0, 9.0) ** 2,
            lax.pow(x, jnp.float32(1)),
            jnp.floor(x) + jnp.where(x > 0, 1.0, 0.0),
        )

    assert_unmoved(exact, X, WHOLE)


def test_infinities_and_nans_stay_and_none_is_made() -> None:
    def f(x: Any) -> Any:
        return ((x + x) * 1.7, (x * 1.7) + 1, x - x * 0.3, jnp.exp(x), jnp.tanh(x), 1 / x)

    here, moved = here_and_moved(f, LARGE)
    for one, other in zip(here, moved, strict=True):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_array_equal(np.isinf(one), np.isinf(other))


def test_functions_stay_in_their_range() -> None:
    far = np.linspace(-20, 20, 4001, dtype=np.float32)
    _, moved = here_and_moved(
        lambda x: (jnp.tanh(x), jnp.sin(x), jax.nn.sigmoid(x), jax.scipy.special.erf(x)), far
    )
    for each in moved:
        assert np.abs(each).max() <= 1
    assert moved[2].min() >= 0


@pytest.mark.parametrize(("dtype", "ulp"), [(jnp.bfloat16, 2**-7), (jnp.float16, 2**-10)])
def test_numbers_of_16_bits_are_rounded_up_or_down(dtype: Any, ulp: float) -> None:
    here, moved = here_and_moved(lambda x: (x * x.T + x, jnp.exp(x)), jnp.asarray(X, dtype))
    for one, other in zip(here, moved, strict=True):
        wide = one.astype(np.float32)
        assert 0.1 < np.mean(one != other) < 0.9
        assert np.all(np.abs(other.astype(np.float32) - wide) <= 4 * ulp * np.abs(wide) + 0.02)
    assert_unmoved(lambda x: x * 2 + 1, jnp.arange(20, dtype=dtype))


@pytest.mark.usefixtures("x64")
def test_numbers_of_64_bits_move_by_their_own_ulps() -> None:
    wide = RANDOM.normal(size=(32, 32))
    here, moved = here_and_moved(lambda x: (jnp.exp(x), x * x.T + x), wide)
    assert_unmoved(lambda x: (x - x) + x * 2, wide)
    assert ulps(here[0], moved[0]).max() <= EXPECTED_ULPS["exp"]
    assert 0.1 < np.mean(here[1] != moved[1]) < 0.9


def test_complex_numbers_move_in_both_parts() -> None:
    numbers = X + 1j * X.T
    here, moved = here_and_moved(lambda z: (jnp.exp(z), z * z.T + z, jnp.abs(z)), numbers)
    for one, other in zip(here, moved, strict=True):
        assert np.mean(one != other) > 0.2
        assert np.linalg.norm(one - other) < 1e-6 * np.linalg.norm(one)


def test_constants_that_round_nothing_are_seen() -> None:
    assert FUNCTIONS["tanh"] == EXPECTED_ULPS["tanh"]

    class Known:
        def __init__(self, splat: float | None) -> None:
            self.splat = splat

    def seen(name: str, *numbers: float | None) -> bool:
        return is_exact(name, [Known(number) for number in numbers])  # type: ignore[misc]

    assert seen("multiply", None, 0.5)
    assert not seen("multiply", None, 0.3)
    assert seen("add", None, 0.0)
    assert not seen("add", None, 1.0)
    assert seen("divide", None, 8.0)
    assert not seen("divide", 8.0, None)
