"""What makes the numbers differ: how much of a result's change comes from which line.

The program is run once with exact products, once as the target would, and then once more for each
line that rounds, with that line alone rounded. How far this moves the result is the line's part;
its share is that part of the sum of all. (With one line alone exact, as one would try by hand, the
others' roundings may add up or cancel, and what is left says little of that line.)

The advice is tried, too: the program is compiled once more with the highest precision at a line,
and run. What then is left of the change, and the compiler's own estimate of the time, are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.as_if import emulated
from jitcount._emulate.translate import NEAR
from jitcount._text import encode_safely, escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jitcount._emulate.emulator import Emulator
    from jitcount._emulate.result import EmulatedProgram
    from jitcount._observe.call_site import CallSite

# Lines that make less than this of a change get no advice: each costs a compile.
_WORTH_ADVICE = 0.05
_MOST_ADVISED = 5
_HIGHEST = "six passes"

# From here on, what is left is no less than what was there.
_NO_LESS = 1.05

_THERE = 'precision="highest" there'
_EVERYWHERE = 'jax.default_matmul_precision("highest") for all of it'


@dataclass(frozen=True, slots=True)
class Remedy:
    """What the highest precision does, at one line or, where that is not known, at all."""

    everywhere: bool

    left: float
    """How much of the change is left."""

    cost: float | None
    """How much longer one run takes by the target's own estimate, as a ratio; None where it has
    none.
    """


@dataclass(frozen=True, slots=True)
class Share:
    """Of one line."""

    place: CallSite
    what: str
    """The operation that is rounded there, and to what: ``"q @ k in bfloat16"``."""

    alone: float
    """How far its rounding alone moves the result, by the norm."""

    share: float
    """Of what all lines move it, each alone: 1 where this one makes all of it."""

    result: str = "the result"
    """What changes: the function's name."""

    remedy: Remedy | None = None

    def __str__(self) -> str:
        percent = f"{self.share:.0%}".replace("%", " %")
        what = f"{self.what}: {percent} of the change of {self.result}"
        return encode_safely(escape_control_chars(f"{self.place}: {what}"))

    @property
    def advice(self) -> str:
        """What to do about it, and what that brings and costs; empty for what hardly counts."""
        if self.remedy is None:
            return ""
        cost = self.remedy.cost
        time = "" if cost is None else f", {cost:.2f} times the cycles"
        where = _EVERYWHERE if self.remedy.everywhere else _THERE
        if self.remedy.left > _NO_LESS:
            return (
                f"{where} does not help: the change is then {self.remedy.left:.1f} times as large, "
                f"since what other lines round no longer cancels{time}"
            )
        left = f"{self.remedy.left:.0%}".replace("%", " %")
        return f"{where}: {left} of the change is left{time}"


@dataclass(frozen=True, slots=True)
class Shares:
    """What changes a result on a target, by line, the largest share first."""

    target: str
    result: str
    """The function's name."""

    change: float
    """How far the target's result is from the one with exact products, by the norm."""

    scale: float
    """The norm of the result."""

    lines: tuple[Share, ...]
    cycles: int | None = None
    """One run, by the target's own estimate."""

    as_on_cpu: tuple[str, ...] = ()
    """Programs that could not be carried over: what they change is not seen."""

    def __str__(self) -> str:
        from jitcount._show.emulation_table import shares_table  # noqa: PLC0415 (to the right)
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(shares_table(self))


def shares(emulator: Emulator, f: Callable[..., Any], *arguments: Any, **named: Any) -> Shares:
    """Find out which lines make ``f(*arguments)`` differ on an emulator's target."""

    def again(**how: Any) -> Run:
        return run(replace(emulator, **how), f, arguments, named)

    exact, there = again(arithmetic=EXACT), again()
    roundings = [rounding for program in there.programs for rounding in program.roundings]
    what = {rounding.place: f"{rounding.code} in {rounding.to}" for rounding in roundings}
    alone = {
        place: again(exact=frozenset(what) - {place}).distance(exact)
        for place in what
        if len(what) > 1
    } or {place: there.distance(exact) for place in what}
    total, change = sum(alone.values()) or 1.0, there.distance(exact)
    name = getattr(f, "__name__", "") or "the result"
    parts = [Share(at, what[at], part, part / total, name) for at, part in alone.items()]
    parts.sort(key=lambda each: -each.share)
    for at, part in enumerate(parts[:_MOST_ADVISED]):
        if part.share >= _WORTH_ADVICE and change and _HIGHEST not in part.what:
            line = (part.place.file, part.place.line)
            everywhere = not line[0] or part.place.startswith(NEAR)
            raised = again(raised=frozenset() if everywhere else frozenset({line}))
            remedy = Remedy(everywhere, raised.distance(exact) / change, _ratio(raised, there))
            parts[at] = replace(part, remedy=remedy)
    left = tuple(str(program) for program in there.programs if not program.faithful)
    return Shares(emulator.target.name, name, change, exact.norm, tuple(parts), there.cycles, left)


def _ratio(one: Run, other: Run) -> float | None:
    if not one.cycles or not other.cycles:
        return None
    return one.cycles / other.cycles


# --- How far a chip's own result may be from its emulation: what is the hardware's own, bounded ---
#
# An order of summation and the last ulps of a function are not known here. Each is bounded by
# `numerics`, as it is for every backend; the bounds are carried to the result by the program
# itself, which is run a few times with all of them moved, up or down by chance, by their whole
# bound. It is an estimate: of the directions in which all could go, a few are tried.


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
    moved = [
        run(replace(emulator, perturbation_seed=n + 1), f, arguments, named) for n in range(DRAWS)
    ]
    off = tuple(
        np.max([np.abs(one.leaves[at] - leaf) for one in moved], axis=0)
        for at, leaf in enumerate(here.leaves)
    )
    far = float(np.sqrt(sum(float(np.linalg.norm(each)) ** 2 for each in off)))
    name = getattr(f, "__name__", "") or "the result"
    return Leeway(emulator.target.name, name, off, far / here.norm if here.norm else far)


# --- Runs a function of the user's once more, in another way, and takes its numbers ---------------


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
