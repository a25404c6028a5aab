"""The claims about `cache_independent_count`, as cases.

Arguments are NumPy arrays, because making a JAX array can be a compile itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from jitcount._problem import cache_independent_count
from jitcount._suite.case import Case, exactly_these
from jitcount._suite.data import floats, ones

if TYPE_CHECKING:
    from collections.abc import Sequence

_RAGGED_LENGTHS = range(1, 21)


def _first_example() -> Sequence[jax.Array]:
    return [cache_independent_count(floats(1, 2), floats(3))]


def _second_example() -> Sequence[jax.Array]:
    return [cache_independent_count(floats(1, 2, 3), floats(4, 3, 2, 1))]


def _same_shape() -> Sequence[jax.Array]:
    return [cache_independent_count(ones(3), ones(3)) for _ in range(3)]


def _second_shape() -> Sequence[jax.Array]:
    return [cache_independent_count(ones(3), ones(3)), cache_independent_count(ones(3), ones(4))]


def _back_to_the_first_shape() -> Sequence[jax.Array]:
    return [cache_independent_count(ones(length), ones(length)) for length in (3, 4, 3)]


def _another_dtype() -> Sequence[jax.Array]:
    return [
        cache_independent_count(ones(3), ones(3)),
        cache_independent_count(ones(3, "int32"), ones(3, "int32")),
    ]


def _mixed_dtypes() -> Sequence[jax.Array]:
    return [cache_independent_count(ones(3), ones(3, "int32"))]


def _empty() -> Sequence[jax.Array]:
    return [cache_independent_count(ones(0), ones(3))]


def _scalar_then_array() -> Sequence[jax.Array]:
    @jax.jit
    def scale(x: jax.Array, by: float | np.ndarray) -> jax.Array:
        return jnp.sum(x * by)

    return [scale(ones(3), 2.0), scale(ones(3), 4.0), scale(ones(3), np.array(2, np.float32))]


def _ragged_lengths() -> Sequence[jax.Array]:
    return [cache_independent_count(ones(n), ones(n)) for n in _RAGGED_LENGTHS]


def _wrapper_per_call() -> Sequence[jax.Array]:
    def wrapped_anew(x_a: np.ndarray, x_b: np.ndarray) -> jax.Array:
        jitted_sum = jax.jit(jnp.sum)
        return jitted_sum(x_a) + jitted_sum(x_b)

    return [wrapped_anew(ones(3), ones(4)) for _ in range(3)]


def _inside_jit() -> Sequence[jax.Array]:
    return [jax.jit(cache_independent_count)(ones(3), ones(4))]


PROBLEM_CASES = (
    Case(
        id="first-example",
        claim="[1, 2] and [3] give 6.0; two lengths, two compiles of sum",
        program=_first_example,
        expected=exactly_these(6.0),
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        id="second-example",
        claim="[1, 2, 3] and [4, 3, 2, 1] give 16.0",
        program=_second_example,
        expected=exactly_these(16.0),
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        id="same-shape",
        claim="the same shape compiles once, however often it is called",
        program=_same_shape,
        expected=exactly_these(6.0, 6.0, 6.0),
        compiles={"sum": 1, "add": 1},
    ),
    Case(
        id="second-shape",
        claim="a second shape compiles once more; the add of two scalars does not",
        program=_second_shape,
        expected=exactly_these(6.0, 7.0),
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        id="back-to-the-first-shape",
        claim="going back to the first shape compiles nothing",
        program=_back_to_the_first_shape,
        expected=exactly_these(6.0, 8.0, 6.0),
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        id="another-dtype",
        claim="another dtype compiles the sum and the add again",
        program=_another_dtype,
        expected=exactly_these(6.0, 6),
        compiles={"sum": 2, "add": 2},
    ),
    Case(
        id="mixed-dtypes",
        claim="two dtypes are two sums, and one add that promotes",
        program=_mixed_dtypes,
        expected=exactly_these(6.0),
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        id="empty",
        claim="an empty array is a shape like any other",
        program=_empty,
        expected=exactly_these(3.0),
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        id="scalar-then-array",
        claim="a Python scalar is weakly typed: a 0-d array of the same value compiles again",
        program=_scalar_then_array,
        expected=exactly_these(6.0, 12.0, 6.0),
        compiles={"scale": 2},
    ),
    Case(
        id="ragged-lengths",
        claim="20 ragged lengths compile 20 times",
        program=_ragged_lengths,
        expected=exactly_these(*(2.0 * n for n in _RAGGED_LENGTHS)),
        compiles={"sum": 20, "add": 1},
    ),
    Case(
        id="wrapper-per-call",
        claim="a wrapper made at every call compiles no more often: it only costs dispatch",
        program=_wrapper_per_call,
        expected=exactly_these(7.0, 7.0, 7.0),
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        id="inside-jit",
        claim="inside another jit it is part of that program",
        program=_inside_jit,
        expected=exactly_these(7.0),
        compiles={"cache_independent_count": 1},
    ),
)
