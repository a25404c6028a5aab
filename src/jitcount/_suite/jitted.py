"""Cases of one call of one jitted function that returns one array or several."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import jax
import numpy as np

from jitcount._numerics.expected import exactly, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._numerics.expected import Expected

    Data = Sequence[np.ndarray] | Callable[[], Sequence[np.ndarray]]

T = TypeVar("T")


def jitted(
    id: str,  # noqa: A002
    claim: str,
    compute: Callable[..., jax.Array | Sequence[jax.Array]],
    data: Data,
    expected: Callable[..., Expected | Sequence[Expected]],
) -> Case:
    """The case of one call of one jitted function; long data is a function that makes it."""

    def program(*arrays: jax.Array) -> jax.Array | Sequence[jax.Array]:
        return compute(*arrays)

    def run() -> Sequence[jax.Array]:
        # Without jit the function gets its arguments as they are, and NumPy would compute.
        put = jax.device_put if jax.config.values["jax_disable_jit"] else np.asarray
        return jax.tree.leaves(jax.jit(program)(*map(put, _made(data))))

    def reference() -> Sequence[Expected]:
        found = expected(*_made(data))
        return found if isinstance(found, list) else [found]  # type: ignore[list-item]

    return Case(
        id=id,
        claim=claim,
        program=run,
        expected=reference,
        compiles={"program": 1},
    )


def _made(data: Data) -> Sequence[np.ndarray]:
    return made_once(data) if callable(data) else data


@lru_cache(maxsize=1)
def made_once(data: Callable[[], T]) -> T:
    """What `data` makes; long arrays take time, so a program and its reference share them."""
    return data()


def bounded(numerics: str, reference: Callable[..., Rounded]) -> Callable[..., Expected]:
    """The expectation of a result within the bounds that its `reference` computes."""
    return lambda *arrays: within(numerics, reference(*map(Rounded.exactly, arrays)))


def same_bits(reference: Callable[..., Sequence[np.ndarray]]) -> Callable[..., list[Expected]]:
    """The expectation of exact results: a reference in float64, converted to their dtype."""
    return lambda *arrays: [exactly(_narrow(one)) for one in reference(*map(_wide, arrays))]


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64) if values.dtype == np.float32 else values


def _narrow(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    to = {"float64": np.float32, "int64": np.int32}.get(values.dtype.name)
    return values if to is None else values.astype(to)
