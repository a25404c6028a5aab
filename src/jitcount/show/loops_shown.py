"""Unrolled loops, and what each would cost as a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.parts import Heading, Note
from jitcount.show.text import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jitcount.explain.compile import Compile
    from jitcount.profile.result import AsScan, Loop, Measured
    from jitcount.show.parts import Part

# Less than that apart is the same.
_APART = 0.1


def loops_shown(compiles: Sequence[Compile]) -> list[Part]:
    """The loops of each program, each program once."""
    parts: list[Part] = [Heading("Unrolled loops")]
    seen = set()
    for compiled in compiles:
        if compiled.loops and (compiled.call, compiled.loops) not in seen:
            seen.add((compiled.call, compiled.loops))
            parts.append(Note(compiled.function))
            parts += [note for loop in compiled.loops for note in loop_notes(loop)]
    return parts if seen else [*parts, Note("none was found")]


def loop_notes(loop: Loop) -> Iterator[Note]:
    """A loop in a line, and in another what came of it as a scan."""
    yield Note(loop_sentence(loop), depth=1)
    if loop.as_scan is not None:
        yield Note(scan_sentence(loop.as_scan), depth=2)


def loop_sentence(loop: Loop) -> str:
    """What was unrolled."""
    backward = loop.backward
    beside = f" (backward: {backward[0]:,} × {backward[1]:,})" if backward is not None else ""
    operations = "operation" if loop.operations == 1 else f"{loop.operations:,} operations"
    times = f"{loop.copies:,} times the same {operations}"
    return f"an unrolled loop: {loop.call_site}, {times}{beside}"


def scan_sentence(as_scan: AsScan) -> str:
    """What was measured, and what follows from it."""
    if as_scan.reason:
        return f"as jax.lax.scan: not measured, {as_scan.reason}"
    figures = ", ".join(map(_figure, as_scan.measured))
    follows = "; ".join(filter(None, (as_scan.values, advice(as_scan.measured))))
    return f"as jax.lax.scan, measured: {figures} ({follows})"


def _figure(measured: Measured) -> str:
    if measured.error:
        return f"{measured.compiler} not at all: {measured.error}"
    before, after = seconds(measured.unrolled_s), seconds(measured.scan_s)
    if before.split()[1:] == after.split()[1:]:  # the unit once
        before = before.split()[0]
    return f"{measured.compiler} {before} → {after}"


def advice(measured: Iterable[Measured]) -> str:
    """What the figures say; nothing where compilers disagree."""
    ratios = [each.scan_s / each.unrolled_s for each in measured if each.unrolled_s]
    if not ratios:
        return ""
    if max(ratios) < 1 - _APART:
        return "faster as a scan"
    if min(ratios) > 1 + _APART:
        return "slower as a scan: keep the loop"
    if max(ratios) <= 1 + _APART and min(ratios) >= 1 - _APART:
        return "no faster as a scan: keep the loop"
    return "faster for some: choose by where you compile most"
