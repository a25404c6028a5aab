"""The recompiles worth fixing first: one line of the user's and one function, summed up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount.explain import cause as kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount.explain.cause import Cause
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
        is_first = all(cause.kind == kinds.FIRST_CALL for cause in compiled.causes)
        if not is_first and not compiled.from_disk:
            groups.setdefault((compiled.function, compiled.call_site), []).append(compiled)
    found = [_hotspot(*key, group) for key, group in groups.items()]
    return sorted(found, key=lambda hotspot: -hotspot.seconds)


def _hotspot(function: str, call_site: str, group: Sequence[Compile]) -> Hotspot:
    by_place: dict[tuple[str, str], list[Cause]] = {}
    for compiled in group:
        for cause in compiled.causes:
            if cause.kind != kinds.FIRST_CALL:
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


def summed_up(causes: Sequence[Cause]) -> str:
    """One sentence for several causes of the same kind at the same place."""
    last = causes[-1]
    if len(causes) == 1:
        return last.sentence
    if last.kind == kinds.SHAPE and (lengths := _lengths(causes)):
        axis, taken = lengths
        return (
            f"axis {axis} of {last.where} took {len(taken)} lengths "
            f"between {min(taken)} and {max(taken)}"
        )
    values = {text for cause in causes for text in (cause.before, cause.after) if text}
    if last.kind == kinds.STATIC_ARGUMENT and len(values) > 2:
        return f"static argument {last.where} took {len(values)} values"
    return f"{last.sentence} ({len(causes)} times)"


def _lengths(causes: Sequence[Cause]) -> tuple[int, set[int]] | None:
    """The one axis that changed in all causes, and the lengths that it took."""
    shapes = [_shape(text) for cause in causes for text in (cause.before, cause.after)]
    if len({len(shape) for shape in shapes}) != 1:
        return None
    columns = [set(column) for column in zip(*shapes, strict=True)]
    changed = [axis for axis, values in enumerate(columns) if len(values) > 1]
    return (changed[0], columns[changed[0]]) if len(changed) == 1 else None


def _shape(text: str) -> tuple[int, ...]:
    dimensions = re.search(r"\[([\d,]*)\]$", text)
    return tuple(map(int, dimensions[1].split(","))) if dimensions and dimensions[1] else ()
