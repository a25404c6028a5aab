"""The table of the functions of each number by itself: how to call them, their true values, bounds.

A result may be off by some ulps of itself (`ulps`), by what it changes when an argument is off by
some ulps (`argument_ulps`: exp2(x) is exp(x * log(2)) on most backends, and that product is
rounded), and by ulps of a number that is cancelled out on the way (`cancelled`).

- The exhaustive tests of XLA let 20 ulps pass, if not less; CUDA's guide has 1 to 4 for nearly all.
  Here a CPU has 4, so that an error of 8 is always seen, and other backends may use up the 20.
- lgamma and digamma are Lanczos' sum with g = 7: what they subtract is as large as x + 7.5 and
  log(x + 7.5).
- The Bessel functions are sums of up to 25 Chebyshev polynomials, a rounding for each of them.
- What is declared (`igamma`, `zeta`, ...) iterates in float32, with the tolerance of JAX's tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import special

from jitcount._miscompiles.known import jaxlib_release

if TYPE_CHECKING:
    from collections.abc import Callable

    Compute = Callable[..., Any]
    Reference = Callable[..., np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of one or several floats, element by element."""

    name: str
    """The name of the primitive."""

    compute: Compute
    reference: Reference
    """Its true values, in double precision."""

    ulps: float = 4.0
    argument_ulps: float = 0.0
    cancelled: Reference | None = None
    """How large the numbers are that cancel out on the way to the result."""

    is_ieee: bool = False
    """Whether IEEE 754 defines the result to the last bit, also the sign of a zero."""

    relative: float = 0.0
    """A declared bound, as a part of the value."""

    about: str = ""
    """Which of several forms it is: the exponent of an integer power."""

    passes: Reference | None = None
    """The number in the middle of the way that must not leave the range, for it has no bound."""

    poles: tuple[float, ...] = ()
    """Arguments at which nothing defines it."""

    may: str = ""
    """Why this release may be further off than is expected; empty if it may not."""

    @property
    def id(self) -> str:
        """What the results of this form are called."""
        return f"{self.name}{self.about}"


def _sign(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, x, np.sign(x))


def _lgamma(x: np.ndarray) -> np.ndarray:
    """As C defines it, which is infinite at minus infinity; SciPy has another sign there."""
    return np.where(np.isinf(x), np.inf, special.gammaln(x))


def _rounded_half_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _cancelled_by_lgamma(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 8, 8.0, 0.0)


def _cancelled_by_digamma(x: np.ndarray) -> np.ndarray:
    return np.log(np.abs(x) + 7.5)


