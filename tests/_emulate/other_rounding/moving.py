"""What a function returns as it is, and with other roundings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import jitcount

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(32, 32)).astype(np.float32)
WHOLE = RANDOM.integers(-50, 50, size=(32, 32)).astype(np.float32)


def here_and_moved(
    f: Callable[..., Any], *arguments: Any, seed: int = 0, scale: float | None = None
) -> tuple[Any, Any]:
    """What a jitted function returns on this machine, and with other roundings."""
    jitted = jax.jit(f)
    here = jax.tree.map(np.asarray, jitted(*arguments))
    with jitcount.as_if(f"rounding:{seed}", scale=scale) as emulation:
        moved = jax.tree.map(np.asarray, jitted(*arguments))
    assert [str(each) for each in emulation.programs if not each.faithful] == []
    return here, moved


def ulps(here: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """How many ulps apart two results are."""
    return np.asarray(np.abs(moved - here) / np.spacing(np.abs(here)))


def assert_unmoved(f: Callable[..., Any], *arguments: Any) -> None:
    """Assert that a result is the same to the bit with other roundings."""
    for seed in range(2):
        here, moved = here_and_moved(f, *arguments, seed=seed)
        for one, other in zip(jax.tree.leaves(here), jax.tree.leaves(moved), strict=True):
            np.testing.assert_array_equal(other, one)
