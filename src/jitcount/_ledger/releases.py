"""One program under several releases of JAX: what changed in each, and the figures side by side.

Each release is compared with the run here, whatever the order in which they were asked for. Other
releases lower to other operations and need other seconds: these are shown beside each other, and
are no difference. Compiles, their causes and the refusals of targets are compared as ever.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount._ledger import programs
from jitcount._ledger.comparison import OUTSIDE_JIT
from jitcount._ledger.sites import Site, side_by_side, sites_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._ledger.comparison import Change
    from jitcount._ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Figures:
    """What a function's compiles at one line came to under one release."""

    compiles: int
    operations: int
    """Of its largest program."""

    seconds: float
    """Of all of its compiles: tracing, lowering and XLA."""

    memory: Mapping[str, int] = field(default_factory=dict)
    """By target, the bytes of its largest program."""


@dataclass(slots=True)
class FunctionInReleases:
    """A function at a line, or all operations outside of jit, under each release."""

    function: str
    call_site: str
    figures: dict[str, Figures] = field(default_factory=dict)
    """By ledger; without those that have no such function at that line."""


def changes(here: str, ledgers: Mapping[str, Ledger]) -> dict[str, list[Change]]:
    """By ledger, what changed against the one that is called `here`.

    What JAX calls its own operations, where there are as many of them, is its own business.
    """
    return {
        name: [
            change
            for change in programs.changes({here: ledgers[here], name: ledger})[0]
            if change.function != OUTSIDE_JIT or change.before != change.after
        ]
        for name, ledger in ledgers.items()
        if name != here
    }


def functions(here: str, ledgers: Mapping[str, Ledger]) -> list[FunctionInReleases]:
    """Each function with its figures under each release, those that take longest here first."""
    first = _jitted(ledgers[here].compiles)
    rows = {id(site): _row(site, here) for site in first}
    more: list[FunctionInReleases] = []
    outside = FunctionInReleases(OUTSIDE_JIT, "")
    for name, ledger in ledgers.items():
        if eager := [compiled for compiled in ledger.compiles if compiled.eager]:
            outside.figures[name] = _figures(eager)
        if name != here:
            pairs, _, alone = side_by_side(first, _jitted(ledger.compiles))
            for one, other in pairs:
                rows[id(one)].figures[name] = _figures(other.compiles)
            more += [_row(site, name) for site in alone]
    found = sorted(
        [*rows.values(), *more],
        key=lambda row: -max(figures.seconds for figures in row.figures.values()),
    )
    return [*found, outside] if outside.figures else found


def _jitted(compiles: Iterable[Compile]) -> list[Site]:
    return [site for site in sites_of(compiles) if site.function]


def _row(site: Site, name: str) -> FunctionInReleases:
    return FunctionInReleases(site.function, str(site.call_site), {name: _figures(site.compiles)})


def _figures(compiles: Sequence[Compile]) -> Figures:
    memory: dict[str, int] = {}
    for compiled in compiles:
        for target, result in compiled.on.items():
            if result.memory_bytes:
                memory[target] = max(memory.get(target, 0), result.memory_bytes)
    return Figures(
        compiles=sum(not compiled.from_disk for compiled in compiles),
        operations=max((compiled.operations for compiled in compiles), default=0),
        seconds=math.fsum(compiled.total_s for compiled in compiles),
        memory=memory,
    )
