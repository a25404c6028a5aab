"""Sums of 1-D arrays by `cache_independent_count`: lengths, dtypes, and data made to hurt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import ml_dtypes
import numpy as np

from jitcount.numerics.expected import REDUCTION, exactly, within, within_complex
from jitcount.numerics.rounding import Rounded
from jitcount.problem import cache_independent_count
from jitcount.suite.case import Case
from jitcount.suite.data import floats, ones, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from jitcount.numerics.expected import Expected

_LENGTHS = (0, 1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_LONG = 100_000

_NARROW = {"float16", "bfloat16"}


def with_x64() -> AbstractContextManager[None]:
    """64-bit types for a block, under the name that this release of JAX has for it."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)  # noqa: FBT003
    from jax import experimental  # noqa: PLC0415 (gone from there in later releases)

    return experimental.enable_x64()  # type: ignore[attr-defined]


def true_sum(values: np.ndarray) -> Rounded:
    """What `jnp.sum` gives; it adds 16-bit numbers in float32 and rounds once, at the end."""
    dtype = values.dtype.name
    if dtype in _NARROW:
        return Rounded.exactly(values, "float32").sum().to(dtype)
    return Rounded.exactly(values).sum()


def _case(
    id: str,  # noqa: A002
    claim: str,
    data: Callable[[], tuple[np.ndarray, np.ndarray]],
    expected: Callable[[np.ndarray, np.ndarray], Expected],
) -> Case:
    """A case for one call; wide dtypes are called with x64 on."""

    def program() -> Sequence[jax.Array]:
        one, other = data()
        if one.dtype.itemsize == 8 and one.dtype.kind != "c":
            with with_x64():
                return [cache_independent_count(one, other)]
        return [cache_independent_count(one, other)]

    return Case(
        id=id,
        claim=claim,
        program=program,
        expected=lambda: [expected(*data())],
        compiles={"sum": 2, "add": 1},
    )


def _reduction(one: np.ndarray, other: np.ndarray) -> Expected:
    return within(REDUCTION, true_sum(one) + true_sum(other))


def _complex_reduction(one: np.ndarray, other: np.ndarray) -> Expected:
    real = true_sum(one.real) + true_sum(other.real)
    imaginary = true_sum(one.imag) + true_sum(other.imag)
    return within_complex(REDUCTION, real, imaginary)


def _whole(one: np.ndarray, other: np.ndarray) -> Expected:
    """Whole numbers, and floats whose partial sums are all representable."""
    total = one.astype(np.float64).sum() + other.astype(np.float64).sum()
    dtype = np.int32 if one.dtype.kind in "bi" and one.dtype.itemsize < 8 else one.dtype
    return exactly(np.array(total, dtype))


def _alternating() -> np.ndarray:
    return np.where(np.arange(_LONG) % 2, np.float32(1e8), np.float32(1e-8)).astype(np.float32)


def _cancelling() -> np.ndarray:
    half = spread(_LONG // 2) * np.float32(1e6)
    return np.concatenate([half, floats(1), -half[::-1]])


def _sorted() -> np.ndarray:
    return np.sort(np.abs(spread(_LONG)))


def _sorted_down() -> np.ndarray:
    return _sorted()[::-1].copy()


ADVERSARIAL: dict[str, tuple[str, Callable[[], np.ndarray]]] = {
    "all-tenths": ("0.1 a hundred thousand times", lambda: np.full(_LONG, 0.1, np.float32)),
    "huge-and-tiny": ("1e8 and 1e-8 in turns", _alternating),
    "ascending": ("sorted, the smallest first", _sorted),
    "descending": ("sorted, the largest first", _sorted_down),
    "cancelling": ("all but 1.0 cancels out", _cancelling),
    "denormals": ("none is a normal float32", lambda: spread(1_000) * np.float32(1e-38)),
}

# What is not a number, and what is too large for one; the second array is always 1, 2, 3.
_SPECIAL = {
    "nan": (floats(1, np.nan, 2), np.nan),
    "infinity": (floats(1, np.inf), np.inf),
    "infinities-cancel": (floats(np.inf, -np.inf), np.nan),
    "overflow": (floats(3e38, 3e38), np.inf),
    "overflow-float16": (np.array([60_000, 60_000], np.float16), np.inf),
}


def _sums_of_lengths() -> list[Case]:
    return [
        _case(
            f"sum-{length}",
            f"a sum of {length:,} float32, in any order",
            lambda length=length: (spread(length), floats(1, 2, 3, 4)),  # type: ignore[misc]
            _reduction,
        )
        for length in _LENGTHS
    ]


def _sums_of_hard_data() -> list[Case]:
    return [
        _case(
            f"sum-{name}",
            f"a sum of data made to hurt: {about}",
            lambda data=data: (data(), floats(1, 2, 3)),  # type: ignore[misc]
            _reduction,
        )
        for name, (about, data) in ADVERSARIAL.items()
    ]


def _sums_of_specials() -> list[Case]:
    return [
        _case(
            f"sum-{name}",
            f"a sum that is {special}",
            lambda data=data: (data, np.array([1, 2, 3, 4], data.dtype)),  # type: ignore[misc]
            lambda one, _, special=special: exactly(np.array(special, one.dtype)),  # type: ignore[misc]
        )
        for name, (data, special) in _SPECIAL.items()
    ]


def _sums_of_dtypes() -> list[Case]:
    cases = [
        _case(
            f"sum-{dtype}",
            f"a sum of 1,000 {dtype}",
            lambda dtype=dtype: (  # type: ignore[misc]
                spread(1_000).astype(_numpy(dtype)),
                np.array([1, 2, 3], _numpy(dtype)),
            ),
            _reduction,
        )
        for dtype in ("float16", "bfloat16", "float64")
    ]
    cases += [
        _case(
            f"sum-whole-{dtype}",
            f"a sum of 1,000 whole numbers held as {dtype}: equal to the bit",
            lambda dtype=dtype: (ones(1_000, dtype), ones(24, dtype)),  # type: ignore[misc]
            _whole,
        )
        for dtype in ("bool", "int8", "int32", "int64", "uint32", "float16", "float32", "float64")
    ]
    cases.append(
        _case(
            "sum-complex64",
            "a sum of complex numbers, part by part",
            lambda: (
                (spread(1_000) + 1j * spread(1_000, seed=2)).astype(np.complex64),
                np.array([1, 2j, 3], np.complex64),
            ),
            _complex_reduction,
        )
    )
    return cases


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


SUM_CASES = (
    *_sums_of_lengths(),
    *_sums_of_hard_data(),
    *_sums_of_specials(),
    *_sums_of_dtypes(),
)
