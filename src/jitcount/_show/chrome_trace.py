"""Writes profiles in Chrome's trace format, which Perfetto and speedscope open.

Compiles are at the time when they were made; those that overlap have rows of their own, and so has
each target. Below a compile are its phases, below a phase its lines or passes, most first: how long
each took is measured, in which order they came is not. Only compiles have arguments: speedscope
keeps events with different arguments apart, and would not sum up a line over all programs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jitcount._ledger import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._profile.result import Line, Phase, Profile

_MICROSECONDS = 1e6
_PROCESS = 1

# The figure of a line that is shown below a phase; what is left of the phase is not attributed.
_BELOW = {"trace": "trace_s", "code generation": "compile_s", "XLA": "compile_s"}


def chrome_trace(compiles: Sequence[Compile]) -> str:
    """All compiles that have a profile, as JSON."""
    found = [(compiled, compiled.profile) for compiled in compiles if compiled.profile is not None]
    found.sort(key=lambda each: each[0].started_at)
    begin = found[0][0].started_at if found else 0.0
    events: list[dict[str, Any]] = []
    rows = _Rows()
    for compiled, profile in found:
        start = compiled.started_at - begin
        row = rows.take("this machine", start, start + compiled.total_s)
        about = {"call site": str(compiled.call_site), "operations": compiled.operations}
        whole = _event(row, compiled.call, start, compiled.total_s, about)
        events += [whole, *_inside(row, start, compiled.total_s, profile)]
        for name, result in compiled.on.items():
            if result.profile is not None:
                later = rows.free_from(name, start)
                row = rows.take(name, later, later + result.compile_s)
                whole = _event(row, compiled.call, later, result.compile_s, {"target": name})
                events += [whole, *_inside(row, later, result.compile_s, result.profile)]
    content = {
        "kind": files.TRACE,  # tells it from files of other programs
        "displayTimeUnit": "ms",
        "traceEvents": [*rows.names(), *events],
    }
    return f"{json.dumps(content, indent=1)}\n"


class _Rows:
    """The rows of the trace, in each of which compiles do not overlap."""

    def __init__(self) -> None:
        self._ends: dict[str, list[float]] = {}
        self._numbers: dict[tuple[str, int], int] = {}

    def take(self, name: str, start: float, end: float) -> int:
        """Take the first row of a name that is free from `start` on, until `end`."""
        ends = self._ends.setdefault(name, [])
        for number, busy_until in enumerate(ends):
            if busy_until <= start:
                ends[number] = end
                break
        else:
            number = len(ends)
            ends.append(end)
        return self._numbers.setdefault((name, number), len(self._numbers) + 1)

    def free_from(self, name: str, start: float) -> float:
        """When a target's compiler could begin; when it did is not known."""
        return max([start, *self._ends.get(name, [])])

    def names(self) -> Iterator[dict[str, Any]]:
        """The events that name the rows."""
        for (name, number), row in self._numbers.items():
            text = name if number == 0 else f"{name} ({number + 1})"
            yield {
                "ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": row,
                "args": {"name": text},
            }  # fmt: skip


def _inside(row: int, start: float, whole: float, profile: Profile) -> Iterator[dict[str, Any]]:
    """The events of a compile's phases, one after the other, and of their lines."""
    at, end = start, start + whole
    for phase in profile.phases:
        length = min(phase.seconds, end - at)
        if length <= 0:
            continue
        yield _event(row, phase.name, at, length)
        inside = at
        for text, seconds in _below(phase, profile.lines):
            spent = min(seconds, at + length - inside)
            if spent > 0:
                yield _event(row, text, inside, spent)
                inside += spent
        at += length


def _below(phase: Phase, lines: Sequence[Line]) -> Iterator[tuple[str, float]]:
    """The passes and lines that a phase was spent on, as far as they are known."""
    for part in phase.inside:
        yield part.name, part.seconds
    if figure := _BELOW.get(phase.name):
        for line in lines:
            if line.is_attributed:
                yield f"{line.call_site} {line.calls}".rstrip(), getattr(line, figure)


def _event(
    row: int, name: str, start: float, length: float, about: dict[str, Any] | None = None
) -> dict[str, Any]:
    """An event of some length; in whole microseconds, so that it stays inside of the one above."""
    begin, end = int(start * _MICROSECONDS), int((start + length) * _MICROSECONDS)
    found: dict[str, Any] = {
        "ph": "X", "name": name, "cat": "compile", "pid": _PROCESS, "tid": row,
        "ts": begin, "dur": end - begin,
    }  # fmt: skip
    return found | {"args": about} if about else found
