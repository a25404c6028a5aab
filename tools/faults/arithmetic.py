"""What several faults use: places along an axis, narrower numbers, products as matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Exponent and mantissa, for `reduce_precision`: XLA may drop a conversion there and back, but not
# that.
BFLOAT16, FLOAT16, TF32 = (8, 7), (5, 10), (8, 10)

# How many values a kernel works on at once.
LANES = 128
TILE = 1024


def is_float(x: Array) -> bool:
    """Whether an array holds real floating-point numbers."""
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def is_float32(*arrays: Array) -> bool:
    """Whether all arrays are float32."""
    return all(x.dtype == jnp.float32 for x in arrays)


def is_highest(precision: Any) -> bool:
    """Whether a product was requested at full float32 precision."""
    each = precision if isinstance(precision, tuple) else (precision,)
    return lax.Precision.HIGHEST in each


def may_combine(x: Array) -> bool:
    """Whether a collective or a scatter may add with this: XLA takes only scalars there."""
    return not x.ndim


def by_parts(compute: Callable[[Array], Array], x: Array) -> Array:
    """Apply a function to the parts of complex numbers, or to real numbers."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return lax.complex(compute(lax.real(x)), compute(lax.imag(x)))
    return compute(x)


def rounded(x: Array, form: tuple[int, int]) -> Array:
    """Round floating-point numbers to a narrower form; integers stay."""
    return by_parts(lambda part: lax.reduce_precision(part, *form) if is_float(part) else part, x)


def places(x: Array, axes: Sequence[int]) -> Array:
    """The number of each value along the axes, counted as a kernel goes: int32, x's shape."""
    number = jnp.zeros(x.shape, jnp.int32)
    for axis in axes:
        number = number * x.shape[axis] + lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return number


def count(x: Array, axes: Sequence[int]) -> int:
    """How many values there are along the axes."""
    return math.prod(x.shape[axis] for axis in axes)


def times(x: Array, how_often: Array) -> Array:
    """Each value times how often it counts: never, once or twice."""
    never = jnp.where(how_often == 0, jnp.zeros_like(x), x)
    return jnp.where(how_often == 2, never + never, never)


def one_ulp_nearer_to_zero(x: Array) -> Array:
    """The next number of the same type whose magnitude is smaller; zeros stay."""
    whole = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, whole)
    return jnp.where(x == 0, x, lax.bitcast_convert_type(bits - 1, x.dtype))


def truncated_sum(a: Array, b: Array) -> Array:
    """The sum of two float32 arrays, rounded toward zero."""
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)
    return _truncated(total, error)


def truncated_product(a: Array, b: Array) -> Array:
    """The product of two float32 arrays, rounded toward zero."""
    total = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = ((a_high * b_high - total) + a_high * b_low + a_low * b_high) + a_low * b_low
    return _truncated(total, error)


def _truncated(nearest: Array, error: Array) -> Array:
    """The nearest number, or the one nearer to zero if the nearest lies beyond the true one."""
    is_beyond = jnp.isfinite(nearest) & ((error < 0) & (nearest > 0) | (error > 0) & (nearest < 0))
    return jnp.where(is_beyond, one_ulp_nearer_to_zero(nearest), nearest)


def _halves(x: Array) -> tuple[Array, Array]:
    high = lax.reduce_precision(x, 8, 11)
    return high, x - high


def as_matrices(a: Array, b: Array, dimension_numbers: Any) -> tuple[Array, Array, tuple[int, ...]]:
    """A product's factors as [batch, rows, terms] and [batch, columns, terms], and its shape."""
    (terms_a, terms_b), (batch_a, batch_b) = dimension_numbers
    rows = [axis for axis in range(a.ndim) if axis not in {*terms_a, *batch_a}]
    columns = [axis for axis in range(b.ndim) if axis not in {*terms_b, *batch_b}]
    shape = [a.shape[axis] for axis in (*batch_a, *rows)] + [b.shape[axis] for axis in columns]

    def matrices(x: Array, *axes: Sequence[int]) -> Array:
        moved = lax.transpose(x, tuple(int(axis) for group in axes for axis in group))
        return moved.reshape([count(x, group) for group in axes])

    return matrices(a, batch_a, rows, terms_a), matrices(b, batch_b, columns, terms_b), tuple(shape)


def product(original: Any, a: Array, b: Array, shape: Sequence[int], **parameters: Any) -> Array:
    """The product of two factors that `as_matrices` returned."""
    numbers = (((2,), (2,)), ((0,), (0,)))
    return original(a, b, dimension_numbers=numbers, **parameters).reshape(shape)
