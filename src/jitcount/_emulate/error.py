"""How far a target's result is off, by which lines, and how far the chip itself may be from that.

Both are found by running the program again. For `error_by_line` it runs once with exact products,
once as the target would, and then once more for each line that rounds, with that line alone
rounded. How far this moves the result is the line's part; its share is that part of the sum of all.
(With one line alone exact, as one would try by hand, the others' roundings may add up or cancel,
and what is left says little of that line.) The advice is tried, too: the program is compiled once
more with the highest precision at a line, and run.

For `error_bound` it runs a few times with all that is the hardware's own perturbed. An order of
summation, the last ulps of a function and the order of ties in a sort that is not stable are not
known here. The first two are bounded by `numerics`, as they are for every backend: each run moves
all of them, up or down by chance, by their whole bound, and the program carries that to its result.
Ties are turned round in each run. It is an estimate: of the directions in which all could go, a few
are tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.as_if import emulated_here
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

_PERTURBED_RUNS = 4


@dataclass(frozen=True, slots=True)
class Remedy:
    """What the highest precision does: at one line, or at all where the line is not known."""

    everywhere: bool

    left: float
    """How much of the change is left."""

    cost: float | None
    """How much longer one run takes by the target's own estimate, as a ratio; None where it has
    none.
    """


@dataclass(frozen=True, slots=True)
class LineError:
    """How much of a result's change comes from the rounding at one line."""

    place: CallSite
    what: str
    """The operation that is rounded there, and to what: ``"q @ k in bfloat16"``."""

    alone: float
    """How far its rounding alone moves the result, by the norm."""

    share: float
    """Its part of what all lines move the result, each alone: 1 where this one makes all of it."""

    result: str = "the result"
    """What changes: the function's name."""

    remedy: Remedy | None = None

    def __str__(self) -> str:
        percent = f"{self.share:.0%}".replace("%", " %")
        what = f"{self.what}: {percent} of the change of {self.result}"
        return encode_safely(escape_control_chars(f"{self.place}: {what}"))

    @property
    def advice(self) -> str:
        """What to do about the line, what that brings and costs; empty where it hardly counts."""
        if self.remedy is None:
            return ""
        cost = self.remedy.cost
        time = "" if cost is None else f", {cost:.2f} times the cycles"
        where = (
            'jax.default_matmul_precision("highest") for all of it'
            if self.remedy.everywhere
            else 'precision="highest" there'
        )
        if self.remedy.left > _NO_LESS:
            return (
                f"{where} does not help: the change is then {self.remedy.left:.1f} times as large, "
                f"since what other lines round no longer cancels{time}"
            )
        left = f"{self.remedy.left:.0%}".replace("%", " %")
        return f"{where}: {left} of the change is left{time}"


@dataclass(frozen=True, slots=True)
class ErrorByLine:
    """What changes a result on a target, by line, the largest share first."""

    target: str
    result: str
    """The function's name."""

    change: float
    """How far the target's result is from the one with exact products, by the norm."""

    scale: float
    """The norm of the result."""

    lines: tuple[LineError, ...]
    cycles: int | None = None
    """What one run takes, by the target's own estimate."""

    not_emulated: tuple[str, ...] = ()
    """Programs that could not be carried over: what they change is not seen."""

    def __str__(self) -> str:
        from jitcount._show.emulation_table import error_table  # noqa: PLC0415 (to the right)
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(error_table(self))


@dataclass(frozen=True)
class ErrorBound:
    """How far the numbers of a result may be off on a chip, by what only its hardware knows.

    That is also the order of equal elements in a sort that is not stable: one more is tried, all
    ties turned round. Whole numbers in a result, such as the places of an argsort, have no bound.
    """

    target: str
    result: str
    """The function's name."""

    off: tuple[np.ndarray, ...]
    """For each array of floats in the result, how far each of its elements may be off."""

    relative: float
    """How far all numbers together may be off, by the norm, as a part of the result's norm."""

    def __str__(self) -> str:
        return (
            f"As if on {self.target}: {self.result} may be {self.relative:.2g} of its size off, "
            "by that chip's own order of sums and last ulps"
        )


