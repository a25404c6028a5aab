"""Unrolled loops, and what each would cost as a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.parts import Heading, Note
from jitcount.show.text import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jitcount.explain.compile import Compile
    from jitcount.profile.result import AsScan, Loop, Measured, Profile
    from jitcount.show.parts import Part

# Less than that apart is the same.
_APART = 0.1

# The compiler of this machine, which runs what it makes, gave no answer.
NOT_COMPARED = "its results were not compared"


def loops_shown(compiles: Sequence[Compile]) -> list[Part]:
    """The loops of each program, each program once."""
    parts: list[Part] = [Heading("Unrolled loops")]
    seen = set()
    for compiled in compiles:
        if compiled.loops and (compiled.call, compiled.loops) not in seen:
            seen.add((compiled.call, compiled.loops))
            parts.append(Note(compiled.function))
            parts += profile_notes(compiled.profile) if compiled.profile is not None else ()
    return parts if seen else [*parts, Note("none was found")]


def profile_notes(profile: Profile) -> Iterator[Note]:
    """The loops of a program, and what came of them as scans: each by itself, and all at once."""
    for loop in profile.loops:
        yield Note(loop_sentence(loop), depth=1)
        if loop.as_scan is not None:
            yield from (Note(sentence, depth=2) for sentence in scan_sentences(loop.as_scan))
    if (together := profile.as_scans) is not None:
        first, *others = scan_sentences(together)
        yield Note(f"all {together.loops} loops {first}", depth=1)
        yield from (Note(sentence, depth=2) for sentence in others)


def loop_sentence(loop: Loop) -> str:
    """What was unrolled."""
    backward = loop.backward
    beside = f" (backward: {backward[0]:,} × {backward[1]:,})" if backward is not None else ""
    operations = "operation" if loop.operations == 1 else f"{loop.operations:,} operations"
    times = f"{loop.copies:,} times the same {operations}"
    return f"an unrolled loop: {loop.call_site}, {times}{beside}"


def scan_sentences(as_scan: AsScan) -> list[str]:
    """What was measured, and what follows from it; also with arguments that come stacked."""
    if as_scan.reason:
        return [f"as jax.lax.scan: not measured, {as_scan.reason}"]
    ways = [[(each, each.scan_s) for each in as_scan.measured]]
    if as_scan.stacked and not all(each.error for each in as_scan.measured):
        ways.append([(each, each.stacked_s or 0.0) for each in as_scan.measured])
    found = [verdict([(each.unrolled_s, after) for each, after in way]) for way in ways]
    if not any(each.startswith("faster") for each in found) and found[-1]:
        found[-1] += ": keep the loop" if as_scan.loops == 1 else ": keep the loops"
    if found[0]:
        found[0] = f"{as_scan.values or NOT_COMPARED}; {found[0]}"
    heads = ["as jax.lax.scan, measured", f"with {_stacked(as_scan.stacked)} beforehand"]
    return [
        f"{head}: {_measured(way)}" + (f" ({follows})" if follows else "")
        for head, way, follows in zip(heads, ways, found, strict=False)
    ]


def _stacked(sizes: Sequence[int]) -> str:
    arrays = "one" if len(sizes) == 1 else str(len(sizes))
    return f"its {sum(sizes)} arguments stacked into {arrays}"


def _measured(way: Iterable[tuple[Measured, float]]) -> str:
    return ", ".join(_figure(measured, after) for measured, after in way)


def _figure(measured: Measured, after_s: float) -> str:
    if measured.error:
        return f"{measured.compiler} not at all: {measured.error}"
    before, after = seconds(measured.unrolled_s), seconds(after_s)
    if before.split()[1:] == after.split()[1:]:  # the unit once
        before = before.split()[0]
    return f"{measured.compiler} {before} → {after}"


def verdict(pairs: Iterable[tuple[float, float]]) -> str:
    """What seconds before and after say, compiler by compiler."""
    ratios = [after / before for before, after in pairs if before]
    if not ratios:
        return ""
    if max(ratios) < 1 - _APART:
        return "faster as a scan"
    if min(ratios) > 1 + _APART:
        return "slower as a scan"
    if min(ratios) >= 1 - _APART:
        return "no faster as a scan"
    return "faster for some: choose by where you compile most"
