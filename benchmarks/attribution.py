"""Proves attribution by removal: what a line is blamed for is what leaving it out saves.

``python benchmarks/attribution.py [--target T] [--rounds N] [PROGRAM]...`` compiles each program of
`dear_lines` with its dear line and without it, in turns, and prints both shares of the compile.
"""

from __future__ import annotations

import argparse
import inspect
import statistics
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax

import jitcount
from dear_lines import PROGRAMS, bound

if TYPE_CHECKING:
    from jitcount.explain.compile import Compile

WITHIN = 0.15
"""Of the compile: so far apart may the two shares be."""


@dataclass(frozen=True)
class Shares:
    """Of one program, as shares of its compile."""

    blamed: float
    saved: float
    unattributed: float
    seconds: float

    @property
    def holds(self) -> bool:
        return abs(self.blamed - self.saved) <= WITHIN


def compiled(name: str, target: str, *, dear: bool, profile: bool) -> Compile:
    """Compile a program from nothing."""
    function, arguments = bound(name, dear=dear)
    jax.clear_caches()
    with jitcount.record([target] if target else [], profile=profile) as log:
        jax.jit(function).lower(*arguments).compile()
    return max(log.compiles, key=lambda each: each.total_s)


def seconds_of(found: Compile, target: str) -> float:
    """What there is to save: on a target, its compiler's time."""
    return found.on[target].compile_s if target else found.total_s


def shares_of(name: str, target: str, rounds: int) -> Shares:
    lines = _dear_lines(name)
    blamed, rest, more, less = [], [], [], []
    compiled(name, target, dear=True, profile=False)
    for _ in range(rounds):
        more.append(seconds_of(compiled(name, target, dear=True, profile=False), target))
        less.append(seconds_of(compiled(name, target, dear=False, profile=False), target))
        found = compiled(name, target, dear=True, profile=True)
        whole = seconds_of(found, target)
        rows = found.on[target].lines if target else found.lines
        blamed.append(sum(row.total_s for row in rows if row.line in lines) / whole)
        rest.append(sum(row.total_s for row in rows if not row.is_attributed) / whole)
    saved = 1 - statistics.median(less) / statistics.median(more)
    seconds = statistics.median(more)
    return Shares(statistics.median(blamed), saved, statistics.median(rest), seconds)


def _dear_lines(name: str) -> set[int]:
    lines, first = inspect.getsourcelines(PROGRAMS[name][0])
    return {first + number for number, line in enumerate(lines) if line.rstrip().endswith("# dear")}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("programs", nargs="*")
    asked = parser.parse_args()
    print(
        f"{'on ' + (asked.target or 'cpu'):18} {'seconds':>8} {'blamed':>8} {'saved':>8} {'no line':>8}"
    )
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
