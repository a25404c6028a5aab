"""One turn of a loop that is to be rolled up: what it takes, what it gives, and what it does.

The copies of a loop are read side by side. An input is the same in all of them, or each has its
own, or it is what a copy before has made. Numbers that were written into an equation, or say where
a slice begins, become an input where they change; so do those inside of calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jitcount._jax import jaxprs
from jitcount._loops.sketch import INDICES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._loops.find import Level
    from jitcount._loops.repeats import Repeat


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
    equations = jaxprs.equations_in(level.sketch.jaxpr)
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
    if jaxprs.has_effects(equation):
        raise NotRolledError(f"it does more than compute: {equation.primitive.name}")
    for jaxpr in jaxprs.inner_jaxprs(equation):
        for inside in jaxprs.equations_in(jaxpr):
            _require_pure(inside)


def _find_numbers(numbers: dict[tuple[int, object], np.ndarray], copies: Sequence[Any]) -> None:
    """Of equations side by side, the numbers that differ, also inside of calls."""
    for equations in zip(*copies, strict=True):
        first = equations[0]
        for place, inputs in enumerate(zip(*(each.invars for each in equations), strict=True)):
            if all(map(jaxprs.is_literal, inputs)):
                _add(numbers, (id(first), place), [each.val for each in inputs])
        for name in INDICES.get(first.primitive.name, ()):
            _add(numbers, (id(first), name), [each.params[name] for each in equations])
        inside: dict[tuple[int, object], np.ndarray] = {}
        for bodies in zip(*map(jaxprs.inner_jaxprs, equations), strict=True):
            _find_numbers(inside, [jaxprs.equations_in(body) for body in bodies])
        if inside and first.primitive.name not in jaxprs.CALLS:
            raise NotRolledError(f"a number inside of a {first.primitive.name} changes")
        if first.primitive.name in jaxprs.CALLS:
            _require_same_constants(equations)
        numbers.update(inside)


def _require_same_constants(equations: Sequence[Any]) -> None:
    constants = [jaxprs.body_of(each).consts for each in equations]
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
                if same or all(map(jaxprs.is_literal, names)):
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
    if not jaxprs.is_literal(name):
        return name
    value = np.asarray(name.val)
    return str(value.dtype), value.shape, value.tobytes()


def _sort_outputs(turn: Turn, level: Level) -> None:
    """Find out what of a loop is used after it: of each copy, or of the last one alone."""
    repeat, jaxpr = turn.repeat, level.sketch.jaxpr
    equations = jaxprs.equations_in(jaxpr)
    outside = [
        *(name for each in equations[: repeat.start] for name in each.invars),
        *(name for each in equations[repeat.end :] for name in each.invars),
        *jaxpr.outvars,
    ]
    used = {name for name in outside if not jaxprs.is_literal(name)}
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


# --- Values that are rows of one array, or arguments of the program, and stay so until they are
#
# A scan gives one array for all of its turns, and takes one. What another loop takes of the first
# goes over as it is; a row is taken out only where something else needs it.


@dataclass(slots=True)
class Piece:
    """A value that is one row of an array; taken out of there only if need be."""

    stack: Any
    index: int
    _value: Any = None

    def value(self) -> Any:
        """The row itself."""
        if self._value is None:
            self._value = jax.lax.index_in_dim(self.stack, self.index, keepdims=False)
        return self._value


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the program, by its number."""

    number: int
    given: Any

    def value(self) -> Any:
        """What was passed."""
        return self.given


def plain(value: Any) -> Any:
    """A value as what it is."""
    return value.value() if isinstance(value, Piece | Argument) else value


def stacked(rows: list[Any]) -> Any:
    """Rows as one array: that which they came from, where it is one."""
    if step := step_of(rows):
        low = min(rows[0].index, rows[-1].index)
        part = rows_of(rows[0].stack, low, len(rows))
        return part if step == 1 else jax.numpy.flip(part, 0)
    return jax.numpy.stack(list(map(plain, rows)))


def step_of(rows: list[Any]) -> int:
    """1 for rows that follow each other in one array, -1 for the other way round, else 0."""
    if not all(isinstance(row, Piece) and row.stack is rows[0].stack for row in rows):
        return 0
    steps = {after.index - before.index for before, after in pairwise(rows)}
    return steps.pop() if steps in ({1}, {-1}) else 0


def rows_of(stack: Any, low: int, count: int) -> Any:
    """So many rows of an array; itself, where these are all."""
    if (low, count) == (0, stack.shape[0]):
        return stack
    return jax.lax.slice_in_dim(stack, low, low + count)


# --- What one equation of a loop does in a turn, with the numbers that are of this turn alone -----
#
# A number that was written into an equation, or says where a slice begins, is an input of a scan
# where it changes from turn to turn; what the equation did with it is done another way then.


class NotRolledError(Exception):
    """A loop that cannot be rolled up; the text says why."""


def done(equation: Any, inputs: list[Any], now: dict[Any, Any]) -> list[Any]:
    """What one equation makes, with the numbers of this turn."""
    name = equation.primitive.name
    if name == "slice" and (id(equation), "start_indices") in now:
        return [_sliced(equation, inputs[0], now[id(equation), "start_indices"])]
    if name == "pad" and (id(equation), "padding_config") in now:
        return [_padded(equation, inputs, now[id(equation), "padding_config"])]
    if name in jaxprs.CALLS and _has_numbers(equation, now):
        return _called(equation, inputs, now)
    return jaxprs.evaluate(equation, inputs)


def _has_numbers(equation: Any, now: dict[Any, Any]) -> bool:
    changed = {key[0] for key in now}
    return any(
        id(each) in changed or _has_numbers(each, now)
        for jaxpr in jaxprs.inner_jaxprs(equation)
        for each in jaxprs.equations_in(jaxpr)
    )


def _called(equation: Any, inputs: list[Any], now: dict[Any, Any]) -> list[Any]:
    """A call with numbers that change inside of it: in its place."""
    body = jaxprs.body_of(equation)
    if equation.params.get("differentiated") and inputs:
        inputs = list(jax.lax.optimization_barrier(tuple(inputs)))
    held = dict(zip(body.jaxpr.constvars, body.consts, strict=True))
    held.update(zip(body.jaxpr.invars, inputs, strict=True))
    for each in jaxprs.equations_in(body.jaxpr):
        given = [
            now.get((id(each), place), name.val if jaxprs.is_literal(name) else held.get(name))
            if jaxprs.is_literal(name)
            else held[name]
            for place, name in enumerate(each.invars)
        ]
        held.update(zip(each.outvars, done(each, given, now), strict=True))
    return [each.val if jaxprs.is_literal(each) else held[each] for each in body.jaxpr.outvars]


def _sliced(equation: Any, operand: Any, begin: Any) -> Any:
    if any(step != 1 for step in equation.params["strides"] or ()):
        raise NotRolledError("it slices with strides, elsewhere in each turn")
    sizes = equation.outvars[0].aval.shape
    return jax.lax.dynamic_slice(operand, [begin[i] for i in range(len(sizes))], sizes)


def _padded(equation: Any, inputs: list[Any], config: Any) -> Any:
    """A pad whose widths change: the operand, put into an array of the padding."""
    if any(
        interior or low < 0 or high < 0 for low, high, interior in equation.params["padding_config"]
    ):
        raise NotRolledError("it pads in another way in each turn")
    operand, padding = inputs
    begin = [config[i, 0] for i in range(config.shape[0])]
    whole = jax.lax.full(equation.outvars[0].aval.shape, padding, operand.dtype)
    return jax.lax.dynamic_update_slice(whole, operand, begin)
