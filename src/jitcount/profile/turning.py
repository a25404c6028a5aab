"""One turn of a loop that is to be rolled up: what it takes, what it gives, and what it does.

The copies of a loop are read side by side. An input is the same in all of them, or each has its
own, or it is what a copy before has made. Numbers that were written into an equation, or say where
a slice begins, become an input where they change; so do those inside of calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jitcount._jax import levels
from jitcount.profile.evaluating import NotRolledError, done
from jitcount.profile.signatures import INDICES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount.profile.level import Level
    from jitcount.profile.repeats import Repeat


class Slot(NamedTuple):
    """What is carried from turn to turn: one value, or those of the last few turns."""

    name: Any
    """Of the first copy, the name of what is carried."""

    begin: tuple[Any, ...]
    """What it is before the first turn, the oldest first."""


@dataclass(slots=True)
class Turn:
    """What a scan is made from."""

    repeat: Repeat
    equations: list[Any]
    """Of the first copy."""

    reads: dict[tuple[int, int], tuple[str, Any]] = field(default_factory=dict)
    """By equation and input: from where."""

    slots: list[Slot] = field(default_factory=list)
    stacked: list[tuple[Any, ...]] = field(default_factory=list)
    numbers: dict[tuple[int, object], np.ndarray] = field(default_factory=dict)
    """By equation and place in it, numbers that change."""

    names: list[list[Any]] = field(default_factory=list)
    """Of each copy, the names of what it makes, in the order of the first."""

    outputs: list[Any] = field(default_factory=list)
    """Of the first copy, the names of what is used of each copy."""

    kept: list[Any] = field(default_factory=list)
    """The same, of the last copy alone."""

    def run(
        self, values: Any, slots: list[Any], stacked: list[Any], numbers: list[Any]
    ) -> dict[Any, Any]:
        """Do what one turn does; gives all that it makes, by its names in the first copy."""
        now = dict(zip(self.numbers, numbers, strict=True))
        made: dict[Any, Any] = {}
        sources: dict[str, Callable[[Any], Any]] = {
            "constant": lambda name: values[name],
            "made": made.__getitem__,
            "carried": lambda slot: slots[slot][0],
            "stacked": stacked.__getitem__,
        }
        for at, equation in enumerate(self.equations):
            inputs = []
            for place in range(len(equation.invars)):
                kind, which = self.reads[at, place]
                number = now.get((id(equation), place))
                inputs.append(sources[kind](which) if number is None else number)
            results = done(equation, inputs, now)
            made.update(zip(equation.outvars, results, strict=True))
        return made

    def put(self, held: dict[Any, Any], slots: Any, kept: Any, outputs: list[list[Any]]) -> None:
        """Put what came out of the scan where the rest of the program finds it.

        Args:
            held: the values of the program, by their names.
            slots: what was carried.
            kept: what the last turn has left.
            outputs: what each turn has left.
        """
        place = {name: number for number, name in enumerate(self.names[0])}
        for name, rows in zip(self.outputs, outputs, strict=True):
            for row, names in zip(rows, self.names, strict=True):
                held[names[place[name]]] = row
        for name, value in zip(self.kept, kept, strict=True):
            held[self.names[-1][place[name]]] = value
        for slot, values in zip(self.slots, slots, strict=True):
            held[self.names[-1][place[slot.name]]] = values[-1]


def new_turn(level: Level, repeat: Repeat) -> Turn:
    """Read the copies of a loop.

    Raises:
        NotRolledError: it does more than compute.
    """
    equations = levels.equations_in(level.sketch.jaxpr)
    copies = [
        equations[start : start + repeat.period]
        for start in range(repeat.start, repeat.end, repeat.period)
    ]
    turn = Turn(repeat, copies[0])
    turn.names = [[name for each in copy for name in each.outvars] for copy in copies]
    for equation in copies[0]:
        _require_pure(equation)
    _find_numbers(turn.numbers, copies)
    _sort_inputs(turn, level, copies)
    _sort_outputs(turn, level)
    return turn


def _require_pure(equation: Any) -> None:
    if levels.has_effects(equation):
        raise NotRolledError(f"it does more than compute: {equation.primitive.name}")
    for jaxpr in levels.inner_jaxprs(equation):
        for inside in levels.equations_in(jaxpr):
            _require_pure(inside)


def _find_numbers(numbers: dict[tuple[int, object], np.ndarray], copies: Sequence[Any]) -> None:
    """Of equations side by side, the numbers that differ, also inside of calls."""
    for equations in zip(*copies, strict=True):
        first = equations[0]
        for place, inputs in enumerate(zip(*(each.invars for each in equations), strict=True)):
            if all(map(levels.is_literal, inputs)):
                _add(numbers, (id(first), place), [each.val for each in inputs])
        for name in INDICES.get(first.primitive.name, ()):
            _add(numbers, (id(first), name), [each.params[name] for each in equations])
        inside: dict[tuple[int, object], np.ndarray] = {}
        for bodies in zip(*map(levels.inner_jaxprs, equations), strict=True):
            _find_numbers(inside, [levels.equations_in(body) for body in bodies])
        if inside and first.primitive.name not in levels.CALLS:
            raise NotRolledError(f"a number inside of a {first.primitive.name} changes")
        if first.primitive.name in levels.CALLS:
            _require_same_constants(equations)
        numbers.update(inside)


def _require_same_constants(equations: Sequence[Any]) -> None:
    constants = [levels.body_of(each).consts for each in equations]
    if any(
        one is not other
        for each in constants
        for one, other in zip(constants[0], each, strict=True)
    ):
        raise NotRolledError("an array that a function inside of it closed over changes")


def _add(numbers: dict[tuple[int, object], np.ndarray], key: Any, found: list[Any]) -> None:
    if any(np.shape(each) != np.shape(found[0]) for each in found):
        raise NotRolledError("a slice has another rank")
    every = np.asarray(found)
    if any(each.tobytes() != every[0].tobytes() for each in every[1:]):
        numbers[key] = every


def _sort_inputs(turn: Turn, level: Level, copies: Sequence[Any]) -> None:
    """Find out, of each input of a turn, where it comes from."""
    repeat = turn.repeat
    slots: dict[object, int] = {}
    stacks: dict[object, int] = {}
    for at, equation in enumerate(turn.equations):
        for place in range(len(equation.invars)):
            names = tuple(copy[at].invars[place] for copy in copies)
            made_at = level.steps[repeat.end - repeat.period + at].inputs[place].step
            back = (repeat.end - repeat.period + at - made_at) if made_at >= repeat.start else 0
            lag = (repeat.copies - 1) - (made_at - repeat.start) // repeat.period
            if not back:
                same = len({_identity(name) for name in names}) == 1
                if same or all(map(levels.is_literal, names)):
                    turn.reads[at, place] = "constant", names[0]
                else:
                    key: object = tuple(map(_identity, names))
                    turn.reads[at, place] = "stacked", stacks.setdefault(key, len(stacks))
                    turn.stacked += [names] if len(stacks) > len(turn.stacked) else []
            else:
                which = level.steps[repeat.end - repeat.period + at].inputs[place].which
                source = turn.equations[(made_at - repeat.start) % repeat.period].outvars[which]
                if not lag:
                    turn.reads[at, place] = "made", source
                    continue
                begin = names[:lag]
                key = source, tuple(map(_identity, begin))
                turn.reads[at, place] = "carried", slots.setdefault(key, len(slots))
                turn.slots += [Slot(source, begin)] if len(slots) > len(turn.slots) else []


def _identity(name: Any) -> object:
    """What tells one input from another."""
    if not levels.is_literal(name):
        return name
    value = np.asarray(name.val)
    return str(value.dtype), value.shape, value.tobytes()


def _sort_outputs(turn: Turn, level: Level) -> None:
    """Find out what of a loop is used after it: of each copy, or of the last one alone."""
    repeat, jaxpr = turn.repeat, level.sketch.jaxpr
    equations = levels.equations_in(jaxpr)
    outside = [
        *(name for each in equations[: repeat.start] for name in each.invars),
        *(name for each in equations[repeat.end :] for name in each.invars),
        *jaxpr.outvars,
    ]
    used = {name for name in outside if not levels.is_literal(name)}
    carried = {slot.name for slot in turn.slots}
    for names in zip(*turn.names, strict=True):
        if any(name in used for name in names[:-1]) or (
            names[-1] in used and not _is_plain(names[0])
        ):
            turn.outputs.append(names[0])
        elif names[-1] in used and names[0] not in carried:
            turn.kept.append(names[0])


def _is_plain(name: Any) -> bool:
    return not jax.numpy.issubdtype(name.aval.dtype, jax.dtypes.extended)
