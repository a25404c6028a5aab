"""Cases of one call of one jitted function, which gives one array or several."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount._numerics.expected import exactly, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._numerics.expected import Expected

    Data = Sequence[np.ndarray] | Callable[[], Sequence[np.ndarray]]


def jitted(
    id: str,  # noqa: A002
    claim: str,
    compute: Callable[..., jax.Array | Sequence[jax.Array]],
    data: Data,
    expected: Callable[..., Expected | Sequence[Expected]],
) -> Case:
    """A case for one call of one jitted function; long data are a function that makes them."""

    def program(*arrays: jax.Array) -> jax.Array | Sequence[jax.Array]:
        return compute(*arrays)

    def run() -> Sequence[jax.Array]:
        # Without jit the function has its arguments as they are, and NumPy would compute.
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
    return _kept(data) if callable(data) else data


@lru_cache(maxsize=1)
def _kept(data: Callable[[], Sequence[np.ndarray]]) -> Sequence[np.ndarray]:
    """Long arrays take time: the program and its reference have the same."""
    return data()


def bounded(numerics: str, reference: Callable[..., Rounded]) -> Callable[..., Expected]:
    """The expectation that a computation with error bounds gives."""
    return lambda *arrays: within(numerics, reference(*map(Rounded.exactly, arrays)))


def same_bits(reference: Callable[..., Sequence[np.ndarray]]) -> Callable[..., list[Expected]]:
    """The expectation of exact results, computed in wide numbers and held in narrow ones."""
    return lambda *arrays: [exactly(_narrow(one)) for one in reference(*map(_wide, arrays))]


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64) if values.dtype == np.float32 else values


def _narrow(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    to = {"float64": np.float32, "int64": np.int32}.get(values.dtype.name)
    return values if to is None else values.astype(to)
