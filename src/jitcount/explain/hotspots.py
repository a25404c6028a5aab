"""The recompiles worth fixing first: one line of the user's and one function, summed up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount.explain.causes.arrays import Shape
from jitcount.explain.causes.cause import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount.explain.causes import AnyCause
    from jitcount.explain.compile import Compile


@dataclass(frozen=True, slots=True)
class Hotspot:
    """The recompiles of one function from one line."""

    function: str
    call_site: str
    count: int
    seconds: float
    causes: tuple[str, ...]
    """What changed, summed up, most often first."""

    advice: str
    """What to do about what changed most often."""


def hotspots(compiles: Iterable[Compile]) -> list[Hotspot]:
    """All groups of recompiles, the costliest first; a first call is no recompile."""
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in compiles:
        is_first = all(cause.kind == Kind.FIRST_CALL for cause in compiled.causes)
        if not is_first and not compiled.from_disk:
            groups.setdefault((compiled.function, compiled.call_site), []).append(compiled)
    found = [_hotspot(*key, group) for key, group in groups.items()]
    return sorted(found, key=lambda hotspot: -hotspot.seconds)


def _hotspot(function: str, call_site: str, group: Sequence[Compile]) -> Hotspot:
    by_place: dict[tuple[Kind, str], list[AnyCause]] = {}
    for compiled in group:
        for cause in compiled.causes:
            if cause.kind != Kind.FIRST_CALL:
                by_place.setdefault((cause.kind, cause.where), []).append(cause)
    ranked = sorted(by_place.values(), key=lambda causes: -len(causes))
    return Hotspot(
        function=function,
        call_site=call_site,
        count=len(group),
        seconds=sum(compiled.total_s for compiled in group),
        causes=tuple(summed_up(causes) for causes in ranked),
        advice=ranked[0][-1].advice if ranked else "",
    )


def summed_up(causes: Sequence[AnyCause]) -> str:
    """One sentence for several causes of the same kind at the same place."""
    last = causes[-1]
    if len(causes) == 1:
        return str(last)
    if lengths := _lengths([cause for cause in causes if isinstance(cause, Shape)]):
        axis, taken = lengths
        return (
            f"axis {axis} of {last.where} took {len(taken)} lengths "
            f"between {min(taken)} and {max(taken)}"
        )
    values = {text for cause in causes for text in (cause.before, cause.after) if text}
    if last.kind == Kind.STATIC_ARGUMENT and len(values) > 2:
        return f"static argument {last.where} took {len(values)} values"
    return f"{last} ({len(causes)} times)"


def _lengths(causes: Sequence[Shape]) -> tuple[int, set[int]] | None:
    """The one axis that changed in all causes, and the lengths that it took."""
    axes = {cause.axes for cause in causes}
    if len(axes) != 1 or len(changed := axes.pop()) != 1:
        return None
    (axis,) = changed
    taken = {side.shape[axis] for cause in causes for side in (cause.old, cause.new)}
    lengths = {length for length in taken if isinstance(length, int)}
    return (axis, lengths) if len(lengths) == len(taken) else None
