"""How far a chip's own result may be from its emulation: what is the hardware's own, bounded.

An order of summation and the last ulps of a function are not known here. Each is bounded by
`numerics`, as it is for every backend; the bounds are carried to the result by the program itself,
which is run a few times with all of them moved, up or down by chance, by their whole bound. It is
an estimate: of the directions in which all could go, a few are tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcount.emulate.running import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.emulate.emulating import Emulator

DRAWS = 4


@dataclass(frozen=True)
class Leeway:
    """How far the numbers of a result may be off."""

    target: str
    result: str
    """The function's name."""

    off: tuple[np.ndarray, ...]
    """Of each array of floats that the result holds, how far each element may be off."""

    relative: float
    """The same of all together, by the norm."""

    def __str__(self) -> str:
        return (
            f"As if on {self.target}: {self.result} may be {self.relative:.2g} of its size off, "
            "by that chip's own order of sums and last ulps"
        )


def leeway(emulator: Emulator, f: Callable[..., Any], *arguments: Any, **named: Any) -> Leeway:
    """Find out how far a chip's own ``f(*arguments)`` may be from what is computed here."""
    here = run(emulator, f, arguments, named)
    moved = [run(replace(emulator, draw=n + 1), f, arguments, named) for n in range(DRAWS)]
    off = tuple(
        np.max([np.abs(one.leaves[at] - leaf) for one in moved], axis=0)
        for at, leaf in enumerate(here.leaves)
    )
    far = float(np.sqrt(sum(float(np.linalg.norm(each)) ** 2 for each in off)))
    name = getattr(f, "__name__", "") or "the result"
    return Leeway(emulator.target.name, name, off, far / here.norm if here.norm else far)
