"""Sums of 1-D arrays by `cache_independent_count`: lengths, dtypes, and data made to hurt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from jitcount._numerics.expected import exactly
from jitcount._suite.data import floats, one_sign, ones, spread, weights
from jitcount._suite.sums import (
    case_of_call,
    case_of_calls,
    complex_reduction,
    reduction,
    whole,
    with_pattern,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._suite.case import Case
    from jitcount._suite.sums import Reference

_LENGTHS = (0, 1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_LONG = 100_000

# Around the vectors, tiles, blocks and windows that sums are cut into.
_TILES = {
    128: (127, 128, 129, 255, 256, 257),
    1024: (511, 512, 513, 1023, 1024, 1025),
    8192: (4095, 4096, 4097, 8191, 8192, 8193),
    131072: (65535, 65536, 65537, 131071, 131072, 131073),
}


def _alternating() -> np.ndarray:
    return np.where(np.arange(_LONG) % 2, np.float32(1e8), np.float32(1e-8)).astype(np.float32)


def _cancelling() -> np.ndarray:
    half = spread(_LONG // 2) * np.float32(1e6)
    return np.concatenate([half, floats(1), -half[::-1]])


def _sorted() -> np.ndarray:
    return np.sort(np.abs(spread(_LONG)))


def _sorted_down() -> np.ndarray:
    return _sorted()[::-1].copy()


ADVERSARIAL: dict[str, tuple[str, Callable[[], np.ndarray], Reference]] = {
    "all-tenths": (
        "0.1 a hundred thousand times",
        lambda: np.full(_LONG, 0.1, np.float32),
        with_pattern,
    ),
    "huge-and-tiny": ("1e8 and 1e-8 in turns", _alternating, with_pattern),
    # Sorted numbers that are near each other are rounded alike.
    "ascending": ("sorted, the smallest first", _sorted, with_pattern),
    "descending": ("sorted, the largest first", _sorted_down, with_pattern),
    "cancelling": ("all but 1.0 cancels out", _cancelling, reduction),
    "denormals": (
        "none is a normal float32",
        lambda: spread(1_000) * np.float32(1e-38),
        reduction,
    ),
}


def _one_in_many(special: float) -> np.ndarray:
    """An array whose last but one value differs: a wrong mask at the end loses that first."""
    values = np.arange(1025, dtype=np.float32)
    values[-2] = special
    return values


# NaNs and infinities; the second array is always 1, 2, 3.
_SPECIAL = {
    "nan": (floats(1, np.nan, 2), np.nan),
    "infinity": (floats(1, np.inf), np.inf),
    "infinities-cancel": (floats(np.inf, -np.inf), np.nan),
    "overflow": (floats(3e38, 3e38), np.inf),
    "overflow-float16": (np.array([60_000, 60_000], np.float16), np.inf),
    "one-nan-in-many": (_one_in_many(np.nan), np.nan),
    "one-infinity-in-many": (_one_in_many(-np.inf), -np.inf),
}


def _sums_of_lengths() -> list[Case]:
    return [
        case_of_call(
            f"sum-{length}",
            f"a sum of {length:,} float32, in any order",
            lambda length=length: (spread(length), floats(1, 2, 3, 4)),  # type: ignore[misc]
            reduction,
        )
        for length in _LENGTHS
    ]


def _whole_sums_of_lengths() -> list[Case]:
    """Sums of two sets of numbers: tiles that are alike in one are not in the other."""
    return [
        case_of_calls(
            f"sum-whole-{length}",
            f"a sum of {length:,} whole numbers held as float32: equal to the bit",
            lambda length=length: [  # type: ignore[misc]
                (weights(length, seed=seed), floats(1, 2, 3, 4)) for seed in (1, 2)
            ],
            whole,
            sums=2,
        )
        for length in _LENGTHS
    ]


def _whole_sums_around_tiles() -> list[Case]:
    return [
        case_of_calls(
            f"sum-around-{tile}",
            f"sums of {', '.join(f'{n:,}' for n in lengths)} whole numbers: equal to the bit",
            lambda lengths=lengths: [  # type: ignore[misc]
                (weights(one), weights(other, seed=2))
                for one, other in zip(lengths[::2], lengths[1::2], strict=True)
            ],
            whole,
            sums=len(lengths),
        )
        for tile, lengths in _TILES.items()
    ]


def _sums_of_one_sign() -> list[Case]:
    return [
        case_of_call(
            f"sum-positive-{length}",
            f"a sum of {length:,} float32 between 1 and 2: the bound is relative to the sum",
            lambda length=length: (one_sign(length), floats(1, 2, 3, 4)),  # type: ignore[misc]
            reduction,
        )
        for length in _LENGTHS[4:]
    ]


def _sums_of_hard_data() -> list[Case]:
    return [
        case_of_call(
            f"sum-{name}",
            f"a sum of data made to hurt: {about}",
            lambda data=data: (data(), floats(1, 2, 3)),  # type: ignore[misc]
            expected,
        )
        for name, (about, data, expected) in ADVERSARIAL.items()
    ]


def _sums_of_specials() -> list[Case]:
    return [
        case_of_call(
            f"sum-{name}",
            f"a sum that is {special}",
            lambda data=data: (data, np.array([1, 2, 3, 4], data.dtype)),  # type: ignore[misc]
            lambda one, _, special=special: exactly(np.array(special, one.dtype)),  # type: ignore[misc]
        )
        for name, (data, special) in _SPECIAL.items()
    ]


_WHOLE_DTYPES = (
    *("bool", "int8", "int32", "int64", "uint32"),
    *("float16", "bfloat16", "float32", "float64", "complex64"),
)


def _sums_of_dtypes() -> list[Case]:
    cases = [
        case_of_call(
            f"sum-{dtype}",
            f"a sum of 1,000 {dtype}",
            lambda dtype=dtype: (  # type: ignore[misc]
                spread(1_000).astype(_numpy(dtype)),
                np.array([1, 2, 3], _numpy(dtype)),
            ),
            reduction,
        )
        for dtype in ("float16", "bfloat16", "float64")
    ]
    cases += [
        case_of_call(
            f"sum-whole-{dtype}",
            f"a sum of 1,000 whole numbers held as {dtype}: equal to the bit",
            lambda dtype=dtype: (_ones_or_more(dtype), ones(24, _numpy(dtype))),  # type: ignore[misc]
            whole,
        )
        for dtype in _WHOLE_DTYPES
    ]
    cases.append(
        case_of_call(
            "sum-complex64",
            "a sum of complex numbers, part by part",
            lambda: (
                (spread(1_000) + 1j * spread(1_000, seed=2)).astype(np.complex64),
                np.array([1, 2j, 3], np.complex64),
            ),
            complex_reduction,
        )
    )
    return cases


def _ones_or_more(dtype: str) -> np.ndarray:
    """Weights if their sum stays exact, else ones; 16-bit floats round the sum at the end."""
    if dtype in {"bool", "int8", "float16", "bfloat16"}:
        return ones(1_000, _numpy(dtype))
    if dtype == "complex64":
        return (weights(1_000) + 1j * weights(1_000, seed=2)).astype(dtype)
    return weights(1_000, dtype)


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


SUM_CASES = (
    *_sums_of_lengths(),
    *_whole_sums_of_lengths(),
    *_whole_sums_around_tiles(),
    *_sums_of_one_sign(),
    *_sums_of_hard_data(),
    *_sums_of_specials(),
    *_sums_of_dtypes(),
)
