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

from jitcount.emulate.arithmetic import EXACT
from jitcount.emulate.running import run
from jitcount.emulate.translating import NEAR
from jitcount.observe.visible import spelled, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.emulate.emulating import Emulator
    from jitcount.emulate.running import Run
    from jitcount.observe.call_site import CallSite

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
        return spelled(visible(f"{self.place}: {what}"))

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
        from jitcount.show.emulation_table import shares_table  # noqa: PLC0415 (to the right)
        from jitcount.show.terminal import render  # noqa: PLC0415

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
