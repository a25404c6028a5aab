"""A tolerance made by hand, for tests of what uses one: it says what a function's name asks for.

``host...`` looks at values, ``wrong...`` must return something else, the last element of
``flips...`` has no tolerance; any other must return what it does, within a millionth.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from jitcount._suite import returned
from jitcount._tolerance.tolerance import ExpectedResult
from jitcount._tolerance.tracing import NotTraceableError

WIDTH = 1e-6


def tolerance(f: Any, /, *args: Any, products: str = "float32", **kwargs: Any) -> Any:
    """Stands for `jitcount.tolerance`."""
    assert products == "float32"
    name = getattr(f, "__name__", "")
    if name.startswith("host"):
        raise NotTraceableError("float() of a traced value at cases.py:9")
    arrays = returned.named_arrays(f(*args, **kwargs))
    every = tuple(_expected(name, place, value) for place, value in arrays.items())
    none = {"lines": (), "products": products, "has_products": False}
    return SimpleNamespace(function=name, results=every, **none)


def _expected(name: str, place: str, value: np.ndarray) -> ExpectedResult:
    is_whole = value.dtype.kind in "biu"
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    reference = value if is_whole else value.astype(wide)
    width = np.zeros(value.shape) if is_whole else WIDTH * np.abs(reference)
    why = ""
    if name.startswith("wrong"):
        reference = reference + 1
    if name.startswith("flips"):
        width = np.where(np.arange(width.size) == width.size - 1, np.nan, width)
        why = "the branch at cases.py:9 flips in 3 of 8 draws"
    return ExpectedResult(place, value.dtype.name, reference, width, why)


def put_in_place() -> None:
    """Let this process derive tolerances so; a test in the same process uses monkeypatch."""
    jax.config.update("jax_platforms", "cpu")
    vars(returned)["tolerance"] = tolerance
