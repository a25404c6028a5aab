"""The programs of this process, and the nearest earlier one of the same function.

Programs are kept as descriptions, in rows of numbers that are compared all at once: finding the
nearest among thousands takes microseconds. The history is bounded, in programs and in facets: what
comes first goes first.
"""

from __future__ import annotations

import itertools
import operator
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitcount.observe.program import Facet, Program

MOST_PROGRAMS = 100_000
MOST_FACETS = 3_000_000  # of all programs: a facet takes 16 bytes and its share of a value

# Of one function and layout, so that the search takes no longer the longer a program runs.
MOST_SEARCHED = 8192

# A function whose arguments change their structure at each call has many layouts; so many of them,
# the latest, are searched.
_LAYOUTS_SEARCHED = 8


@dataclass(slots=True)
class _Layout:
    """The programs of one function that have the same facets, a column each."""

    facets: tuple[Facet, ...]
    programs: deque[Program] = field(default_factory=deque)
    numbers: np.ndarray = field(init=False)
    """A column for each program but the latest ones, which are not yet needed there."""

    latest: dict[int, Program] = field(default_factory=dict)
    """The latest program with these values, by their hash."""

    first: int = 0
    """The column of the oldest program that is still there."""

    filled: int = 0
    """How many programs have their column."""

    def __post_init__(self) -> None:
        self.numbers = np.zeros((len(self.facets), 1), np.int64)

    def add(self, program: Program) -> None:
        program.facets = self.facets  # kept once
        self.programs.append(program)
        self.latest[hash(program.numbers)] = program

    def drop_oldest(self) -> Program:
        if self.filled:
            self.first += 1
            self.filled -= 1
        dropped = self.programs.popleft()
        key = hash(dropped.numbers)
        if self.latest.get(key) is dropped:
            del self.latest[key]
        return dropped

    def nearest(self, program: Program) -> Program | None:
        """The program with the fewest facets that differ; the latest of equals."""
        if not self.programs:
            return None
        if program.facets is self.facets or program.facets == self.facets:
            identical = self.latest.get(hash(program.numbers))
            if identical is not None:
                return identical
            last = self.programs[-1]
            if sum(map(operator.ne, last.numbers, program.numbers)) == 1:
                return last
        rows, numbers = self._common(program)
        self._fill()
        end = self.first + self.filled
        columns = slice(max(self.first, end - MOST_SEARCHED), end)
        differ = (self.numbers[rows, columns] != numbers[:, None]).sum(axis=0)
        steps_back = int(np.argmin(differ[::-1]))
        return self.programs[-1 - steps_back]

    def _fill(self) -> None:
        """Give the programs that came since the last search their columns, all at once."""
        missing = len(self.programs) - self.filled
        if not missing:
            return
        end = self.first + self.filled
        if end + missing > self.numbers.shape[1]:
            kept = self.numbers[:, self.first : end]
            self.numbers = np.zeros((len(self.facets), 2 * len(self.programs)), np.int64)
            self.numbers[:, : self.filled] = kept
            self.first, end = 0, self.filled
        new = itertools.islice(self.programs, self.filled, None)
        self.numbers[:, end : end + missing] = np.array([p.numbers for p in new], np.int64).T
        self.filled += missing

    def _common(self, program: Program) -> tuple[slice | list[int], np.ndarray]:
        """The rows of the facets that both have, and what the program has there."""
        numbers = program.numbers
        if program.facets == self.facets:
            return slice(None), np.array(numbers, np.int64)
        mine = {facet: row for row, facet in enumerate(self.facets)}
        rows = [mine[facet] for facet in program.facets if facet in mine]
        theirs = [n for facet, n in zip(program.facets, numbers, strict=True) if facet in mine]
        return rows, np.array(theirs, np.int64)


@dataclass(slots=True)
class _Group:
    """The programs of one function; the layout that was used last stands last."""

    layouts: OrderedDict[tuple[Facet, ...], _Layout] = field(default_factory=OrderedDict)
    order: deque[_Layout] = field(default_factory=deque)
    """The layout of each program, oldest first."""


class History:
    """The programs that were compiled, as far back as there is room."""

    def __init__(self) -> None:
        self._groups: dict[tuple[object, ...], _Group] = {}
        self._order: deque[tuple[object, ...]] = deque()
        self._programs = 0
        self._facets = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._programs

    def look(self, program: Program) -> tuple[Program, ...]:
        """What `add` would return, without remembering the program."""
        with self._lock:
            group = self._groups.get(program.group)
            if group is None:
                return ()
            layout = group.layouts.get(program.facets) or _Layout(program.facets)
            return tuple(self._candidates(group, layout, program))

    def add(self, program: Program) -> tuple[Program, ...]:
        """Remember a program.

        Returns:
            Earlier programs that may be the nearest, one of each layout; none for a first call.
        """
        with self._lock:
            group = self._groups.get(program.group)
            if group is None:
                group = self._groups[program.group] = _Group()
            layout = group.layouts.get(program.facets)
            if layout is None:
                layout = group.layouts[program.facets] = _Layout(program.facets)
            else:
                group.layouts.move_to_end(program.facets)
            earlier = tuple(self._candidates(group, layout, program))
            layout.add(program)
            group.order.append(layout)
            self._order.append(program.group)
            self._programs += 1
            self._facets += len(program.facets)
            while self._programs > MOST_PROGRAMS or self._facets > MOST_FACETS:
                self._drop_oldest_of(self._order.popleft())
            return earlier

    @staticmethod
    def _candidates(group: _Group, layout: _Layout, program: Program) -> Iterator[Program]:
        """The nearest of each layout, as long as a nearer one can be in another."""
        if (nearest := layout.nearest(program)) is not None:
            yield nearest
            if sum(map(operator.ne, nearest.numbers, program.numbers)) <= 1:
                return
        others = [other for other in reversed(group.layouts.values()) if other is not layout]
        for other in others[:_LAYOUTS_SEARCHED]:
            if (nearest := other.nearest(program)) is not None:
                yield nearest

    def _drop_oldest_of(self, key: tuple[object, ...]) -> None:
        group = self._groups[key]
        layout = group.order.popleft()
        dropped = layout.drop_oldest()
        self._programs -= 1
        self._facets -= len(dropped.facets)
        if not layout.programs:
            del group.layouts[layout.facets]
        if not group.order:
            del self._groups[key]
