"""Cases of `cache_independent_count`: how it is called, and what it must return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount._numerics.expected import REDUCTION, exactly, within, within_complex
from jitcount._numerics.rounding import Rounded
from jitcount._problem import cache_independent_count
from jitcount._suite.case import Case
from jitcount._suite.jitted import made_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from jitcount._numerics.expected import Expected

    # The arguments of one call.
    Pair = tuple[np.ndarray, np.ndarray]

    # What a call must return, computed from its arguments.
    Reference = Callable[[np.ndarray, np.ndarray], Expected]

_NARROW = {"float16", "bfloat16"}


def with_x64() -> AbstractContextManager[None]:
    """64-bit types for a block, under the name that this release of JAX has for it."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)  # noqa: FBT003
    from jax import experimental  # noqa: PLC0415 (gone from there in later releases)

    return experimental.enable_x64()  # type: ignore[attr-defined]


def true_sum(values: np.ndarray, *, has_pattern: bool = False) -> Rounded:
    """What `jnp.sum` returns; it adds 16-bit numbers in float32 and rounds once, at the end."""
    dtype = values.dtype.name
    if dtype in _NARROW:
        return Rounded.exactly(values, "float32").sum(has_pattern=has_pattern).to(dtype)
    return Rounded.exactly(values).sum(has_pattern=has_pattern)


def case_of_call(
    id: str,  # noqa: A002
    claim: str,
    data: Callable[[], Pair],
    expected: Reference,
) -> Case:
    """The case of one call of `cache_independent_count`."""
    return case_of_calls(id, claim, lambda: [data()], expected, sums=2)


def case_of_calls(
    id: str,  # noqa: A002
    claim: str,
    data: Callable[[], Sequence[Pair]],
    expected: Reference,
    sums: int,
) -> Case:
    """The case of several calls, whose arrays have `sums` different lengths in all."""
    return Case(
        id=id,
        claim=claim,
        program=lambda: [_call(*pair) for pair in made_once(data)],
        expected=lambda: [expected(*pair) for pair in made_once(data)],
        compiles={"sum": sums, "add": 1},
    )


def _call(one: np.ndarray, other: np.ndarray) -> jax.Array:
    """Call it, with x64 on for dtypes of 64 bits."""
    if one.dtype.itemsize == 8 and one.dtype.kind != "c":
        with with_x64():
            return cache_independent_count(one, other)
    return cache_independent_count(one, other)


def reduction(one: np.ndarray, other: np.ndarray) -> Expected:
    """The expectation of a sum of numbers without a pattern."""
    return within(REDUCTION, true_sum(one) + true_sum(other))


def with_pattern(one: np.ndarray, other: np.ndarray) -> Expected:
    """The expectation of a sum of repeated numbers: all roundings may go the same way."""
    return within(REDUCTION, true_sum(one, has_pattern=True) + true_sum(other))


def complex_reduction(one: np.ndarray, other: np.ndarray) -> Expected:
    """The expectation of a sum of complex numbers, part by part."""
    real = true_sum(one.real) + true_sum(other.real)
    imaginary = true_sum(one.imag) + true_sum(other.imag)
    return within_complex(REDUCTION, real, imaginary)


def whole(one: np.ndarray, other: np.ndarray) -> Expected:
    """The expectation of an exact sum: of integers, or of floats whose partial sums are exact."""
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    total = one.astype(wide).sum() + other.astype(wide).sum()
    dtype = np.int32 if one.dtype.kind in "bi" and one.dtype.itemsize < 8 else one.dtype
    return exactly(np.array(total, dtype))
