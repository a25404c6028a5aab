"""Proves attribution by removal: what a line is blamed for is what removing it saves.

``python benchmarks/attribution.py [--target T] [--rounds N] [PROGRAM]...`` compiles each program of
`expensive_lines` with its expensive line and without it, in turns, and prints both shares of the
compile.
"""

from __future__ import annotations

import argparse
import inspect
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax

import jitcount
from expensive_lines import PROGRAMS, SQUARE, program
from jitcount._targets.compilers import compilers

if TYPE_CHECKING:
    from jitcount._explain.compile import Compile

WITHIN = 0.15
"""How far apart the two shares of a compile may be."""


@dataclass(frozen=True)
class Shares:
    """What a program's expensive line is blamed for and what removing it saves, of its compile."""

    blamed: float
    saved: float
    unattributed: float
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the line is blamed for what removing it saves."""
        return abs(self.blamed - self.saved) <= WITHIN


def compiled(name: str, target: str, *, is_expensive: bool, profile: bool) -> tuple[Compile, float]:
    """Compile a program from nothing; returns the compile and its processor seconds.

    On a target these are its compiler's, else those of all three phases.
    """
    function = program(name, is_expensive=is_expensive)
    jax.clear_caches()
    begin = _processor_seconds(target)
    with jitcount.record([target] if target else [], profile=profile) as log:
        jax.jit(function).lower(SQUARE).compile()
    seconds = _processor_seconds(target) - begin
    return max(log.compiles, key=lambda each: each.total_s), seconds


def _processor_seconds(target: str) -> float:
    """Processor seconds so far, which other processes on the machine do not change."""
    if not target:
        return time.process_time()
    ticks = 0
    for pid in compilers().pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def shares_of(name: str, target: str, rounds: int) -> Shares:
    """Compile a program with its expensive line and without, in turns."""
    lines = _expensive_lines(name)
    blamed, rest, more, less = [], [], [], []
    compiled(name, target, is_expensive=True, profile=False)
    for _ in range(rounds):
        more.append(compiled(name, target, is_expensive=True, profile=False)[1])
        less.append(compiled(name, target, is_expensive=False, profile=False)[1])
        found, _ = compiled(name, target, is_expensive=True, profile=True)
        whole = found.on[target].compile_s if target else found.total_s
        rows = found.on[target].lines if target else found.lines
        blamed.append(sum(row.total_s for row in rows if row.line in lines) / whole)
        rest.append(sum(row.compile_s for row in rows if not row.is_attributed) / whole)
    seconds = min(more)  # other processes only ever add
    saved = 1 - min(less) / seconds
    return Shares(statistics.median(blamed), saved, statistics.median(rest), seconds)


def _expensive_lines(name: str) -> set[int]:
    lines, first = inspect.getsourcelines(PROGRAMS[name])
    marked = (line.rstrip().endswith("# expensive") for line in lines)
    return {first + number for number, is_marked in enumerate(marked) if is_marked}


def main() -> int:
    """Print a row for each program; returns 1 if one does not hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("programs", nargs="*")
    asked = parser.parse_args()
    # On one core, so that the seconds of the clock and those of a processor are the same.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    where = f"on {asked.target or 'cpu'}"
    print(f"{where:18} {'seconds':>8} {'blamed':>8} {'saved':>8} {'no line':>8}")
    wrong = 0
    for name in asked.programs or PROGRAMS:
        found = shares_of(name, asked.target, asked.rounds)
        verdict = "" if found.holds else f"  apart by more than {WITHIN:.0%}"
        wrong += not found.holds
        figures = f"{found.blamed:8.0%} {found.saved:8.0%} {found.unattributed:8.0%}"
        print(f"{name:18} {found.seconds:8.2f} {figures}{verdict}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
