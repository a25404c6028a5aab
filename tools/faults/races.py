"""Races: a result is right most of the time, but once in a hundred calls a part comes too late."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tools.faults.arithmetic import LANES, as_matrices, count, may_combine, places, product, times
from tools.faults.fault import Family

TIME = Family("time")
_fault = TIME.fault

ONCE_IN = 100


class Clock:
    """Counts calls, so that races strike the same ones in every run."""

    def __init__(self) -> None:
        self.calls = 0

    def start(self, at: int) -> None:
        """Restart the count at a distance from the next strike."""
        self.calls = at

    def strikes(self) -> np.ndarray:
        """Count a call; returns whether a race strikes it."""
        self.calls += 1
        return np.array(self.calls % ONCE_IN == 0)


CLOCK = Clock()


def _is_struck() -> Array:
    """Whether a race strikes this call; decided when the program runs, not when it is compiled."""
    return jax.pure_callback(CLOCK.strikes, jax.ShapeDtypeStruct((), np.bool_))


@_fault("sum-race", "once in a hundred sums the first tile is not there yet", "reduce_sum")
def _sum_race(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    if count(x, axes) == 0:
        return original(x, axes=axes, **more)
    late = (places(x, axes) < LANES) & _is_struck()
    return original(times(x, (~late).astype(jnp.int32)), axes=axes, **more)


@_fault("dot-race", "once in a hundred products the first terms are not there yet", "dot_general")
def _dot_race(original: Any, a: Array, b: Array, *, dimension_numbers: Any, **more: Any) -> Array:
    left, right, shape = as_matrices(a, b, dimension_numbers)
    late = (places(left, (2,)) < 8) & _is_struck()
    return product(original, times(left, (~late).astype(jnp.int32)), right, shape, **more)


@_fault("add-race", "once in a hundred sums of two one of them is not there yet", "add")
def _add_race(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    if may_combine(a):
        return original(a, b, **parameters)
    late = jnp.where(_is_struck(), jnp.zeros_like(b), b)
    return original(a, late, **parameters)
