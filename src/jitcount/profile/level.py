"""A level of a program, as steps in which repeats can be looked for, and what else is a loop's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jitcount.profile.python_loops import Keys
from jitcount.profile.repeats import Repeat, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jitcount._jax.levels import Stack
    from jitcount.profile.sketch import Mark, Sketch

# Of a body that comes from one place: so many copies are a loop, where each follows from the one
# before, and so many where none does.
_FEW = 3
_SOME = 4


class Level:
    """The equations of one jaxpr."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self._marks = sketch.marks
        self._keys = Keys()
        self._places: dict[int, tuple[object, ...]] = {}
        self.steps = list(self._steps())

    def body(self, repeat: Repeat) -> list[Mark]:
        """The equations of one copy, the first."""
        return self._marks[repeat.start : repeat.start + repeat.period]

    def stack_at(self, number: int) -> Stack:
        """The stack of an equation, from the function of this level on.

        Up to 0.9 JAX keeps what is around that too: a loop that calls the program is none of it.
        """
        stack, traced = self._marks[number].stack, self.sketch.source
        if traced is None:
            return stack
        for depth in range(len(stack) - 1, -1, -1):
            code = stack[depth][0]
            if (code.co_filename, str(code.co_firstlineno)) == (traced.file, traced.line):
                return stack[: depth + 1]
        return stack

    def operations(self, repeat: Repeat) -> int:
        """How many operations a copy has, with those in bodies of its own."""
        return sum(mark.kind.operations for mark in self.body(repeat))

    def is_a_loop(self, repeat: Repeat) -> bool:
        """Whether it computes, and not the same thing again and again.

        Where all of a body comes from one place, few copies that do not follow from each other may
        as well be what a transformation made of one operation: two products of a derivative.
        """
        if not any(mark.kind.computes for mark in self.body(repeat)):
            return False
        second = repeat.start + repeat.period
        follows, changes = False, False
        for at in range(repeat.start, second):
            inputs, next_inputs = self.steps[at].inputs, self.steps[at + repeat.period].inputs
            for one, next_one in zip(inputs, next_inputs, strict=True):
                follows |= repeat.start <= next_one.step < second
                changes |= next_one.step < second and one != next_one
        if repeat.copies >= (_FEW if follows else _SOME):
            return changes
        return changes and len(set(map(self._place, self.body(repeat)))) > 1

    def turns(self, repeat: Repeat) -> int:
        """How often the loop was gone through.

        The first turn or the last may have less than the others: of a gradient, nothing for what
        the first layer is given. It still is one, unless what it has is of another shape.
        """
        copy = range(repeat.start, repeat.start + repeat.period)
        symbols = Counter(self.steps[at].symbol for at in copy)
        first, last = repeat.within
        before = range(max(repeat.start - repeat.period, first), repeat.start)
        after = range(repeat.end, min(repeat.end + repeat.period, last))
        sides = [self._shared(side, repeat) for side in (before, after)]
        parts = [Counter(x for x in side or () if x in symbols) for side in sides]
        # The copies need not begin where a turn does: then the two ends are parts of one.
        is_one = parts[0] + parts[1] <= symbols
        if None in sides and is_one:  # one that is of another shape
            return repeat.copies
        return repeat.copies + (any(parts) if is_one else sum(map(bool, parts)))

    def _shared(self, side: Iterable[int], repeat: Repeat) -> list[int] | None:
        """The symbols of the equations beside a repeat that come from the same places.

        None where they are not of the same shapes.
        """
        body = self.body(repeat)
        places = set(map(self._place, body))
        shapes = {shape for mark in body for shape in mark.kind.shapes}
        turn = [at for at in side if self._place(self._marks[at]) in places]
        is_alike = all(shapes.issuperset(self._marks[at].kind.shapes) for at in turn)
        return [self.steps[at].symbol for at in turn] if is_alike else None

    def _place(self, mark: Mark) -> tuple[object, ...]:
        """Where it was traced, for comparison; equations of the same stack share it."""
        if id(mark.stack) not in self._places:
            self._places[id(mark.stack)] = self._keys.of(mark.stack)
        return self._places[id(mark.stack)]

    def _steps(self) -> Iterator[Step]:
        """The equations as steps; the stack is read of those that are not alone of their kind."""
        how_many = Counter(mark.kind.number for mark in self._marks)
        symbols: dict[object, int] = {}
        for mark in self._marks:
            place = self._place(mark) if how_many[mark.kind.number] > 1 else ()
            symbol = symbols.setdefault((mark.kind.number, place), len(symbols))
            yield Step(symbol, mark.inputs)
