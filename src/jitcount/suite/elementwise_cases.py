"""Each number by itself: within a few ulps, or equal to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount.numerics.expected import (
    ELEMENTWISE,
    exactly,
    within,
    within_complex,
)
from jitcount.numerics.rounding import Rounded
from jitcount.suite.data import floats, spread
from jitcount.suite.jitted import bounded, jitted

if TYPE_CHECKING:
    from jitcount.numerics.expected import Expected

_HIGHEST = jax.lax.Precision.HIGHEST


_X = spread(257, seed=3) * np.float32(8)
_Y = spread(257, seed=4) + np.float32(1)
_POSITIVE = np.abs(_X) + np.float32(0.01)
_SPECIALS = floats(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e-40, -3e38)
_DENORMALS = spread(64, seed=5) * np.float32(1e-38)

ELEMENTWISE_CASES = (
    jitted("add", "x + y", jnp.add, (_X, _Y), bounded(ELEMENTWISE, lambda x, y: x + y)),
    jitted("multiply", "x * y", jnp.multiply, (_X, _Y), bounded(ELEMENTWISE, lambda x, y: x * y)),
    jitted("divide", "x / y", jnp.divide, (_X, _Y), bounded(ELEMENTWISE, lambda x, y: x / y)),
    jitted("sqrt", "the square root", jnp.sqrt, (_POSITIVE,), bounded(ELEMENTWISE, Rounded.sqrt)),
    jitted("exp", "the exponential", jnp.exp, (_X,), bounded(ELEMENTWISE, Rounded.exp)),
    jitted(
        "log",
        "the logarithm, away from 1",
        jnp.log,
        (_POSITIVE,),
        bounded(ELEMENTWISE, Rounded.log),
    ),
    jitted("tanh", "the hyperbolic tangent", jnp.tanh, (_X,), bounded(ELEMENTWISE, Rounded.tanh)),
    jitted("sin", "the sine of small angles", jnp.sin, (_X,), bounded(ELEMENTWISE, Rounded.sin)),
    *(
        jitted(
            f"multiply-{dtype.__name__}",
            f"x * y in {dtype.__name__}",
            jnp.multiply,
            (_X.astype(dtype), _Y.astype(dtype)),
            bounded(ELEMENTWISE, lambda x, y: x * y),
        )
        for dtype in (np.float16, ml_dtypes.bfloat16)
    ),
    jitted(
        "multiply-complex64",
        "a product of complex numbers",
        jnp.multiply,
        (_X + 1j * _Y, _Y - 1j * _X),
        lambda a, b: within_complex(ELEMENTWISE, *_complex_product(a, b)),
    ),
    jitted(
        "double-denormals",
        "twice a denormal: right, or zero where denormals are flushed",
        lambda x: 2 * x,
        (_DENORMALS,),
        lambda x: _right_or_zero(2 * x),
    ),
    jitted(
        "negate-specials",
        "NaN, infinities and signed zeros change their sign, and nothing else",
        jnp.negative,
        (_SPECIALS[:6],),
        lambda x: exactly(-x),
    ),
    jitted(
        "compare-specials",
        "a NaN is larger than nothing, and equal to nothing",
        lambda x: jnp.stack([x > 0, x == x, x == 0]),  # noqa: PLR0124 (that is how NaN is told)
        (_SPECIALS[:6],),
        lambda x: exactly(np.stack([x > 0, x == x, x == 0])),  # noqa: PLR0124
    ),
    jitted(
        "maximum-specials",
        "the larger one, and NaN where one is NaN",
        lambda x: jnp.maximum(x, 1),
        (_SPECIALS,),
        lambda x: exactly(np.maximum(x, np.float32(1))),
    ),
    jitted(
        "overflow-int32",
        "the largest whole number and one more is the smallest",
        lambda x: x + 1,
        (np.array([2**31 - 1, -1], np.int32),),
        lambda _: exactly(np.array([-(2**31), 0], np.int32)),
    ),
    jitted(
        "exp-overflows",
        "an exponential that float32 does not hold is infinite",
        jnp.exp,
        (floats(100, 1000, -1000),),
        lambda _: exactly(floats(np.inf, np.inf, 0)),
    ),
)


def _right_or_zero(values: np.ndarray) -> Expected:
    wide = values.astype(np.float64)
    size = np.abs(wide)
    reference = Rounded(wide, size, np.zeros_like(size), size, "float32")
    return within(ELEMENTWISE, reference, may="a backend may take denormals for zeros")


def _complex_product(a: np.ndarray, b: np.ndarray) -> tuple[Rounded, Rounded]:
    (ar, ai), (br, bi) = ((Rounded.exactly(z.real), Rounded.exactly(z.imag)) for z in (a, b))
    return ar * br - ai * bi, ar * bi + ai * br
