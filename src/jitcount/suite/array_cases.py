"""What one jitted function of arrays gives: elementwise, reduced, multiplied, and put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount.numerics.expected import (
    COMPOSITE,
    ELEMENTWISE,
    MATMUL,
    REDUCTION,
    exactly,
    within,
    within_complex,
)
from jitcount.numerics.rounding import Rounded
from jitcount.suite.case import Case
from jitcount.suite.data import floats, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount.numerics.expected import Expected

_HIGHEST = jax.lax.Precision.HIGHEST


def _case(
    id: str,  # noqa: A002
    claim: str,
    compute: Callable[..., jax.Array],
    data: Sequence[np.ndarray],
    expected: Callable[..., Expected],
) -> Case:
    """A case for one call of one jitted function."""

    def program(*arrays: jax.Array) -> jax.Array:
        return compute(*arrays)

    return Case(
        id=id,
        claim=claim,
        program=lambda: [jax.jit(program)(*data)],
        expected=lambda: [expected(*data)],
        compiles={"program": 1},
    )


def _bounded(numerics: str, reference: Callable[..., Rounded]) -> Callable[..., Expected]:
    """The expectation that a computation with error bounds gives."""
    return lambda *arrays: within(numerics, reference(*map(Rounded.exactly, arrays)))


# --- Elementwise --------------------------------------------------------------------------------

_X = spread(257, seed=3) * np.float32(8)
_Y = spread(257, seed=4) + np.float32(1)
_POSITIVE = np.abs(_X) + np.float32(0.01)
_SPECIALS = floats(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e-40, -3e38)
_DENORMALS = spread(64, seed=5) * np.float32(1e-38)

ELEMENTWISE_CASES = (
    _case("add", "x + y", jnp.add, (_X, _Y), _bounded(ELEMENTWISE, lambda x, y: x + y)),
    _case("multiply", "x * y", jnp.multiply, (_X, _Y), _bounded(ELEMENTWISE, lambda x, y: x * y)),
    _case("divide", "x / y", jnp.divide, (_X, _Y), _bounded(ELEMENTWISE, lambda x, y: x / y)),
    _case("sqrt", "the square root", jnp.sqrt, (_POSITIVE,), _bounded(ELEMENTWISE, Rounded.sqrt)),
    _case("exp", "the exponential", jnp.exp, (_X,), _bounded(ELEMENTWISE, Rounded.exp)),
    _case(
        "log",
        "the logarithm, away from 1",
        jnp.log,
        (_POSITIVE,),
        _bounded(ELEMENTWISE, Rounded.log),
    ),
    _case("tanh", "the hyperbolic tangent", jnp.tanh, (_X,), _bounded(ELEMENTWISE, Rounded.tanh)),
    _case("sin", "the sine of small angles", jnp.sin, (_X,), _bounded(ELEMENTWISE, Rounded.sin)),
    *(
        _case(
            f"multiply-{dtype.__name__}",
            f"x * y in {dtype.__name__}",
            jnp.multiply,
            (_X.astype(dtype), _Y.astype(dtype)),
            _bounded(ELEMENTWISE, lambda x, y: x * y),
        )
        for dtype in (np.float16, ml_dtypes.bfloat16)
    ),
    _case(
        "multiply-complex64",
        "a product of complex numbers",
        jnp.multiply,
        (_X + 1j * _Y, _Y - 1j * _X),
        lambda a, b: within_complex(ELEMENTWISE, *_complex_product(a, b)),
    ),
    _case(
        "double-denormals",
        "twice a denormal: right, or zero where denormals are flushed",
        lambda x: 2 * x,
        (_DENORMALS,),
        _bounded(ELEMENTWISE, lambda x: x * 2.0),
    ),
    _case(
        "negate-specials",
        "NaN, infinities and signed zeros change their sign, and nothing else",
        jnp.negative,
        (_SPECIALS[:6],),
        lambda x: exactly(-x),
    ),
    _case(
        "compare-specials",
        "a NaN is larger than nothing, and equal to nothing",
        lambda x: jnp.stack([x > 0, x == x, x == 0]),  # noqa: PLR0124 (that is how NaN is told)
        (_SPECIALS[:6],),
        lambda x: exactly(np.stack([x > 0, x == x, x == 0])),  # noqa: PLR0124
    ),
    _case(
        "maximum-specials",
        "the larger one, and NaN where one is NaN",
        lambda x: jnp.maximum(x, 1),
        (_SPECIALS,),
        lambda x: exactly(np.maximum(x, np.float32(1))),
    ),
    _case(
        "overflow-int32",
        "the largest whole number and one more is the smallest",
        lambda x: x + 1,
        (np.array([2**31 - 1, -1], np.int32),),
        lambda _: exactly(np.array([-(2**31), 0], np.int32)),
    ),
    _case(
        "exp-overflows",
        "an exponential that float32 does not hold is infinite",
        jnp.exp,
        (floats(100, 1000, -1000),),
        lambda _: exactly(floats(np.inf, np.inf, 0)),
    ),
)


def _complex_product(a: np.ndarray, b: np.ndarray) -> tuple[Rounded, Rounded]:
    (ar, ai), (br, bi) = ((Rounded.exactly(z.real), Rounded.exactly(z.imag)) for z in (a, b))
    return ar * br - ai * bi, ar * bi + ai * br


# --- Reductions ---------------------------------------------------------------------------------

_TABLE = spread(300, 200, seed=6)
_ROWS = spread(32, 100, seed=7) * np.float32(10)
_SERIES = spread(1_000, seed=8)


def _logsumexp(x: Rounded) -> Rounded:
    largest = x.max(1, keepdims=True)
    return ((x - largest).exp().sum(1, keepdims=True).log() + largest)[:, 0]


def _softmax(x: Rounded) -> Rounded:
    raised = (x - x.max(1, keepdims=True)).exp()
    return raised / raised.sum(1, keepdims=True)


def _layer_norm(x: jax.Array) -> jax.Array:
    centred = x - jnp.mean(x, 1, keepdims=True)
    variance = jnp.mean(centred * centred, 1, keepdims=True)
    return centred / jnp.sqrt(variance + np.float32(1e-5))


def _true_layer_norm(x: Rounded) -> Rounded:
    centred = x - x.mean(1, keepdims=True)
    variance = (centred * centred).mean(1, keepdims=True)
    return centred / (variance + 1e-5).sqrt()


REDUCTION_CASES = (
    _case(
        "sum-axis-0",
        "sums of columns",
        lambda x: jnp.sum(x, 0),
        (_TABLE,),
        _bounded(REDUCTION, lambda x: x.sum(0)),
    ),
    _case(
        "sum-axis-1",
        "sums of rows",
        lambda x: jnp.sum(x, 1),
        (_TABLE,),
        _bounded(REDUCTION, lambda x: x.sum(1)),
    ),
    _case("mean", "a mean", jnp.mean, (_TABLE,), _bounded(REDUCTION, Rounded.mean)),
    _case("var", "a variance", jnp.var, (_SERIES,), _bounded(COMPOSITE, Rounded.var)),
    _case("cumsum", "running sums", jnp.cumsum, (_SERIES,), _bounded(REDUCTION, Rounded.cumsum)),
    _case(
        "max",
        "the largest: equal to the bit",
        jnp.max,
        (_TABLE,),
        lambda x: exactly(np.array(x.max())),
    ),
    _case(
        "argmax",
        "where the largest is",
        lambda x: jnp.argmax(x, 1).astype("int32"),
        (_TABLE,),
        lambda x: exactly(x.argmax(1).astype(np.int32)),
    ),
    _case(
        "logsumexp",
        "the logarithm of a sum of exponentials",
        lambda x: jax.nn.logsumexp(x, 1),
        (_ROWS,),
        _bounded(COMPOSITE, _logsumexp),
    ),
    _case(
        "softmax",
        "exponentials that sum to one",
        jax.nn.softmax,
        (_ROWS,),
        _bounded(COMPOSITE, _softmax),
    ),
    _case(
        "layer-norm",
        "rows of mean zero and variance one",
        _layer_norm,
        (_ROWS,),
        _bounded(COMPOSITE, _true_layer_norm),
    ),
)


# --- Products of matrices -----------------------------------------------------------------------

_LEFT, _RIGHT = spread(64, 96, seed=9), spread(96, 32, seed=10)

MATMUL_CASES = (
    _case(
        "matmul",
        "a product with its precision pinned to that of float32",
        lambda a, b: jnp.matmul(a, b, precision=_HIGHEST),
        (_LEFT, _RIGHT),
        # A TPU puts a float32 product together from several of bfloat16: not to the last bit.
        _bounded(MATMUL, lambda a, b: a.matmul(b, ulps=2.0)),
    ),
    _case(
        "matmul-default",
        "a product in each backend's default: bfloat16 on a TPU, TF32 on a GPU",
        jnp.matmul,
        (_LEFT, _RIGHT),
        _bounded(MATMUL, lambda a, b: a.matmul(b, inputs="bfloat16", ulps=2.0)),
    ),
    _case(
        "matmul-bfloat16",
        "a product of bfloat16, added up in float32",
        lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32),
        (_LEFT.astype(ml_dtypes.bfloat16), _RIGHT.astype(ml_dtypes.bfloat16)),
        lambda a, b: within(
            MATMUL, Rounded.exactly(a, "float32").matmul(Rounded.exactly(b, "float32"))
        ),
    ),
    _case(
        "matmul-whole",
        "a product of whole numbers held as float32: equal to the bit",
        lambda a, b: jnp.matmul(a, b, precision=_HIGHEST),
        (np.round(_LEFT * 8), np.round(_RIGHT * 8)),
        lambda a, b: exactly((a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)),
    ),
)

ARRAY_CASES = (*ELEMENTWISE_CASES, *REDUCTION_CASES, *MATMUL_CASES)