def _polygamma(order: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (-1.0) ** (order + 1) * special.gamma(order + 1) * special.zeta(order + 1, x)


def _power(exponent: int) -> Function:
    return Function(
        name="integer_pow",
        about=f"({exponent})",
        compute=lambda x: lax.integer_pow(x, exponent),
        reference=lambda x: x ** float(exponent),
        ulps=float(abs(exponent)) + 1,
        passes=lambda x: x ** float(abs(exponent)),
    )


_CBRT_MAY = (
    "before JAX 0.10, XLA:CPU's cube root was a power, whose exponent 1/3 is rounded"
    if jaxlib_release().startswith(("0.7.", "0.8.", "0.9."))
    else ""
)

ONE_ARGUMENT = (
    Function(name="neg", compute=lax.neg, reference=np.negative, is_ieee=True),
    Function(name="abs", compute=lax.abs, reference=np.abs, is_ieee=True),
    Function(name="sign", compute=lax.sign, reference=_sign, is_ieee=True),
    Function(name="floor", compute=lax.floor, reference=np.floor, is_ieee=True),
    Function(name="ceil", compute=lax.ceil, reference=np.ceil, is_ieee=True),
    Function(
        name="round",
        about=" half to even",
        compute=lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        reference=np.rint,
        is_ieee=True,
    ),
    Function(
        name="round",
        about=" half away from zero",
        compute=lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
        reference=_rounded_half_away,
        is_ieee=True,
    ),
    Function(name="square", compute=lax.square, reference=np.square, ulps=0.5),
    Function(
        name="one_minus_square",
        compute=getattr(lax, "one_minus_square", lambda x: (1 + x) * (1 - x)),
        reference=lambda x: (1 + x) * (1 - x),
        ulps=2.0,
    ),
    Function(name="sqrt", compute=lax.sqrt, reference=np.sqrt, ulps=3.0),
    Function(name="rsqrt", compute=lax.rsqrt, reference=lambda x: 1 / np.sqrt(x)),
    Function(name="cbrt", compute=lax.cbrt, reference=np.cbrt, may=_CBRT_MAY),
    Function(name="exp", compute=lax.exp, reference=np.exp),
    Function(name="exp2", compute=lax.exp2, reference=np.exp2, argument_ulps=1.0),
    Function(name="expm1", compute=lax.expm1, reference=np.expm1),
    Function(name="log", compute=lax.log, reference=np.log),
    Function(name="log2", compute=getattr(lax, "log2", jnp.log2), reference=np.log2),
    Function(name="log1p", compute=lax.log1p, reference=np.log1p),
    Function(name="sin", compute=lax.sin, reference=np.sin),
    Function(name="cos", compute=lax.cos, reference=np.cos),
    Function(name="tan", compute=lax.tan, reference=np.tan),
    Function(name="asin", compute=lax.asin, reference=np.arcsin),
    Function(name="acos", compute=lax.acos, reference=np.arccos),
    Function(name="atan", compute=lax.atan, reference=np.arctan),
    Function(name="sinh", compute=lax.sinh, reference=np.sinh, argument_ulps=1.0),
    Function(name="cosh", compute=lax.cosh, reference=np.cosh, argument_ulps=1.0),
    Function(name="tanh", compute=lax.tanh, reference=np.tanh),
    Function(name="asinh", compute=lax.asinh, reference=np.arcsinh),
    Function(name="acosh", compute=lax.acosh, reference=np.arccosh),
    Function(name="atanh", compute=lax.atanh, reference=np.arctanh),
    Function(name="logistic", compute=lax.logistic, reference=special.expit),
    Function(name="erf", compute=lax.erf, reference=special.erf),
    Function(name="erfc", compute=lax.erfc, reference=special.erfc, argument_ulps=1.0),
    Function(name="erf_inv", compute=lax.erf_inv, reference=special.erfinv),
    Function(
        name="lgamma",
        compute=lax.lgamma,
        reference=_lgamma,
        argument_ulps=1.0,
        cancelled=_cancelled_by_lgamma,
    ),
    Function(
        name="digamma",
        compute=lax.digamma,
        reference=special.digamma,
        poles=(0.0,),
        argument_ulps=1.0,
        cancelled=_cancelled_by_digamma,
    ),
    Function(name="bessel_i0e", compute=lax.bessel_i0e, reference=special.i0e, ulps=12.5),
    Function(name="bessel_i1e", compute=lax.bessel_i1e, reference=special.i1e, ulps=12.5),
    *(_power(exponent) for exponent in (2, 3, 7, -1, -2)),
)  # fmt: skip

TWO_ARGUMENTS = (
    Function(name="add", compute=lax.add, reference=np.add, is_ieee=True),
    Function(name="sub", compute=lax.sub, reference=np.subtract, is_ieee=True),
    Function(name="mul", compute=lax.mul, reference=np.multiply, is_ieee=True),
    Function(name="div", compute=lax.div, reference=np.divide, ulps=3.0),
    Function(name="rem", compute=lax.rem, reference=np.fmod, is_ieee=True),
    Function(name="max", compute=lax.max, reference=np.maximum, ulps=0.0),
    Function(name="min", compute=lax.min, reference=np.minimum, ulps=0.0),
    Function(name="atan2", compute=lax.atan2, reference=np.arctan2),
    Function(name="pow", compute=lax.pow, reference=np.power),
)

# Iterations: within what JAX's tests allow them, on arguments between these bounds.
DECLARED = (
    (
        Function(name="igamma", compute=lax.igamma, reference=special.gammainc, relative=1e-4),
        ((0.1, 30.0), (0.1, 60.0)),
    ),
    (
        Function(name="igammac", compute=lax.igammac, reference=special.gammaincc, relative=1e-4),
        ((0.1, 30.0), (0.1, 60.0)),
    ),
    (
        Function(name="zeta", compute=lax.zeta, reference=special.zeta, relative=1e-4),
        ((1.25, 6.0), (0.5, 8.0)),
    ),
    (
        Function(
            name="regularized_incomplete_beta",
            compute=lax.betainc,
            reference=special.betainc,
            relative=2e-4,
        ),
        ((0.25, 16.0), (0.25, 16.0), (0.02, 0.98)),
    ),
)


def _igamma_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative by the first argument: a difference, off by about 1e-9 of the step squared."""
    step = 1e-4 * a
    return (special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step)


IGAMMA_SLOPE = (
    Function(
        name="igamma_grad_a",
        compute=jax.vmap(jax.grad(lax.igamma)),
        reference=_igamma_slope,
        relative=2e-4,
        cancelled=lambda a, _: np.ones_like(a),
    ),
    ((0.5, 20.0), (0.5, 30.0)),
)
POLYGAMMA = Function(name="polygamma", compute=lax.polygamma, reference=_polygamma, relative=1e-4)
