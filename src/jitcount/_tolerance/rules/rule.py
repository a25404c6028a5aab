"""The table of rules, and what they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Compute = Callable[..., Any]
    """Takes the lanes and the operands; returns the result, or a sequence of several."""

    Make = Callable[[Any], Compute]
    """Takes an equation."""


class NotFollowedError(Exception):
    """A program has something that no rule follows; the text says what."""


RULES: dict[str, Make] = {}
"""What makes the computation of an equation, by the name of its primitive."""


def rule(*names: str) -> Callable[[Make], Make]:
    """Register a rule for primitives."""

    def add(make: Make) -> Make:
        for name in names:
            RULES[name] = make
        return make

    return add


def dtype_of(atom: Any) -> str:
    """The name of the dtype of an equation's operand or result."""
    return str(atom.aval.dtype.name)


def is_inexact(dtype: str) -> bool:
    """Whether a dtype has floats or complex numbers, of whatever width."""
    return "float" in dtype or "complex" in dtype


def same_lanes(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Arrays with the same number of lanes; those of one lane are repeated, without a copy."""
    count = max(array.shape[0] for array in arrays)
    return [np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays]


def lane_by_lane(compute: Callable[..., np.ndarray], *operands: np.ndarray) -> np.ndarray:
    """Compute each lane by itself; for what depends on places that differ between lanes."""
    spread = same_lanes(list(operands))
    return np.stack([compute(*each) for each in zip(*spread, strict=True)])


def of_same_rank(equation: Any, arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Operands that broadcast against each other: JAX lets scalars stand beside arrays."""
    rank = equation.outvars[0].aval.ndim
    return [
        array if array.ndim == rank + 1 else array.reshape(array.shape[0], *[1] * rank)
        for array in arrays
    ]
