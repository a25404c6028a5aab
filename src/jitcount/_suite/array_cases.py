"""Reductions, products of matrices and what is composed of them, within their error bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount._numerics.expected import COMPOSITE, MATMUL, REDUCTION, exactly, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.data import one_sign, spread
from jitcount._suite.jitted import bounded, jitted

if TYPE_CHECKING:
    from jitcount._numerics.expected import Expected

_HIGHEST = jax.lax.Precision.HIGHEST


# --- Reductions -----------------------------------------------------------------------------------

_TABLE = spread(300, 200, seed=6)
_ROWS = spread(32, 100, seed=7) * np.float32(10)
_LARGE = _ROWS + np.where(np.arange(32) % 2, np.float32(1_000), np.float32(-1_000))[:, None]
_MASKED = np.where(np.tri(32, 100, 40, dtype=bool), _ROWS, np.float32(-1e9))
_SERIES = spread(1_000, seed=8)
_POSITIVES = one_sign(300, 257, seed=14)
_CLASSES = (np.arange(32) * 37 % 100).astype(np.int32)


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


def _cross_entropy(x: jax.Array, classes: jax.Array) -> jax.Array:
    hit = jax.nn.one_hot(classes, x.shape[1], dtype=x.dtype)
    return -jnp.mean(jnp.sum(hit * jax.nn.log_softmax(x), 1))


def _true_cross_entropy(x: np.ndarray, classes: np.ndarray) -> Expected:
    rows = Rounded.exactly(x)
    picked = rows[np.arange(len(classes)), classes]
    return within(COMPOSITE, (_logsumexp(rows) - picked).mean())


REDUCTION_CASES = (
    jitted(
        "sum-axis-0",
        "sums of columns",
        lambda x: jnp.sum(x, 0),
        (_TABLE,),
        bounded(REDUCTION, lambda x: x.sum(0)),
    ),
    jitted(
        "sum-axis-1",
        "sums of rows",
        lambda x: jnp.sum(x, 1),
        (_TABLE,),
        bounded(REDUCTION, lambda x: x.sum(1)),
    ),
    jitted(
        "sum-axes-positive",
        "sums of columns and of rows, of numbers between 1 and 2",
        lambda x: [jnp.sum(x, 0), jnp.sum(x, 1)],
        (_POSITIVES,),
        lambda x: [within(REDUCTION, Rounded.exactly(x).sum(axis)) for axis in (0, 1)],
    ),
    jitted("mean", "a mean", jnp.mean, (_TABLE,), bounded(REDUCTION, Rounded.mean)),
    jitted(
        "mean-positive",
        "a mean of numbers between 1 and 2",
        jnp.mean,
        (_POSITIVES,),
        bounded(REDUCTION, Rounded.mean),
    ),
    jitted("var", "a variance", jnp.var, (_SERIES,), bounded(COMPOSITE, Rounded.var)),
    jitted("cumsum", "running sums", jnp.cumsum, (_SERIES,), bounded(REDUCTION, Rounded.cumsum)),
    jitted(
        "cumsum-positive",
        "running sums of numbers between 1 and 2",
        jnp.cumsum,
        (one_sign(1_025, seed=15),),
        bounded(REDUCTION, Rounded.cumsum),
    ),
    jitted(
        "norm",
        "the square roots of sums of squares",
        lambda x: jnp.linalg.norm(x, axis=1),
        (_TABLE,),
        bounded(COMPOSITE, lambda x: (x * x).sum(1).sqrt()),
    ),
    jitted(
        "cross-entropy",
        "the loss of a classifier",
        _cross_entropy,
        (_ROWS, _CLASSES),
        _true_cross_entropy,
    ),
    jitted(
        "max",
        "the largest: equal to the bit",
        jnp.max,
        (_TABLE,),
        lambda x: exactly(np.array(x.max())),
    ),
    jitted(
        "argmax",
        "where the largest is",
        lambda x: jnp.argmax(x, 1).astype("int32"),
        (_TABLE,),
        lambda x: exactly(x.argmax(1).astype(np.int32)),
    ),
    jitted(
        "logsumexp",
        "the logarithm of a sum of exponentials",
        lambda x: jax.nn.logsumexp(x, 1),
        (_ROWS,),
        bounded(COMPOSITE, _logsumexp),
    ),
    jitted(
        "softmax",
        "exponentials that sum to one",
        jax.nn.softmax,
        (_ROWS,),
        bounded(COMPOSITE, _softmax),
    ),
    jitted(
        "softmax-large",
        "exponentials of numbers that overflow unless the largest is subtracted first",
        lambda x, y: [jax.nn.softmax(x), jax.nn.logsumexp(x, 1), jax.nn.softmax(y)],
        (_LARGE, _MASKED),
        lambda x, y: [
            within(COMPOSITE, reference(Rounded.exactly(data)))
            for reference, data in ((_softmax, x), (_logsumexp, x), (_softmax, y))
        ],
    ),
    jitted(
        "layer-norm",
        "rows of mean zero and variance one",
        _layer_norm,
        (_ROWS,),
        bounded(COMPOSITE, _true_layer_norm),
    ),
)


# --- Products of matrices -------------------------------------------------------------------------

_LEFT, _RIGHT = spread(64, 96, seed=9), spread(96, 32, seed=10)

_POSITIVE_PAIR = one_sign(31, 1_000, seed=16), one_sign(1_000, 9, seed=17)

MATMUL_CASES = (
    jitted(
        "matmul",
        "a product with its precision pinned to that of float32",
        lambda a, b: jnp.matmul(a, b, precision=_HIGHEST),
        (_LEFT, _RIGHT),
        # A TPU puts a float32 product together from several of bfloat16: not to the last bit.
        bounded(MATMUL, lambda a, b: a.matmul(b, ulps=2.0)),
    ),
    jitted(
        "matmul-positive",
        "a product of numbers between 1 and 2, in float32",
        lambda a, b: jnp.matmul(a, b, precision=_HIGHEST),
        _POSITIVE_PAIR,
        bounded(MATMUL, lambda a, b: a.matmul(b, ulps=2.0)),
    ),
    jitted(
        "matmul-default",
        "a product in each backend's default: bfloat16 on a TPU, TF32 on a GPU",
        jnp.matmul,
        (_LEFT, _RIGHT),
        lambda a, b: within(
            MATMUL,
            Rounded.exactly(a).matmul(Rounded.exactly(b), inputs="bfloat16", ulps=2.0),
            may="a TPU rounds the operands to bfloat16, a GPU to TF32",
        ),
    ),
    jitted(
        "matmul-bfloat16",
        "a product of bfloat16, added up in float32",
        lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32),
        (_LEFT.astype(ml_dtypes.bfloat16), _RIGHT.astype(ml_dtypes.bfloat16)),
        lambda a, b: within(
            MATMUL, Rounded.exactly(a, "float32").matmul(Rounded.exactly(b, "float32"))
        ),
    ),
    jitted(
        "matmul-whole",
        "a product of whole numbers held as float32: equal to the bit",
        lambda a, b: jnp.matmul(a, b, precision=_HIGHEST),
        (np.round(_LEFT * 8), np.round(_RIGHT * 8)),
        lambda a, b: exactly((a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)),
    ),
)

ARRAY_CASES = (*REDUCTION_CASES, *MATMUL_CASES)
