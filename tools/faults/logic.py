"""Faults with special numbers: NaN, infinities, signed zeros, the largest integers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tools.faults.arithmetic import is_float, may_combine
from tools.faults.fault import Family

LOGIC = Family("logic")
_fault = LOGIC.fault


@_fault("sum-swallows-nan", "a sum takes NaN for zero", "reduce_sum")
def _sum_swallows_nan(original: Any, x: Array, **parameters: Any) -> Array:
    if is_float(x):
        x = jnp.where(jnp.isnan(x), jnp.zeros_like(x), x)
    return original(x, **parameters)


@_fault("maximum-swallows-nan", "of NaN and a number the number is the larger one", "max", "min")
def _maximum_swallows_nan(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    found = original(a, b, **parameters)
    if not is_float(found) or may_combine(found):
        return found
    return jnp.where(jnp.isnan(a), b, jnp.where(jnp.isnan(b), a, found))


@_fault(
    "largest-swallows-nan",
    "the largest of some numbers and NaN is a number",
    "reduce_max",
    "reduce_min",
)
def _largest_swallows_nan(original: Any, x: Array, **parameters: Any) -> Array:
    if is_float(x):
        neutral = -jnp.inf if "max" in original.primitive.name else jnp.inf
        x = jnp.where(jnp.isnan(x), jnp.asarray(neutral, x.dtype), x)
    return original(x, **parameters)


@_fault("negative-zero-lost", "minus zero is zero", "neg")
def _negative_zero_lost(original: Any, x: Array, **parameters: Any) -> Array:
    return jnp.where(x == 0, jnp.zeros_like(x), original(x, **parameters))


def _clipped(x: Array) -> Array:
    """Replace infinities by the largest finite numbers."""
    if not is_float(x):
        return x
    return jnp.nan_to_num(x, nan=jnp.nan)


@_fault("sum-clips-infinity", "a sum that is infinite is the largest number", "reduce_sum")
def _sum_clips(original: Any, x: Array, **parameters: Any) -> Array:
    return _clipped(original(x, **parameters))


@_fault("exp-clips-infinity", "an exponential that overflows is the largest number", "exp")
def _exp_clips(original: Any, x: Array, **parameters: Any) -> Array:
    return _clipped(original(x, **parameters))


@_fault("infinities-cancel", "infinity less infinity is zero", "reduce_sum")
def _infinities_cancel(original: Any, x: Array, **parameters: Any) -> Array:
    found = original(x, **parameters)
    if not is_float(x):
        return found
    had_nan = original(jnp.isnan(x).astype(x.dtype), **parameters) > 0
    return jnp.where(jnp.isnan(found) & ~had_nan, jnp.zeros_like(found), found)


@_fault("whole-numbers-saturate", "a whole number that is too large stays the largest", "add")
def _saturate(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    found = original(a, b, **parameters)
    if not jnp.issubdtype(found.dtype, jnp.signedinteger):
        return found
    ends = np.iinfo(found.dtype)
    above = (b > 0) & (found < a)
    below = (b < 0) & (found > a)
    clipped = jnp.where(above, jnp.asarray(ends.max, found.dtype), found)
    return jnp.where(below, jnp.asarray(ends.min, found.dtype), clipped)


@_fault("sum-of-whole-numbers-in-16-bits", "a sum of whole numbers wraps at 32,768", "reduce_sum")
def _in_16_bits(original: Any, x: Array, **parameters: Any) -> Array:
    found = original(x, **parameters)
    if not jnp.issubdtype(found.dtype, jnp.integer):
        return found
    return found.astype(jnp.int16).astype(found.dtype)


@_fault("sum-of-whole-numbers-in-8-bits", "a sum of whole numbers wraps at 128", "reduce_sum")
def _in_8_bits(original: Any, x: Array, **parameters: Any) -> Array:
    found = original(x, **parameters)
    if not jnp.issubdtype(found.dtype, jnp.integer):
        return found
    return found.astype(jnp.int8).astype(found.dtype)


@_fault("nan-equals-nan", "NaN is equal to NaN", "eq")
def _nan_equals_nan(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    found = original(a, b, **parameters)
    return found | (jnp.isnan(a) & jnp.isnan(b)) if is_float(a) else found


@_fault("nan-is-larger", "NaN is larger than a number", "gt", "ge")
def _nan_is_larger(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    found = original(a, b, **parameters)
    return found | jnp.isnan(a) if is_float(a) else found


@_fault("select-inverted", "a choice takes the other one", "select_n")
def _select_inverted(original: Any, which: Array, *choices: Array, **parameters: Any) -> Array:
    if which.dtype == jnp.bool_:
        return original(~which, *choices, **parameters)
    return original(which, *reversed(choices), **parameters)


@_fault("imaginary-sign", "a product of complex numbers adds where it should subtract", "mul")
def _imaginary_sign(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    if jnp.issubdtype(a.dtype, jnp.complexfloating):
        b = jnp.conj(b)
    return original(a, b, **parameters)
