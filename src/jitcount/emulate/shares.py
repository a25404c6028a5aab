"""What makes the numbers differ: how much of a result's change comes from which line.

The program is run once with exact products, once as the target would, and then once more for each
line that rounds, with that line alone rounded. How far this moves the result is the line's part;
its share is that part of the sum of all. (With one line alone exact, as one would try by hand, the
others' roundings may add up or cancel, and what is left says little of that line.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount.emulate.arithmetic import EXACT
from jitcount.emulate.as_if import emulated

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.emulate.emulating import Emulator
    from jitcount.observe.call_site import CallSite


@dataclass(frozen=True, slots=True)
class Share:
    """Of one line."""

    place: CallSite
    what: str
    """The operation that is rounded there, and to what: ``"dot_general in bfloat16"``."""

    alone: float
    """How far its rounding alone moves the result, by the norm."""

    share: float
    """Of what all lines move it, each alone: 1 where this one makes all of it."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}: {self.share:.0%} of the change"


@dataclass(frozen=True, slots=True)
class Shares:
    """What changes a result on a target, by line, the largest share first."""

    target: str
    change: float
    """How far the target's result is from the one with exact products, by the norm."""

    scale: float
    """The norm of the result."""

    lines: tuple[Share, ...]

    def __str__(self) -> str:
        from jitcount.show.emulation_table import shares_table  # noqa: PLC0415 (to the right)
        from jitcount.show.terminal import render  # noqa: PLC0415

        return render(shares_table(self))


def shares(emulator: Emulator, f: Callable[..., Any], *arguments: Any, **named: Any) -> Shares:
    """Find out which lines make ``f(*arguments)`` differ on an emulator's target."""

    def run(how: Emulator) -> tuple[np.ndarray, Any]:
        with emulated(how) as emulation:
            return _numbers(f(*arguments, **named)), emulation

    exact, _ = run(replace(emulator, arithmetic=EXACT))
    there, emulation = run(emulator)
    what = {r.place: f"{r.what} in {r.to}" for p in emulation.programs for r in p.roundings}
    lines = emulation.lines()
    alone = {}
    for line in lines:
        others = frozenset(lines) - {line}
        rounded, _ = run(replace(emulator, exact=others))
        alone[line] = _distance(rounded, exact)
    total = sum(alone.values()) or 1.0
    parts = [Share(line, what[line], part, part / total) for line, part in alone.items()]
    parts.sort(key=lambda each: -each.share)
    return Shares(emulator.target.name, _distance(there, exact), _distance(exact, 0), tuple(parts))


def _distance(one: np.ndarray, other: np.ndarray | float) -> float:
    return float(np.linalg.norm(one - other))


def _numbers(result: Any) -> np.ndarray:
    """All floats of a result, in one row."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(result)]
    floats = [leaf.astype(np.complex128) for leaf in leaves if leaf.dtype.kind not in "biuO"]
    return np.concatenate([leaf.ravel() for leaf in floats]) if floats else np.zeros(0)
