"""The claims about `cache_independent_count`, as cases.

Arguments are NumPy arrays: to make a JAX array can be a compile of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from jitcount.problem import cache_independent_count
from jitcount.suite.case import Case

if TYPE_CHECKING:
    from collections.abc import Sequence

_RAGGED_LENGTHS = range(1, 21)


def ones(length: int, dtype: str = "float32") -> np.ndarray:
    """A 1-D array whose sum is its length."""
    return np.ones(length, dtype)


def floats(*values: float) -> np.ndarray:
    """A 1-D float32 array."""
    return np.array(values, np.float32)


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
        "first-example",
        "[1, 2] and [3] give 6.0; two lengths, two compiles of sum",
        _first_example,
        values=[6.0],
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        "second-example",
        "[1, 2, 3] and [4, 3, 2, 1] give 16.0",
        _second_example,
        values=[16.0],
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        "same-shape",
        "the same shape compiles once, however often it is called",
        _same_shape,
        values=[6.0, 6.0, 6.0],
        compiles={"sum": 1, "add": 1},
    ),
    Case(
        "second-shape",
        "a second shape compiles once more; the add of two scalars does not",
        _second_shape,
        values=[6.0, 7.0],
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        "back-to-the-first-shape",
        "going back to the first shape compiles nothing",
        _back_to_the_first_shape,
        values=[6.0, 8.0, 6.0],
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        "another-dtype",
        "another dtype compiles the sum and the add again",
        _another_dtype,
        values=[6.0, 6],
        compiles={"sum": 2, "add": 2},
    ),
    Case(
        "mixed-dtypes",
        "two dtypes are two sums, and one add that promotes",
        _mixed_dtypes,
        values=[6.0],
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        "empty",
        "an empty array is a shape like any other",
        _empty,
        values=[3.0],
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        "scalar-then-array",
        "a Python scalar is weakly typed: a 0-d array of the same value compiles again",
        _scalar_then_array,
        values=[6.0, 12.0, 6.0],
        compiles={"scale": 2},
    ),
    Case(
        "ragged-lengths",
        "20 ragged lengths compile 20 times",
        _ragged_lengths,
        values=[2.0 * n for n in _RAGGED_LENGTHS],
        compiles={"sum": 20, "add": 1},
    ),
    Case(
        "wrapper-per-call",
        "a wrapper made at every call compiles no more often: it only costs dispatch",
        _wrapper_per_call,
        values=[7.0, 7.0, 7.0],
        compiles={"sum": 2, "add": 1},
    ),
    Case(
        "inside-jit",
        "inside another jit it is part of that program",
        _inside_jit,
        values=[7.0],
        compiles={"cache_independent_count": 1},
    ),
)