def error_by_line(
    emulator: Emulator, f: Callable[..., Any], *arguments: Any, **named: Any
) -> ErrorByLine:
    """Find out which lines make ``f(*arguments)`` differ on an emulator's target."""

    def run(**changes: Any) -> _Run:
        return _run(replace(emulator, **changes), f, arguments, named)

    exact, there = run(arithmetic=EXACT), run()
    roundings = [rounding for program in there.programs for rounding in program.roundings]
    what = {rounding.place: f"{rounding.code} in {rounding.to}" for rounding in roundings}
    change, name = there.distance(exact), _name(f)
    if len(what) == 1:
        alone = dict.fromkeys(what, change)
    else:
        alone = {at: run(exact=frozenset(what) - {at}).distance(exact) for at in what}
    total = sum(alone.values()) or 1.0
    lines = [LineError(at, what[at], part, part / total, name) for at, part in alone.items()]
    lines.sort(key=lambda each: -each.share)
    for at, line in enumerate(lines[:_MOST_ADVISED]):
        if line.share >= _WORTH_ADVICE and change and _HIGHEST not in line.what:
            place = (line.place.file, line.place.line)
            everywhere = not place[0] or line.place.startswith(NEAR)
            raised = run(raised=frozenset() if everywhere else frozenset({place}))
            cost = raised.cycles / there.cycles if raised.cycles and there.cycles else None
            remedy = Remedy(everywhere, raised.distance(exact) / change, cost)
            lines[at] = replace(line, remedy=remedy)
    return ErrorByLine(
        target=emulator.target.name,
        result=name,
        change=change,
        scale=exact.norm,
        lines=tuple(lines),
        cycles=there.cycles,
        not_emulated=tuple(str(program) for program in there.programs if not program.faithful),
    )


def error_bound(
    emulator: Emulator, f: Callable[..., Any], *arguments: Any, **named: Any
) -> ErrorBound:
    """Find out how far a chip's own ``f(*arguments)`` may be from what is computed here."""
    here = _run(emulator, f, arguments, named)
    perturbed = [
        _run(replace(emulator, perturbation_seed=seed), f, arguments, named)
        for seed in range(1, _PERTURBED_RUNS + 1)
    ]
    off = tuple(
        np.max([np.abs(one.leaves[at] - leaf) for one in perturbed], axis=0)
        for at, leaf in enumerate(here.leaves)
    )
    far = _norm(off)
    return ErrorBound(emulator.target.name, _name(f), off, far / here.norm if here.norm else far)


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", "") or "the result"


@dataclass(frozen=True)
class _Run:
    """What a function returned, and what was compiled for that."""

    leaves: list[np.ndarray]
    """All arrays of the result that hold floats, in its order."""

    programs: Sequence[EmulatedProgram]

    @property
    def norm(self) -> float:
        return _norm(self.leaves)

    def distance(self, other: _Run) -> float:
        """How far the numbers are from another run's, by the norm."""
        pairs = zip(self.leaves, other.leaves, strict=True)
        return _norm([one - two for one, two in pairs])

    @property
    def cycles(self) -> int | None:
        """What all programs together take, each run once, by the target's own estimate."""
        return sum(program.cycles or 0 for program in self.programs) or None


def _norm(arrays: Sequence[np.ndarray]) -> float:
    """The norm of all numbers of some arrays together."""
    return float(np.sqrt(sum(np.linalg.norm(each) ** 2 for each in arrays)))


def _run(
    emulator: Emulator, f: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
) -> _Run:
    """Call a function as an emulator's target would; everything is compiled anew for that.

    Only in this thread: others go on as they are, in a block or outside.
    """
    with emulated_here(emulator) as emulation:
        result = f(*arguments, **named)
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(result)]
    floats = [leaf for leaf in leaves if leaf.dtype.kind not in "biuO"]
    wide = [leaf.astype(np.complex128 if leaf.dtype.kind == "c" else np.float64) for leaf in floats]
    return _Run(wide, emulation.programs)
