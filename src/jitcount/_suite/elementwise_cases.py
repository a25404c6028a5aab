"""Functions of each number by itself: within a few ulps, or equal to the bit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount._numerics.expected import ELEMENTWISE, exactly, within, within_complex
from jitcount._numerics.rounding import Rounded
from jitcount._suite.data import floats, spread
from jitcount._suite.jitted import bounded, jitted

if TYPE_CHECKING:
    from jitcount._numerics.expected import Expected
    from jitcount._suite.case import Case

_HIGHEST = jax.lax.Precision.HIGHEST


_X = spread(257, seed=3) * np.float32(8)
_Y = spread(257, seed=4) + np.float32(1)
_POSITIVE = np.abs(_X) + np.float32(0.01)
_SPECIALS = floats(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e-40, -3e38)
_DENORMALS = spread(64, seed=5) * np.float32(1e-38)

# Where functions are computed in other ways: far out, near zero, near one.
_FAR_OUT = spread(257, seed=6) * np.float32(174)
_NEAR_ZERO = spread(257, seed=7) * np.float32(2**-9)
_NEAR_ONE = np.float32(1) + spread(257, seed=8) * np.float32(2**-5)
_ANGLES = spread(257, seed=9) * np.float32(20_000)
_MAGNITUDES = np.exp2(spread(257, dtype="float64", seed=10) * 240).astype(np.float32)

# The constant as float32 rounds it.
_LOG_2 = Rounded.declared(math.log(2), math.log(2) * 2.0**-24, "float32")

# A function, its true values, and its arguments.
_WIDE = (
    ("exp", jnp.exp, np.exp, (_FAR_OUT, _NEAR_ZERO)),
    ("log", jnp.log, np.log, (_MAGNITUDES, _NEAR_ONE)),
    ("sin", jnp.sin, np.sin, (_ANGLES, _NEAR_ZERO)),
    ("cos", jnp.cos, np.cos, (_ANGLES, _X)),
    ("tan", jnp.tan, np.tan, (_X, _NEAR_ZERO)),
    ("tanh", jnp.tanh, np.tanh, (_FAR_OUT, _NEAR_ZERO)),
    ("sqrt", jnp.sqrt, np.sqrt, (_MAGNITUDES,)),
    ("rsqrt", jax.lax.rsqrt, lambda x: 1 / np.sqrt(x), (_MAGNITUDES, _POSITIVE)),
    ("expm1", jnp.expm1, np.expm1, (_NEAR_ZERO, _X)),
    ("log1p", jnp.log1p, np.log1p, (_NEAR_ZERO, _POSITIVE)),
    ("erf", jax.lax.erf, np.vectorize(math.erf), (_NEAR_ZERO, _X)),
    ("logistic", jax.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (_FAR_OUT, _X)),
)


def _function_case(name: str, compute: Any, reference: Any, data: tuple[np.ndarray, ...]) -> Case:
    return jitted(
        f"{name}-wide",
        f"{name} where it is hard: far out, near zero, near one",
        lambda *arrays: [compute(x) for x in arrays],
        data,
        lambda *arrays: [
            within(ELEMENTWISE, Rounded.exactly(x).function(name, reference)) for x in arrays
        ],
    )


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
    *(_function_case(*row) for row in _WIDE),
    jitted(
        "exp2-wide",
        "a power of two, which may be exp(x * log(2)): far out that is less exact",
        jnp.exp2,
        (_FAR_OUT,),
        bounded(ELEMENTWISE, lambda x: (x * _LOG_2).exp()),
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
        "clamp-nextafter",
        "between two bounds of each, and the next number up or down",
        lambda x, y: [jax.lax.clamp(y - 1, x, y), jax.lax.nextafter(x, y)],
        (_X, np.round(_Y * 4)),
        lambda x, y: [exactly(np.clip(x, y - 1, y)), exactly(np.nextafter(x, y))],
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
