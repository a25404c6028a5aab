"""Reads the events of a compiler: how long its phases, its passes and its units of code took.

A unit is what becomes code by itself: a fusion, a sort, a copy. It has the name of an instruction
of the optimised program. How each compiler names its events is in `_jax/compilers.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount._jax.compilers import COMPILERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount._jax.profiling import Event


@dataclass(frozen=True, slots=True)
class CodegenUnit:
    """A part of a program that became code by itself, and when, in seconds."""

    name: str
    start: float
    end: float


@dataclass(slots=True)
class Account:
    """What a compiler's events say of its time."""

    begin: float = 0.0
    end: float = 0.0
    units: list[CodegenUnit] = field(default_factory=list)
    passes_s: float = 0.0
    generation_s: float = 0.0
    by_pass: dict[str, float] = field(default_factory=dict)
    """The seconds of each pass."""

    note: str = ""
    """What the events do not say, in a sentence."""


def parse_compiler_events(
    events: Sequence[Event], objects: Sequence[dict[str, int]] = ()
) -> Account:
    """Read the events of one compile.

    Args:
        events: the events of all threads.
        objects: the functions in each file of machine code, with their sizes, in the order in which
            the files were made.
    """
    names = [event.name for event in events]
    known = (each for each in COMPILERS if any(name.startswith(each.known_by) for name in names))
    compiler = next(known, None)
    if compiler is None:
        return Account(note="the compiler's events are not known here")
    found = Account(min(e.start for e in events), max(e.end for e in events))
    found.passes_s = length_of(_spans(events, compiler.passes))
    found.generation_s = length_of(_spans(events, compiler.generation))
    found.by_pass = _seconds_of_passes(events, _spans(events, compiler.passes))
    for event in events:
        if (match := compiler.unit.fullmatch(event.name)) is not None:
            name = match[1] if match.re.groups else event.module
            found.units.append(CodegenUnit(_instruction(name), event.start, event.end))
    nameless = [(each.start, each.end) for each in events if each.name == compiler.nameless]
    if nameless:
        seconds = length_of(nameless)
        found.note = f"XLA:GPU does not say which kernel it compiled for {seconds:.1f} s"
    if compiler.machine_code:
        made = [event for event in events if event.name == compiler.machine_code]
        found.units += _units_of_machine_code(made, objects)
        if made and not objects:
            found.note = "the compiler does not say which machine code it made when"
    return found


def _instruction(name: str) -> str:
    """The name of the instruction that a module of code was made for.

    >>> _instruction("__compute_module_wrapped_add.1"), _instruction("sort.6_kernel_module")
    ('wrapped_add.1', 'sort.6')
    """
    return re.sub(r"^__compute_module_|(_kernel)?(_module)?$", "", name)


# --- Machine code ---------------------------------------------------------------------------------


def _units_of_machine_code(
    made: Sequence[Event], objects: Sequence[dict[str, int]]
) -> list[CodegenUnit]:
    """Match the events that made machine code with its files, in the order of their ends.

    Some events made none: those of no length, which only link.
    """
    if not objects or len(made) < len(objects):
        return []
    longest = sorted(made, key=lambda event: event.start - event.end)[: len(objects)]
    ordered = sorted(longest, key=lambda event: event.end)
    files = list(objects)
    for first in range(len(files) - 1):
        if _are_swapped(ordered[first : first + 2], files[first : first + 2]):
            files[first : first + 2] = reversed(files[first : first + 2])
    return [
        CodegenUnit(_instruction(name), event.start + part[0], event.start + part[1])
        for event, functions in zip(ordered, files, strict=True)
        for name, part in _parts(functions, event.end - event.start).items()
    ]


def _are_swapped(events: Sequence[Event], files: Sequence[dict[str, int]]) -> bool:
    """Whether two files whose events ended at almost the same time are the other way round.

    A file is stored a moment before its event ends, and another thread's may end in between.
    """
    one, other = (event.end - event.start for event in events)
    if (
        events[0].thread == events[1].thread
        or abs(events[1].end - events[0].end) > max(one, other) / 5
    ):
        return False
    sizes = [sum(functions.values()) for functions in files]
    return (one > 2 * other and sizes[1] > 2 * sizes[0]) or (
        other > 2 * one and sizes[0] > 2 * sizes[1]
    )


def _parts(functions: dict[str, int], seconds: float) -> dict[str, tuple[float, float]]:
    """When each function in a file was made, if time is shared among them by their sizes."""
    whole, at = sum(functions.values()), 0.0
    found = {}
    for name, size in functions.items():
        found[name] = at, at + seconds * size / whole
        at = found[name][1]
    return found


# --- Spans ----------------------------------------------------------------------------------------

Span = tuple[float, float]


def _spans(events: Iterable[Event], pattern: re.Pattern[str]) -> list[Span]:
    return [(event.start, event.end) for event in events if pattern.match(event.name)]


def length_of(spans: Iterable[Span]) -> float:
    """How much time spans cover, which may overlap.

    >>> length_of([(0, 2), (1, 3), (5, 6)])
    4.0
    """
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _seconds_of_passes(events: Sequence[Event], spans: Sequence[Span]) -> dict[str, float]:
    """How long each pass took, without the passes inside of it."""
    found: dict[str, float] = {}
    threads: dict[str, list[Event]] = {}
    for event in events:
        if any(start <= event.start and event.end <= end for start, end in spans):
            threads.setdefault(event.thread, []).append(event)
    for inside in threads.values():
        above: list[Event] = []
        for event in sorted(inside, key=lambda e: (e.start, -e.end)):
            while above and above[-1].end <= event.start:
                above.pop()
            seconds = event.end - event.start
            for name, more in (
                (event.name, seconds),
                *((each.name, -seconds) for each in above[-1:]),
            ):
                found[_pass(name)] = found.get(_pass(name), 0.0) + more
            above.append(event)
    return {name: seconds for name, seconds in found.items() if seconds > 0}


def _pass(name: str) -> str:
    """The name of a pass without its module: of ``"simplification (jit_f)"``."""
    return name.partition(" (")[0]


# --- Parallel units -------------------------------------------------------------------------------


def wall_seconds(units: Sequence[CodegenUnit]) -> list[float]:
    """The part of each unit in the time that passed: units that run at one moment share it.

    Units run in parallel, so the sum of their lengths can exceed what the clock says; this cannot.

    >>> wall_seconds([CodegenUnit("a", 0, 4), CodegenUnit("b", 2, 4), CodegenUnit("c", 6, 7)])
    [3.0, 1.0, 1.0]
    """
    changes = sorted(
        [(unit.start, 1, number) for number, unit in enumerate(units)]
        + [(unit.end, 0, number) for number, unit in enumerate(units)]
    )
    # `given` grows by what a moment gives to each unit that runs; a unit gets what it grew by.
    given, running, before = 0.0, 0, 0.0
    found = [0.0] * len(units)
    for at, is_start, number in changes:
        if running > 0:
            given += (at - before) / running
        before = at
        running += 1 if is_start else -1
        found[number] += -given if is_start else given
    return found
