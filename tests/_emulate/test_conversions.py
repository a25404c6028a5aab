"""Conversions to narrower types round once, to even, and keep the denormals of those types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from jitcount._emulate.writer import numpy_type
from jitcount._hlo.parser import FLOATS
from tests._emulate.cases import module, parameters

if TYPE_CHECKING:
    from tests._emulate.conftest import Run

NARROWER = sorted(FLOATS - {"f32", "f64"})
SOURCES = {"f32": np.float32, "f64": np.float64}


def every_number(element: str) -> np.ndarray:
    """All finite numbers of a type, in order, with one zero, as float64."""
    dtype = numpy_type(element)
    bits = np.arange(1 << (8 * dtype.itemsize), dtype=f"uint{8 * dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # a conversion of NaN from bfloat16 warns
        numbers = bits.view(dtype).astype(np.float64)
    return np.unique(numbers[np.isfinite(numbers)])


def conversions(source: str, element: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of a wider type, and what each is in a narrower one; no library rounds for that.

    Each number of the narrower type, what is halfway to the next, and what is just above and below.
    """
    numbers, dtype = every_number(element), np.dtype(SOURCES[source])
    if (source, element) == ("f64", "bf16"):  # XLA:CPU flushes these: they are float32's denormals
        numbers = numbers[np.abs(numbers) >= np.finfo(np.float32).smallest_normal]
    below, above = numbers[:-1], numbers[1:]
    is_next = (below >= 0) | (above <= 0)
    below, above = below[is_next], above[is_next]
    halfway = below / 2 + above / 2
    is_odd = below.astype(numpy_type(element)).view(f"uint{8 * numpy_type(element).itemsize}") & 1
    given = [
        numbers, halfway,
        np.nextafter(halfway.astype(dtype), np.array(np.inf, dtype)),
        np.nextafter(halfway.astype(dtype), np.array(-np.inf, dtype)),
    ]  # fmt: skip
    wanted = [numbers, np.where(is_odd, above, below), above, below]
    return np.concatenate(given).astype(dtype), np.concatenate(wanted)


def converted(run_hlo: Run, given: np.ndarray, source: str, element: str) -> list[Any]:
    """What a program makes of numbers: in the narrower type, and there and back again."""
    wide, narrow = f"{source}[{len(given)}]{{0}}", f"{element}[{len(given)}]{{0}}"
    lines = f"""
        {parameters(given)}
        %there = {narrow} convert(%p0)
        %back = {wide} convert(%there)
        ROOT %both = ({narrow}, {wide}) tuple(%there, %back)
        """
    return run_hlo(module(lines), given)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("element", NARROWER)
def test_every_number_and_all_between_round_to_the_nearest(
    run_hlo: Run, source: str, element: str
) -> None:
    given, wanted = conversions(source, element)
    made, back = converted(run_hlo, given, source, element)
    assert made.dtype == numpy_type(element)
    np.testing.assert_array_equal(made.astype(np.float64), wanted)
    np.testing.assert_array_equal(back.astype(np.float64), wanted)


@pytest.mark.parametrize("element", NARROWER)
def test_it_is_what_numpy_and_ml_dtypes_convert_to(run_hlo: Run, element: str) -> None:
    given, _ = conversions("f32", element)
    made, _ = converted(run_hlo, given, "f32", element)
    np.testing.assert_array_equal(made, given.astype(numpy_type(element)))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("element", NARROWER)
def test_beyond_the_largest_number_it_is_infinite_or_not_a_number(
    run_hlo: Run, source: str, element: str
) -> None:
    largest = every_number(element)[-1]
    given = np.array([1.5 * largest, -1.5 * largest, np.inf, -np.inf, np.nan, 0.0, -0.0])
    if (source, element) == ("f32", "bf16"):
        given[:2] = np.inf, -np.inf
    given = given.astype(SOURCES[source])
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = given.astype(numpy_type(element)).astype(np.float64)
        for made in converted(run_hlo, given, source, element):
            found = made.astype(np.float64)
            np.testing.assert_array_equal(found, wanted)
            # The sign of a zero, too, where the type has two; that of NaN is not defined.
            np.testing.assert_array_equal(np.signbit(found[-2:]), np.signbit(wanted[-2:]))
