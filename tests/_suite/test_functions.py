"""The references of functions are right far beyond float32: mpmath has them to thirty digits."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from jitcount._suite.arguments import binades
from jitcount._suite.function_cases import true_values
from jitcount._suite.functions import ONE_ARGUMENT, TWO_ARGUMENTS, Function

_EXACT: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x, 2),
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf_inv": mpmath.erfinv,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "digamma": mpmath.digamma,
    "bessel_i0e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x),
    "bessel_i1e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x),
    **{
        name: getattr(mpmath, name)
        for name in (
            *("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
            *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "atan2"),
        )
    },
    "pow": mpmath.power,
}
_FUNCTIONS = {each.name: each for each in (*ONE_ARGUMENT, *TWO_ARGUMENTS) if each.name in _EXACT}

# A unit in the last place of float32 is 2**-23 of a number: a thousandth of that is not seen.
_ENOUGH = 2.0**-33


@pytest.mark.parametrize("function", _FUNCTIONS.values(), ids=_FUNCTIONS)
def test_the_reference_is_mpmaths(function: Function) -> None:
    some = binades(count=1, near=2, seed=121)[::9].astype(np.float64)
    some = some[(np.abs(some) > 1e-30) & (np.abs(some) < 1e30)]
    if function.name in ("lgamma", "digamma", "bessel_i0e", "bessel_i1e", "erf_inv"):
        some = some[np.abs(some) < 50]  # beyond, mpmath takes very long
    arguments = [some] if function in ONE_ARGUMENT else [np.abs(some), np.clip(some[::-1], -9, 9)]
    found = true_values(function, arguments)
    compared = 0
    with mpmath.workdps(50):
        for value, *given in zip(found, *arguments, strict=True):
            if np.isfinite(value) and abs(value) > 1e-300:
                exact = _EXACT[function.name](*map(mpmath.mpf, map(float, given)))
                assert abs(mpmath.mpf(float(value)) - exact) <= _ENOUGH * abs(exact), given
                compared += 1
    assert compared >= 10
