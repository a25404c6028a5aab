"""Functions as people write them, with arguments: what tolerances are tried on."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Program = tuple[Callable[..., Any], Sequence[Any]]

PROGRAMS: dict[str, Callable[[np.random.Generator], Program]] = {}
"""By name, what makes a function and its arguments of random data."""


def _program(make: Callable[[np.random.Generator], Program]) -> Callable[..., Program]:
    PROGRAMS[make.__name__.strip("_").replace("_", " ")] = make
    return make


def _normal(data: np.random.Generator, *shape: int) -> np.ndarray:
    return data.normal(size=shape).astype(np.float32)


def _uniform(data: np.random.Generator, *shape: int) -> np.ndarray:
    return data.uniform(size=shape).astype(np.float32)


def _weights(data: np.random.Generator, *sizes: int) -> list[np.ndarray]:
    pairs = itertools.pairwise(sizes)
    return [_normal(data, n, m) / np.float32(math.sqrt(n)) for n, m in pairs]


# --- Sums and statistics --------------------------------------------------------------------------


@_program
def _sum_of_many(data: np.random.Generator) -> Program:
    return jnp.sum, (_normal(data, 100_000),)


@_program
def _sums_of_rows(data: np.random.Generator) -> Program:
    return lambda x: (x.sum(0), x.sum(1), x.max(0), x.prod(1)), (_normal(data, 300, 70),)


@_program
def _mean_and_variance(data: np.random.Generator) -> Program:
    return lambda x: (x.mean(0), x.var(0), x.std()), (_normal(data, 1000, 8) + 3,)


@_program
def _variance_of_squares(data: np.random.Generator) -> Program:
    return lambda x: (x * x).mean() - x.mean() ** 2, (_normal(data, 1000) + 100,)


@_program
def _count_of_a_mask(data: np.random.Generator) -> Program:
    return lambda x: ((x > 0).sum(), (x > 0).astype(jnp.float32).mean()), (_normal(data, 3000),)


@_program
def _cumulative_sums(data: np.random.Generator) -> Program:
    return lambda x: (jnp.cumsum(x), jnp.cumprod(1 + x[:300] / 10)), (_normal(data, 5000),)


@_program
def _quantiles(data: np.random.Generator) -> Program:
    at = np.array([0.1, 0.5], np.float32)
    return lambda x: (jnp.quantile(x, at), jnp.sort(x)[::7], lax.top_k(x, 5)), (_normal(data, 501),)


@_program
def _ranks(data: np.random.Generator) -> Program:
    return lambda x: (jnp.argsort(x, 1), jnp.argmax(x, 1), jnp.argmin(x)), (_normal(data, 40, 130),)


@_program
def _segment_sums(data: np.random.Generator) -> Program:
    places = data.integers(0, 16, 2000).astype(np.int32)
    return lambda x, i: jax.ops.segment_sum(x, i, 16), (_normal(data, 2000, 3), places)


@_program
def _histogram(data: np.random.Generator) -> Program:
    return lambda x: jnp.bincount(x, length=32), (data.integers(0, 32, 4000).astype(np.int32),)


# --- Networks -------------------------------------------------------------------------------------


def _attended(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T / 8) @ v


@_program
def _attention(data: np.random.Generator) -> Program:
    return _attended, [_normal(data, 128, 64) for _ in range(3)]


@_program
def _gradient_of_attention(data: np.random.Generator) -> Program:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return (_attended(q, k, v) ** 2).mean()

    return jax.grad(loss, (0, 1, 2)), [_normal(data, 64, 32) for _ in range(3)]


@_program
def _layer_norm(data: np.random.Generator) -> Program:
    def normalised(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    return normalised, (_normal(data, 32, 512),)


@_program
def _perceptron_s_gradient(data: np.random.Generator) -> Program:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = jax.nn.relu(x @ w)
        return (x**2).mean()

    return jax.grad(loss), (_weights(data, 64, 130, 16), _normal(data, 33, 64))


@_program
def _adam_steps(data: np.random.Generator) -> Program:
    def steps(w: Any, x: Any) -> Any:
        mean, square = jnp.zeros_like(w), jnp.zeros_like(w)
        for step in range(1, 4):
            slope = jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            corrected = jnp.sqrt(square / (1 - 0.999**step))
            w = w - 0.01 * (mean / (1 - 0.9**step)) / (corrected + 1e-8)
        return w

    return steps, (_normal(data, 32, 8), _normal(data, 16, 32))


@_program
def _convolutions(data: np.random.Generator) -> Program:
    def network(x: Any, w: Any) -> Any:
        found = jax.nn.gelu(lax.conv(x, w, (1, 1), "SAME"))
        return lax.reduce_window(found, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    return network, (_normal(data, 2, 8, 16, 16), _normal(data, 4, 8, 3, 3))


@_program
def _gradient_of_convolutions(data: np.random.Generator) -> Program:
    def loss(x: Any, w: Any) -> Any:
        return (lax.conv(x, w, (2, 2), "SAME") ** 2).mean()

    return jax.grad(loss, (0, 1)), (_normal(data, 2, 4, 16, 16), _normal(data, 4, 4, 3, 3))


@_program
def _embeddings(data: np.random.Generator) -> Program:
    def loss(table: Any, words: Any) -> Any:
        return (table[words] ** 2).sum()

    words = data.integers(0, 32, 500).astype(np.int32)
    return jax.value_and_grad(loss), (_normal(data, 32, 4), words)


@_program
def _one_hot_products(data: np.random.Generator) -> Program:
    words = data.integers(0, 200, 16).astype(np.int32)
    return lambda i, table: jax.nn.one_hot(i, 200) @ table, (words, _normal(data, 200, 8))


@_program
def _cross_entropy(data: np.random.Generator) -> Program:
    def loss(logits: Any, labels: Any) -> Any:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean()

    labels = data.integers(0, 10, 32).astype(np.int32)
    return jax.value_and_grad(loss), (3 * _normal(data, 32, 10), labels)


@_program
def _dropout(data: np.random.Generator) -> Program:
    key = np.array([0, data.integers(1 << 30)], np.uint32)

    def dropped(key: Any, x: Any) -> Any:
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0).sum(1)

    return dropped, (key, _normal(data, 64, 130))


@_program
def _random_numbers(data: np.random.Generator) -> Program:
    key = np.array([0, data.integers(1 << 30)], np.uint32)
    return lambda key: (jax.random.normal(key, (500,)), jax.random.permutation(key, 50)), (key,)


@_program
def _half_precision(data: np.random.Generator) -> Program:
    def network(weights: Any, x: Any) -> Any:
        return jax.nn.gelu(x @ weights[0]) @ weights[1]

    weights = [jnp.bfloat16(w) for w in _weights(data, 64, 128, 16)]
    return network, (weights, jnp.bfloat16(_normal(data, 32, 64)))


# --- Loops ----------------------------------------------------------------------------------------


@_program
def _recurrent_network(data: np.random.Generator) -> Program:
    def network(w: Any, rows: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            state = jnp.tanh(state @ w + row)
            return state, state.sum()

        return lax.scan(step, jnp.zeros(32), rows)

    return network, (_normal(data, 32, 32) / 6, _normal(data, 100, 32))


@_program
def _gradient_through_a_scan(data: np.random.Generator) -> Program:
    def loss(w: Any, rows: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            gate = jax.nn.sigmoid(row @ w)
            return (1 - gate) * state + gate * row, None

        return (lax.scan(step, jnp.zeros(16), rows)[0] ** 2).mean()

    return jax.grad(loss), (_normal(data, 16, 16) / 4, _normal(data, 50, 16))


@_program
def _newton_s_method(data: np.random.Generator) -> Program:
    def root(a: Any) -> Any:
        return lax.while_loop(lambda s: jnp.abs(s * s - a) > 1e-3, lambda s: 0.5 * (s + a / s), a)

    return root, (np.float32(5 + data.uniform()),)


@_program
def _kalman_filter(data: np.random.Generator) -> Program:
    move = np.array([[1, 0.1], [0, 1]], np.float32)

    def run(seen: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            mean, spread = state
            mean, spread = move @ mean, move @ spread @ move.T + 0.01 * jnp.eye(2)
            gain = spread[:, 0] / (spread[0, 0] + 0.1)
            mean = mean + gain * (y - mean[0])
            return (mean, spread - jnp.outer(gain, spread[0])), mean

        return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), seen)[1]

    return run, (_normal(data, 200),)


# --- Algebra and special functions ----------------------------------------------------------------


@_program
def _linear_system(data: np.random.Generator) -> Program:
    return jnp.linalg.solve, (_normal(data, 32, 32) + 4 * np.eye(32, dtype="f4"), _normal(data, 32))


@_program
def _cholesky_and_determinant(data: np.random.Generator) -> Program:
    half = _normal(data, 24, 24)
    matrix = (half @ half.T / 24 + np.eye(24)).astype(np.float32)
    return lambda a: (jnp.linalg.cholesky(a), jnp.linalg.slogdet(a)[1]), (matrix,)


@_program
def _eigenvalues(data: np.random.Generator) -> Program:
    half = _normal(data, 16, 16)
    return jnp.linalg.eigvalsh, ((half + half.T).astype(np.float32),)


@_program
def _spectrum(data: np.random.Generator) -> Program:
    return lambda x: jnp.abs(jnp.fft.fft(x)), (_normal(data, 512),)


@_program
def _distances(data: np.random.Generator) -> Program:
    def between(x: Any) -> Any:
        squares = (x**2).sum(1)
        return jnp.maximum(squares[:, None] + squares - 2 * x @ x.T, 0)

    return between, (_normal(data, 40, 8),)


@_program
def _log_likelihood(data: np.random.Generator) -> Program:
    def likelihood(x: Any) -> Any:
        return special.gammaln(x) - x * jnp.log(x) + special.digamma(x), special.erf(x - 2)

    return likelihood, (0.5 + 4 * _uniform(data, 64),)


@_program
def _trigonometry(data: np.random.Generator) -> Program:
    def of(x: Any) -> Any:
        return jnp.sin(10 * x), jnp.cos(x) * jnp.exp(-x), jnp.tan(x / 3), jnp.arctan2(x, 1 + x)

    return of, (3 * _normal(data, 200),)


@_program
def _powers_and_roots(data: np.random.Generator) -> Program:
    def of(x: Any) -> Any:
        return jnp.sqrt(x), x**0.3, x**3, 1 / x, jnp.log1p(x), jnp.expm1(x), jnp.cbrt(x), x**-2.0

    return of, (0.1 + 3 * _uniform(data, 300),)


@_program
def _quantised(data: np.random.Generator) -> Program:
    def to_bytes(x: Any) -> Any:
        narrow = jnp.clip(jnp.round(x), -127, 127).astype(jnp.int8)
        return narrow, narrow.astype(jnp.int32) @ narrow.T.astype(jnp.int32), narrow >> 2

    return to_bytes, (np.float32(data.integers(-200, 200, (20, 150)) / 2 + 0.125),)


@_program
def _interpolated(data: np.random.Generator) -> Program:
    at = np.linspace(0, 1, 11, dtype=np.float32)
    return lambda x, y: jnp.interp(x, at, y), (_uniform(data, 100), _normal(data, 11))


@_program
def _padded_and_rolled(data: np.random.Generator) -> Program:
    def of(x: Any, i: Any) -> Any:
        rolled = jnp.roll(jnp.pad(x, ((1, 2), (0, 3))), 3, 1)
        return rolled[::-1, ::2], lax.dynamic_slice(x, (i, i), (4, 5)), x.at[:, 3].set(0).T

    return of, (_normal(data, 12, 130), np.int32(data.integers(0, 20)))


# --- Numbers that are special ---------------------------------------------------------------------


@_program
def _masked_attention(data: np.random.Generator) -> Program:
    def attended(q: Any, k: Any) -> Any:
        scores = jnp.where(jnp.tril(jnp.ones((130, 130), bool)), q @ k.T / 8, -jnp.inf)
        return jax.nn.softmax(scores), scores.max(1), jax.nn.logsumexp(scores, 1)

    return attended, (_normal(data, 130, 16), _normal(data, 130, 16))


@_program
def _largest_of_negatives(data: np.random.Generator) -> Program:
    return lambda x: (x.max(1), x.max(), lax.cummax(x, 1)), (-1 - _uniform(data, 7, 130),)


@_program
def _energies(data: np.random.Generator) -> Program:
    return lambda x: (jnp.exp(x), jnp.exp(-x), jnp.logaddexp(x, -x)), (
        20 + 40 * _uniform(data, 200),
    )


@_program
def _small_likelihoods(data: np.random.Generator) -> Program:
    small = np.float32(1e-17)
    return lambda p, q: (p * q, (p * q).sum()), (
        small * _uniform(data, 300),
        small * _uniform(data, 300),
    )


@_program
def _missing_values(data: np.random.Generator) -> Program:
    x = np.where(_uniform(data, 60, 30) < 0.1, np.float32(np.nan), _normal(data, 60, 30))

    def of(x: Any) -> Any:
        return jnp.nanmean(x, 0), jnp.maximum(x, 0), x.max(1), jnp.isnan(x).sum(), x.sum(1)

    return of, (x,)


@_program
def _infinite_values(data: np.random.Generator) -> Program:
    x = np.where(_uniform(data, 60, 30) < 0.05, np.float32(np.inf), _normal(data, 60, 30))
    return lambda x: (x.sum(1), x - x, 1 / x, jnp.exp(-x), x * 2, x.max(0)), (x,)
