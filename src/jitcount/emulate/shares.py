"""What makes the numbers differ: how much of a result's change comes from which line.

The program is run once with exact products, once as the target would, and then once more for each
line that rounds, with that line alone exact. What this takes off the change, measured along it, is
the line's share: shares of small changes add up to one. A line whose rounding works against the
others has one below zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount.emulate.arithmetic import EXACT
from jitcount.emulate.as_if import emulated
from jitcount.emulate.emulating import Emulator
from jitcount.targets.installed import require_installed
from jitcount.targets.names import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.observe.call_site import CallSite


@dataclass(frozen=True, slots=True)
class Share:
    """Of one line."""

    place: CallSite
    what: str
    """The operation that is rounded there, and to what: ``"dot_general in bfloat16"``."""

    share: float
    """Of the change of the result: 1 where this line alone makes it."""

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


def shares(target: str, f: Callable[..., Any], *arguments: Any, **named: Any) -> Shares:
    """Find out which lines make ``f(*arguments)`` differ on a target.

    `f` is called once for each line that rounds, and twice more: it must give the same for the same
    arguments, and not consume them.
    """
    known = parse(target)
    require_installed(known)
    emulator = Emulator.of(known, 600.0)

    def run(how: Emulator) -> tuple[np.ndarray, Any]:
        with emulated(how) as emulation:
            return _numbers(f(*arguments, **named)), emulation

    exact, _ = run(replace(emulator, arithmetic=EXACT))
    there, emulation = run(emulator)
    change = there - exact
    square = float(np.vdot(change, change).real)
    what = {r.place: f"{r.what} in {r.to}" for p in emulation.programs for r in p.roundings}
    found = []
    for line in emulation.lines():
        without, _ = run(replace(emulator, exact=frozenset({line})))
        along = float(np.vdot(change, there - without).real)
        found.append(Share(line, what[line], along / square if square else 0.0))
    found.sort(key=lambda each: -each.share)
    return Shares(target, square**0.5, float(np.linalg.norm(exact)), tuple(found))


def _numbers(result: Any) -> np.ndarray:
    """All floats of a result, in one row."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(result)]
    floats = [leaf.astype(np.complex128) for leaf in leaves if leaf.dtype.kind not in "biuO"]
    return np.concatenate([leaf.ravel() for leaf in floats]) if floats else np.zeros(0)
