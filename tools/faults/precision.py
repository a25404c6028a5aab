"""Faults of precision: sums in a narrow type, rounded factors, fast functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array, lax

from tools.faults.arithmetic import (
    BFLOAT16,
    FLOAT16,
    LANES,
    TF32,
    as_matrices,
    by_parts,
    is_float,
    is_float32,
    is_highest,
    may_combine,
    one_ulp_nearer_to_zero,
    rounded,
    truncated_product,
    truncated_sum,
)
from tools.faults.fault import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PRECISION = Family("precision")
_fault = PRECISION.fault


# --- What is added up -----------------------------------------------------------------------------


def _reduced(x: Array, axes: Sequence[int], add: Callable[[Array, Array], Array]) -> Array:
    """A sum with another addition; the sum of a scalar, or of no numbers, stays."""
    return by_parts(lambda part: lax.reduce(part, jnp.zeros((), part.dtype), add, axes), x)


def _sum_in(form: tuple[int, int]) -> Callable[..., Array]:
    def summed(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            return original(x, axes=axes, **more)
        if original.devices > 1:  # XLA has no collective with another addition
            return rounded(original(x, axes=axes, **more), form)
        return _reduced(x, axes, lambda a, b: rounded(a + b, form))

    return summed


_fault("sum-in-bfloat16", "a sum rounds to bfloat16 after each addition", "reduce_sum")(
    _sum_in(BFLOAT16)
)
_fault("sum-in-float16", "a sum rounds to float16 after each addition", "reduce_sum")(
    _sum_in(FLOAT16)
)


@_fault("sum-toward-zero", "a sum rounds toward zero at each addition", "reduce_sum")
def _sum_toward_zero(original: Any, x: Array, *, axes: Any, **more: Any) -> Array:
    if not is_float32(x) or original.devices > 1:
        return original(x, axes=axes, **more)
    return _reduced(x, axes, truncated_sum)


@_fault("sum-off-by-1e-4", "a sum is off by one part in ten thousand", "reduce_sum")
def _sum_off(original: Any, x: Array, **parameters: Any) -> Array:
    total = original(x, **parameters)
    if not is_float(total):
        return total
    return total * jnp.asarray(1 + 1e-4, total.dtype)


@_fault("cumsum-in-bfloat16", "running sums are carried on in bfloat16", "cumsum")
def _cumsum_in_bfloat16(original: Any, x: Array, *, axis: int, reverse: bool, **more: Any) -> Array:
    if not is_float(x):
        return original(x, axis=axis, reverse=reverse, **more)
    return lax.associative_scan(
        lambda a, b: rounded(a + b, BFLOAT16), x, axis=axis, reverse=reverse
    )


# How many pieces a product is added up in, and the fewest terms of a piece.
_PIECES, _PIECE = 16, 8


def _dot_added_in(form: tuple[int, int]) -> Callable[..., Array]:
    def added(original: Any, a: Array, b: Array, *, dimension_numbers: Any, **more: Any) -> Array:
        left, right, shape = as_matrices(a, b, dimension_numbers)
        terms = left.shape[2]
        if terms <= _PIECE or not is_float(a):
            return original(a, b, dimension_numbers=dimension_numbers, **more)
        if original.devices > 1:
            return rounded(original(a, b, dimension_numbers=dimension_numbers, **more), form)
        piece = max(_PIECE, -(-terms // _PIECES))
        left, right = (_in_pieces(factor, piece) for factor in (left, right))
        numbers = (((3,), (3,)), ((0, 1), (0, 1)))
        parts = original(left, right, dimension_numbers=numbers, **more)
        total = _reduced(rounded(parts, form), (1,), lambda a, b: rounded(a + b, form))
        return total.reshape(shape)

    return added


def _in_pieces(factor: Array, piece: int) -> Array:
    """[batch, rows, terms] as [batch, pieces, rows, terms of a piece], padded with zeros."""
    batch, rows, terms = factor.shape
    filled = jnp.pad(factor, ((0, 0), (0, 0), (0, -terms % piece)))
    return jnp.swapaxes(filled.reshape(batch, rows, -1, piece), 1, 2)


_fault("dot-in-bfloat16", "a product adds up in bfloat16", "dot_general")(_dot_added_in(BFLOAT16))
_fault("dot-in-float16", "a product adds up in float16", "dot_general")(_dot_added_in(FLOAT16))


# --- What is multiplied ---------------------------------------------------------------------------


def _factors_in(form: tuple[int, int]) -> Callable[..., Array]:
    def multiplied(original: Any, a: Array, b: Array, *, precision: Any, **more: Any) -> Array:
        if is_highest(precision):
            a, b = rounded(a, form), rounded(b, form)
        return original(a, b, precision=precision, **more)

    return multiplied


_fault(
    "highest-is-bfloat16",
    "factors are rounded to bfloat16 though all of float32 was asked for",
    "dot_general",
    "conv_general_dilated",
)(_factors_in(BFLOAT16))
_fault(
    "highest-is-tf32",
    "factors are rounded to TF32 though all of float32 was asked for",
    "dot_general",
    "conv_general_dilated",
)(_factors_in(TF32))


@_fault("conv-in-bfloat16", "a convolution is rounded to bfloat16", "conv_general_dilated")
def _conv_in_bfloat16(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    return rounded(original(a, b, **parameters), BFLOAT16)


# --- Single operations ----------------------------------------------------------------------------


@_fault("fast-reciprocal", "a quotient is a product with a reciprocal of 12 bits", "div")
def _fast_reciprocal(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    if not is_float32(a, b):
        return original(a, b, **parameters)
    return a * lax.reduce_precision(original(jnp.ones_like(b), b, **parameters), 8, 12)


@_fault("add-toward-zero", "a sum of two rounds toward zero", "add", "sub", "add_any")
def _add_toward_zero(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    if not is_float32(a, b) or may_combine(a):
        return original(a, b, **parameters)
    return truncated_sum(a, -b if original.primitive.name == "sub" else b)


@_fault("multiply-toward-zero", "a product of two rounds toward zero", "mul")
def _multiply_toward_zero(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    if not is_float32(a, b):
        return original(a, b, **parameters)
    return truncated_product(a, b)


@_fault(
    "narrow-toward-zero",
    "float32 becomes float16 or bfloat16 by leaving bits away",
    "convert_element_type",
)
def _narrow_toward_zero(original: Any, x: Array, **parameters: Any) -> Array:
    narrow = original(x, **parameters)
    forms = {jnp.dtype(jnp.bfloat16): BFLOAT16, jnp.dtype(jnp.float16): FLOAT16}
    if not is_float32(x) or narrow.dtype not in forms:
        return narrow
    is_beyond = jnp.abs(rounded(x, forms[narrow.dtype])) > jnp.abs(x)
    is_beyond &= jnp.isfinite(narrow)
    return jnp.where(is_beyond, one_ulp_nearer_to_zero(narrow), narrow)


def _fast(*primitives: str) -> None:
    """A function on a unit that works in bfloat16, which some chips have."""

    def fast(original: Any, x: Array, **parameters: Any) -> Array:
        return by_parts(
            lambda part: rounded(part, BFLOAT16) if is_float32(part) else part,
            original(x, **parameters),
        )

    name = primitives[0]
    _fault(f"fast-{name}", f"{name} is right to eight bits only", *primitives)(fast)


_fast("exp", "exp2")
_fast("log", "log1p")
_fast("tanh")
_fast("sin", "cos")
_fast("sqrt")
_fast("rsqrt")


@_fault("denormals-flushed-early", "what is below 2^-100 is taken for zero", "mul", "add")
def _flushed_early(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    found = original(a, b, **parameters)
    if not is_float32(found) or may_combine(found):
        return found
    return jnp.where(jnp.abs(found) < 2.0**-100, jnp.zeros_like(found), found)


@_fault("squares-in-bfloat16", "a square is rounded to bfloat16", "integer_pow", "square")
def _square_in_bfloat16(original: Any, x: Array, **parameters: Any) -> Array:
    return rounded(original(x, **parameters), BFLOAT16)


@_fault("lane-in-bfloat16", "one lane of 128 is rounded to bfloat16", "mul")
def _lane_in_bfloat16(original: Any, a: Array, b: Array, **parameters: Any) -> Array:
    found = original(a, b, **parameters)
    if not is_float32(found) or not found.ndim:
        return found
    lane = lax.broadcasted_iota(jnp.int32, found.shape, found.ndim - 1) % LANES
    return jnp.where(lane == LANES - 1, rounded(found, BFLOAT16), found)
