"""What is worth fixing first: recompiles of a function at a line, and lines outside of any jit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount.explain.causes.cause import Kind
from jitcount.explain.summing import advice_of, sentences_of_many

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount.explain.compile import Compile

# So many operations at one line are worth a jit.
_MANY_OPERATIONS = 5


@dataclass(frozen=True, slots=True)
class Hotspot:
    """Compiles that one line of the user's has needed."""

    what: str
    """What was compiled: a function, or so many operations."""

    is_eager: bool
    """Operations outside of any jit."""

    call_site: str
    count: int
    seconds: float
    causes: tuple[str, ...]
    """What changed, summed up, most often first."""

    advice: str
    """What to do about it, or about what changed most often."""


def hotspots(compiles: Iterable[Compile]) -> list[Hotspot]:
    """All that is worth a look, the costliest first."""
    made = [compiled for compiled in compiles if not compiled.from_disk]
    found = [*_recompiles(made), *_operations(made)]
    return sorted(found, key=lambda hotspot: -hotspot.seconds)


def is_first(compiled: Compile) -> bool:
    """Whether it is no recompile."""
    return all(cause.kind == Kind.FIRST_CALL for cause in compiled.causes)


def _recompiles(compiles: Sequence[Compile]) -> list[Hotspot]:
    """The recompiles of each of the user's functions at each line."""
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in compiles:
        if not compiled.eager and not is_first(compiled):
            groups.setdefault((compiled.function, compiled.call_site), []).append(compiled)
    return [
        Hotspot(
            what=function,
            is_eager=False,
            call_site=call_site,
            count=len(group),
            seconds=sum(compiled.total_s for compiled in group),
            causes=tuple(sentences_of_many([compiled.causes for compiled in group])),
            advice=_most_frequent_advice(group),
        )
        for (function, call_site), group in groups.items()
    ]


def _most_frequent_advice(group: Sequence[Compile]) -> str:
    given = [advice for compiled in group for advice in advice_of(compiled.causes)]
    return max(given, key=given.count, default="")


def _operations(compiles: Sequence[Compile]) -> list[Hotspot]:
    """Lines that are made of operations outside of any jit, each compiled by itself."""
    groups: dict[str, list[Compile]] = {}
    for compiled in compiles:
        if compiled.eager:
            groups.setdefault(compiled.call_site, []).append(compiled)
    found = []
    for call_site, group in groups.items():
        again = [compiled.causes for compiled in group if not is_first(compiled)]
        are_many = len(group) >= _MANY_OPERATIONS
        if again or are_many:
            hotspot = Hotspot(
                what=f"{len(group)} operations were compiled one by one",
                is_eager=True,
                call_site=call_site,
                count=len(group),
                seconds=sum(compiled.total_s for compiled in group),
                # Of many, what changed does not help: all of them together are the matter.
                causes=() if are_many else tuple(sentences_of_many(again)),
                advice="call it under jax.jit",
            )
            found.append(hotspot)
    return found
