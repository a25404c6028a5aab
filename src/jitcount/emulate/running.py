"""Runs a function of the user's once more, in another way, and takes its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount.emulate.as_if import emulated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jitcount.emulate.emulating import Emulator
    from jitcount.emulate.result import EmulatedProgram


@dataclass(frozen=True)
class Run:
    """What a function gave, and what was compiled for that."""

    leaves: list[np.ndarray]
    """All arrays of the result that hold floats, in its order."""

    programs: Sequence[EmulatedProgram]

    @property
    def norm(self) -> float:
        """Of all numbers together."""
        return float(np.sqrt(sum(np.linalg.norm(leaf) ** 2 for leaf in self.leaves)))

    def distance(self, other: Run) -> float:
        """How far the numbers are from another run's, by the norm."""
        pairs = zip(self.leaves, other.leaves, strict=True)
        return float(np.sqrt(sum(np.linalg.norm(one - two) ** 2 for one, two in pairs)))

    @property
    def cycles(self) -> int | None:
        """Of all programs together, each run once, by the target's own estimate."""
        known = [p.cycles for p in self.programs if p.cycles is not None]
        return sum(known) or None


def run(
    emulator: Emulator,
    f: Callable[..., Any],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> Run:
    """Call a function as an emulator's target would; everything is compiled anew for that."""
    with emulated(emulator, anew=True) as emulation:
        result = f(*arguments, **named)
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(result)]
    floats = [leaf for leaf in leaves if leaf.dtype.kind not in "biuO"]
    return Run([_wide(leaf) for leaf in floats], emulation.programs)


def _wide(leaf: np.ndarray) -> np.ndarray:
    return leaf.astype(np.complex128 if leaf.dtype.kind == "c" else np.float64)
