"""Finds tandem repeats: equal symbols several times in a row, through which data goes as in a loop.

This knows nothing of JAX. A step has a symbol and inputs. Each input of a copy comes from the same
place in that copy, from the same place in a copy before, or from outside of the repeat.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OUTSIDE = -1

# How many symbols are compared, over all periods: in very long programs only short periods.
_COMPARISONS = 1_000_000_000

# How many steps are looked at closely, which takes a second or two: what saves most comes first.
_STEPS = 1_000_000


class Input(NamedTuple):
    """One input of a step."""

    step: int
    """The step that makes it, or OUTSIDE for an argument, a constant, or a number written there."""

    which: object
    """Which of that step's outputs it is; from outside, something that identifies it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program."""

    symbol: int
    inputs: tuple[Input, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A run of `copies` copies of `period` steps each."""

    start: int
    period: int
    copies: int
    within: tuple[int, int]
    """The steps among which to look for iterations that are no whole copies."""

    @property
    def end(self) -> int:
        """The first step after the repeat."""
        return self.start + self.period * self.copies


@dataclass(frozen=True, slots=True)
class _Run:
    """Steps with the symbols of those a period later; the last copy may be cut short."""

    start: int
    end: int
    period: int

    @property
    def copies(self) -> int:
        return (self.end - self.start) // self.period

    def order(self) -> tuple[int, int, int]:
        """A sort key: what saves most steps comes first, then the shorter period."""
        return -self.period * (self.copies - 1), self.period, self.start


def find_repeats(steps: Sequence[Step], accept: Callable[[Repeat], bool]) -> list[Repeat]:
    """The repeats of a program, outer ones before those inside of one of their copies.

    Of repeats that overlap, the one that saves most steps is taken.

    Args:
        steps: the program.
        accept: whether a repeat is wanted.
    """
    found: list[Repeat] = []
    for repeat in _outermost(steps, 0, len(steps), accept):
        found += [repeat, *_inside(steps, repeat, accept)]
    return found


def _inside(
    steps: Sequence[Step], repeat: Repeat, accept: Callable[[Repeat], bool]
) -> Iterator[Repeat]:
    """The repeats inside of the second copy: the first may begin otherwise."""
    start = repeat.start + repeat.period
    for inner in _outermost(steps, start, start + repeat.period, accept):
        yield inner
        yield from _inside(steps, inner, accept)


def _outermost(
    steps: Sequence[Step], start: int, end: int, accept: Callable[[Repeat], bool]
) -> list[Repeat]:
    symbols = np.fromiter((step.symbol for step in steps[start:end]), np.int32, end - start)
    runs = [(run.order(), run) for run in _runs(symbols, start)]
    heapq.heapify(runs)
    is_taken = np.zeros(end - start, bool)
    found = []
    looked_at = 0
    while runs and looked_at < _STEPS:
        _, run = heapq.heappop(runs)
        if (
            2 * np.count_nonzero(is_taken[run.start - start : run.end - start])
            > run.end - run.start
        ):
            continue  # most of it belongs to another: the same with twice the period
        looked_at += run.end - run.start
        whole = _fed_alike(steps, run)
        if whole.end < run.end:  # what is left of it may come later
            rest = _Run(max(whole.end - run.period + 1, run.start + 1), run.end, run.period)
            for part in (whole, rest):
                if part.copies > 1:
                    heapq.heappush(runs, (part.order(), part))
            continue
        repeat = Repeat(_aligned(steps, run), run.period, run.copies, (start, end))
        taken = is_taken[repeat.start - start : repeat.end - start]
        if not taken.any() and accept(repeat):
            taken[:] = True
            found.append(repeat)
    found.sort(key=lambda repeat: repeat.start)
    return [replace(each, within=_room(each, found)) for each in found]


def _room(repeat: Repeat, others: list[Repeat]) -> tuple[int, int]:
    """How far an iteration that is no whole copy may reach: to the next loop with a longer body."""
    larger = [each for each in others if each.period > repeat.period]
    first, last = repeat.within
    before = max((each.end for each in larger if each.end <= repeat.start), default=first)
    after = min((each.start for each in larger if each.start >= repeat.end), default=last)
    return before, after


def _runs(symbols: np.ndarray, offset: int) -> Iterator[_Run]:
    """All runs of two or more copies."""
    length = len(symbols)
    longest = min(length // 2, _COMPARISONS // max(length, 1))
    for period in range(1, longest + 1):
        is_same = symbols[period:] == symbols[:-period]
        if np.count_nonzero(is_same) < period:
            continue
        edges = np.flatnonzero(np.diff(is_same, prepend=False, append=False))
        for first, last in edges.reshape(-1, 2).tolist():
            if last - first >= period:
                yield _Run(offset + first, offset + last + period, period)


def _fed_alike(steps: Sequence[Step], run: _Run) -> _Run:
    """The part of a run, from its start on, through which data goes as through a loop."""
    for at in range(run.start, run.end - run.period):
        pairs = zip(steps[at].inputs, steps[at + run.period].inputs, strict=True)
        if not all(_is_alike(one, next_one, run) for one, next_one in pairs):
            return _Run(run.start, at + run.period, run.period)
    return run


def _is_alike(one: Input, next_one: Input, run: _Run) -> bool:
    """Whether an input and that of the next copy come from the same place in their copies."""
    if next_one.step < run.start:
        return one.step < run.start
    before = next_one.step - run.period
    if one.step < run.start:  # a first copy, which takes what the loop begins with
        return before < run.start
    return one.step == before and one.which == next_one.which


def _aligned(steps: Sequence[Step], run: _Run) -> int:
    """Where a loop with some steps to spare best begins.

    Not inside of a loop of its body; apart from that, where the fewest values are carried.
    """
    spare = (run.end - run.start) % run.period
    if not spare:
        return run.start
    body = Counter(step.symbol for step in steps[run.start : run.start + run.period])
    again = [body[step.symbol] > 1 for step in steps[run.start : run.start + run.period]]
    carried = _carried(steps, run)
    costs = [
        (again[shift - 1] and again[shift], carried[shift : run.end - run.start : run.period].sum())
        for shift in range(spare + 1)
    ]
    return run.start + costs.index(min(costs))


def _carried(steps: Sequence[Step], run: _Run) -> np.ndarray:
    """For each step, how many values of the last copy but one are made before and used after it."""
    first = run.start + (run.copies - 2) * run.period
    last_use: dict[tuple[int, object], int] = {}
    for at in range(first, run.end):
        for each in steps[at].inputs:
            if first <= each.step < first + run.period:
                last_use[each.step, each.which] = at
    crossing = np.zeros(run.end - first + 1, np.int64)
    for (made, _), used in last_use.items():
        crossing[made + 1 - first] += 1
        crossing[used + 1 - first] -= 1
    return np.cumsum(crossing)
