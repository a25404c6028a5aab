"""The programs of this process, and the nearest earlier ones of the same function.

Programs are kept as descriptions, in rows of numbers that are compared all at once: finding the
nearest among thousands takes microseconds. The history is bounded, in programs and in numbers: what
comes first goes first.

The nearest program differs least in what comes first in `Precedence`: the function, how it is
transformed, then static arguments, the jit's options, settings, the arguments' structure, and only
then arrays. A function that was compiled before is compared with itself, however many of its arrays
have changed.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jitcount._explain.causes.cause import Precedence
from jitcount._observe.program import HEAD
from jitcount._observe.statics import Static
from jitcount._observe.trees import Node
from jitcount._observe.values import Leaf

if TYPE_CHECKING:
    from jitcount._observe.program import Program, Value

MOST_PROGRAMS = 100_000
MOST_NUMBERS = 3_000_000  # of all programs: each takes 16 bytes and its share of a value

# Of one function and layout, so that the search takes no longer the longer a program runs.
MOST_SEARCHED = 8192

# A function whose arguments change their structure at each call has many layouts; so many of them,
# the latest, are searched.
_LAYOUTS_SEARCHED = 8

# Of programs that are equally near, so many, the latest, are looked at closely.
_EQUALS = 4

_BITS = 64  # of each number in a program's key

# How many differences of a level one program can have, as a power of two: it has one function, one
# set of options and of settings, but many static arguments, nodes and arrays.
_ROOM = {
    Precedence.ARRAY: 20,
    Precedence.STRUCTURE: 16,
    Precedence.SETTINGS: 1,
    Precedence.OPTIONS: 1,
    Precedence.STATIC: 19,
    Precedence.TRANSFORM: 1,
}

WEIGHTS = {
    level: 2 ** sum(room for below, room in _ROOM.items() if below > level)
    for level in Precedence
    if level != Precedence.NO_DIFFERENCE
}
"""The weight of one difference: more than all differences of the levels below it together."""

_FUNCTION, _TRANSFORM, _STATIC, _OPTIONS, _SETTINGS, _STRUCTURE, _LEAF = WEIGHTS.values()
_WEIGHTS_OF_HEAD = (_FUNCTION, _TRANSFORM, _OPTIONS, _SETTINGS, _STRUCTURE)


def _weight(value: Value) -> int:
    """The weight of a difference at one place of the arguments."""
    if isinstance(value, Static) or (isinstance(value, Node) and value.static is not None):
        return _STATIC
    return _STRUCTURE if isinstance(value, Node) else _LEAF


@dataclass(slots=True)
class _Layout:
    """The programs of one function that have the same places, a column each."""

    places: tuple[str, ...]
    weights: np.ndarray
    programs: deque[Program] = field(default_factory=deque)
    numbers: np.ndarray = field(init=False)
    """A column for each program but the latest ones, which are not yet needed there."""

    latest: dict[bytes, Program] = field(default_factory=dict)
    """The latest program with these numbers."""

    first: int = 0
    """The column of the oldest program that is still kept."""

    filled: int = 0
    """How many programs have their column."""

    def __post_init__(self) -> None:
        self.numbers = np.zeros((len(self.weights), 1), np.int64)

    @classmethod
    def of(cls, program: Program) -> _Layout:
        weights = (*_WEIGHTS_OF_HEAD, *map(_weight, program.values))
        return cls(program.places, np.array(weights, np.int64))

    def add(self, program: Program) -> None:
        program.places = self.places  # kept once
        if self.programs:  # what is as it was before, too
            pairs = zip(self.programs[-1].values, program.values, strict=True)
            program.values = tuple([old if old == new else new for old, new in pairs])
        self.programs.append(program)
        self.latest[program.key] = program

    def drop_oldest(self) -> Program:
        if self.filled:
            self.first += 1
            self.filled -= 1
        dropped = self.programs.popleft()
        if self.latest.get(dropped.key) is dropped:
            del self.latest[dropped.key]
        return dropped

    def hardly_different(self, program: Program) -> Program | None:
        """The program with the same places that is identical, or the latest, if little differs.

        No other program can be nearer, whatever its layout.
        """
        identical = self.latest.get(program.key)
        if identical is not None:
            return identical
        latest = self.programs[-1]
        return latest if differ_in_little(latest, program) else None

    def nearest(self, program: Program) -> list[Program]:
        """The programs that differ least, the latest first."""
        rows, numbers = self._common(program)
        self._fill()
        end = self.first + self.filled
        columns = slice(max(self.first, end - MOST_SEARCHED), end)
        differ = self.numbers[rows, columns] != numbers[:, None]
        distances = np.einsum("i,ij->j", self.weights[rows], differ)[::-1]
        equals = np.flatnonzero(distances == distances.min())[:_EQUALS]
        return [self.programs[-1 - int(steps_back)] for steps_back in equals]

    def _fill(self) -> None:
        """Give the programs that came since the last search their columns, all at once."""
        missing = len(self.programs) - self.filled
        if not missing:
            return
        end = self.first + self.filled
        if end + missing > self.numbers.shape[1]:
            kept = self.numbers[:, self.first : end]
            self.numbers = np.zeros((len(self.weights), 2 * len(self.programs)), np.int64)
            self.numbers[:, : self.filled] = kept
            self.first, end = 0, self.filled
        new = itertools.islice(self.programs, self.filled, None)
        self.numbers[:, end : end + missing] = np.array([p.numbers for p in new]).T
        self.filled += missing

    def _common(self, program: Program) -> tuple[slice | list[int], np.ndarray]:
        """The rows of what both have, and what the program has there."""
        numbers = program.numbers
        if program.places == self.places:
            return slice(None), numbers
        mine = {place: row for row, place in enumerate(self.places, HEAD)}
        both = [row for row, place in enumerate(program.places, HEAD) if place in mine]
        rows = [*range(HEAD), *(mine[program.places[row - HEAD]] for row in both)]
        return rows, numbers[[*range(HEAD), *both]]


def differ_in_little(earlier: Program, later: Program) -> bool:
    """Whether two programs of one layout differ in one thing of one array: nothing is nearer."""
    # Both as one large number: that is quicker than NumPy's first step.
    different = int.from_bytes(earlier.key, "little") ^ int.from_bytes(later.key, "little")
    first, last = (different & -different).bit_length() - 1, different.bit_length() - 1
    row = first // _BITS
    if row < HEAD or row != last // _BITS:
        return False
    old, new = earlier.values[row - HEAD], later.values[row - HEAD]
    return isinstance(old, Leaf) and isinstance(new, Leaf) and old.differences_from(new) == 1


@dataclass(slots=True)
class _Group:
    """The programs of one function; the layout that was used last stands last."""

    layouts: OrderedDict[tuple[str, ...], _Layout] = field(default_factory=OrderedDict)
    order: deque[_Layout] = field(default_factory=deque)
    """The layout of each program, oldest first."""


class History:
    """The programs that this process compiled; the oldest are dropped to stay within bounds.

    A garbage collection in here may run a finalizer that compiles, in the same thread: its program
    waits until the work that it interrupts is done, and has no neighbours.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[object, ...], _Group] = {}
        self._order: deque[tuple[object, ...]] = deque()
        self._programs = 0
        self._numbers = 0
        self._lock = threading.RLock()
        self._is_at_work = False
        self._waiting: deque[Program] = deque()

    def __len__(self) -> int:
        return self._programs

    def look(self, program: Program) -> tuple[Program, ...] | None:
        """What `add` would return, without remembering the program."""
        return self._neighbours(program, remember=False)

    def add(self, program: Program) -> tuple[Program, ...] | None:
        """Remember a program.

        Returns:
            Earlier programs that may be the nearest, the latest of each layout first; none for a
            first call. None, where this thread is in here already.
        """
        return self._neighbours(program, remember=True)

    def _neighbours(self, program: Program, *, remember: bool) -> tuple[Program, ...] | None:
        with self._lock:
            if self._is_at_work:
                if remember:
                    self._waiting.append(program)
                return None
            self._is_at_work = True
            try:
                earlier = self._candidates(program)
                if remember:
                    self._remember(program)
                while self._waiting:
                    self._remember(self._waiting.popleft())
                return earlier
            finally:
                self._is_at_work = False

    def _candidates(self, program: Program) -> tuple[Program, ...]:
        """The nearest of each layout, as long as a nearer one can be in another."""
        group = self._groups.get(program.group)
        if group is None:
            return ()
        layout = group.layouts.get(program.places)
        found: list[Program] = []
        if layout is not None:
            hardly_different = layout.hardly_different(program)
            if hardly_different is not None:
                return (hardly_different,)
            found = layout.nearest(program)
            if differ_in_little(found[0], program):
                return (found[0],)
        others = [other for other in reversed(group.layouts.values()) if other is not layout]
        for other in others[:_LAYOUTS_SEARCHED]:
            found += other.nearest(program)
        return tuple(found)

    def _remember(self, program: Program) -> None:
        group = self._groups.get(program.group)
        if group is None:
            group = self._groups[program.group] = _Group()
        layout = group.layouts.get(program.places)
        if layout is None:
            layout = group.layouts[program.places] = _Layout.of(program)
        else:
            group.layouts.move_to_end(program.places)
        layout.add(program)
        group.order.append(layout)
        self._order.append(program.group)
        self._programs += 1
        self._numbers += len(program.key) * 8 // _BITS
        while self._programs > MOST_PROGRAMS or self._numbers > MOST_NUMBERS:
            self._drop_oldest_of(self._order.popleft())

    def _drop_oldest_of(self, key: tuple[object, ...]) -> None:
        group = self._groups[key]
        layout = group.order.popleft()
        dropped = layout.drop_oldest()
        self._programs -= 1
        self._numbers -= len(dropped.key) * 8 // _BITS
        if not layout.programs:
            del group.layouts[layout.places]
        if not group.order:
            del self._groups[key]
