"""Reads an iteration of a loop that is to be a scan: what it takes, what it makes, what it does.

The copies of a loop are read side by side. An input is the same in all of them, or each has its
own, or a copy before has made it. Numbers that were written into an equation, or say where a slice
begins, become inputs of the scan where they change; so do those inside of calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jitcount._jax import jaxprs
from jitcount._loops.sketch import INDICES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._loops.find import JaxprLevel
    from jitcount._loops.repeats import Repeat

Numbers = dict[tuple[int, object], np.ndarray]
"""Numbers that change, by the id of their equation and their place in it, one of each copy."""


class NotAScanError(Exception):
    """A loop cannot be made into a scan; the text says why."""


class Slot(NamedTuple):
    """What is carried from iteration to iteration: one value, or those of the last few."""

    name: Any
    """The name of what is carried, in the first copy."""

    begin: tuple[Any, ...]
    """The names of its values before the first iteration, the oldest first."""


@dataclass(slots=True)
class Iteration:
    """One iteration of a loop, from which the body of a scan is made."""

    repeat: Repeat
    equations: list[Any]
    """The equations of the first copy."""

    reads: dict[tuple[int, int], tuple[str, Any]] = field(default_factory=dict)
    """By equation and input, where the input comes from, and which of those it is."""

    slots: list[Slot] = field(default_factory=list)
    stacked: list[tuple[Any, ...]] = field(default_factory=list)
    """The names of inputs of which each copy has its own."""

    numbers: Numbers = field(default_factory=dict)
    names: list[list[Any]] = field(default_factory=list)
    """For each copy, the names of what it makes, in the order of the first."""

    outputs: list[Any] = field(default_factory=list)
    """The names, in the first copy, of what the program uses of each copy."""

    kept: list[Any] = field(default_factory=list)
    """The names, in the first copy, of what the program uses of the last copy alone."""

    def run(
        self, values: Any, slots: list[Any], stacked: list[Any], numbers: list[Any]
    ) -> dict[Any, Any]:
        """Evaluate one iteration; returns all that it makes, by the names in the first copy."""
        now = dict(zip(self.numbers, numbers, strict=True))
        made: dict[Any, Any] = {}
        sources: dict[str, Callable[[Any], Any]] = {
            "constant": lambda name: values[name],
            "made": made.__getitem__,
            "carried": lambda slot: slots[slot][0],
            "stacked": stacked.__getitem__,
        }
        for at, equation in enumerate(self.equations):
            reads = (self.reads[at, place] for place in range(len(equation.invars)))
            results = _evaluate(equation, [sources[kind](which) for kind, which in reads], now)
            made.update(zip(equation.outvars, results, strict=True))
        return made

    def put(self, held: dict[Any, Any], slots: Any, kept: Any, outputs: list[list[Any]]) -> None:
        """Put the results of the scan where the rest of the program finds them.

        Args:
            held: the values of the program, by their names.
            slots: the values that were carried.
            kept: the values of the last iteration.
            outputs: the values of each iteration.
        """
        place = {name: number for number, name in enumerate(self.names[0])}
        for name, rows in zip(self.outputs, outputs, strict=True):
            for row, names in zip(rows, self.names, strict=True):
                held[names[place[name]]] = row
        for name, value in zip(self.kept, kept, strict=True):
            held[self.names[-1][place[name]]] = value
        for slot, values in zip(self.slots, slots, strict=True):
            held[self.names[-1][place[slot.name]]] = values[-1]


def read_iteration(level: JaxprLevel, repeat: Repeat) -> Iteration:
    """Read the copies of a loop.

    Raises:
        NotAScanError: the loop cannot be made into a scan; the text says why.
    """
    equations = jaxprs.equations_in(level.sketch.jaxpr)
    copies = [
        equations[start : start + repeat.period]
        for start in range(repeat.start, repeat.end, repeat.period)
    ]
    iteration = Iteration(repeat, copies[0])
    iteration.names = [[name for each in copy for name in each.outvars] for copy in copies]
    for equation in copies[0]:
        _require_pure(equation)
    _find_numbers(iteration.numbers, copies)
    _sort_inputs(iteration, level, copies)
    _sort_outputs(iteration, level)
    return iteration


def _require_pure(equation: Any) -> None:
    if jaxprs.has_effects(equation):
        raise NotAScanError(f"it does more than compute: {equation.primitive.name}")
    for jaxpr in jaxprs.inner_jaxprs(equation):
        for inside in jaxprs.equations_in(jaxpr):
            _require_pure(inside)


def _find_numbers(numbers: Numbers, copies: Sequence[Any]) -> None:
    """Add the numbers in which the copies differ, also inside of calls."""
    for equations in zip(*copies, strict=True):
        first = equations[0]
        for place, inputs in enumerate(zip(*(each.invars for each in equations), strict=True)):
            if all(map(jaxprs.is_literal, inputs)):
                _add(numbers, (id(first), place), [each.val for each in inputs])
        for name in INDICES.get(first.primitive.name, ()):
            _add(numbers, (id(first), name), [each.params[name] for each in equations])
        inside: Numbers = {}
        for bodies in zip(*map(jaxprs.inner_jaxprs, equations), strict=True):
            _find_numbers(inside, [jaxprs.equations_in(body) for body in bodies])
        if inside and first.primitive.name not in jaxprs.CALLS:
            raise NotAScanError(f"a number inside of a {first.primitive.name} changes")
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
        raise NotAScanError("an array that a function inside of it closed over changes")


def _add(numbers: Numbers, key: Any, found: list[Any]) -> None:
    if any(np.shape(each) != np.shape(found[0]) for each in found):
        raise NotAScanError("a slice has another rank")
    every = np.asarray(found)
    if any(each.tobytes() != every[0].tobytes() for each in every[1:]):
        numbers[key] = every


def _sort_inputs(iteration: Iteration, level: JaxprLevel, copies: Sequence[Any]) -> None:
    """Find out where each input of an iteration comes from."""
    repeat = iteration.repeat
    last = repeat.end - repeat.period
    slots: dict[object, int] = {}
    stacks: dict[object, int] = {}
    for at, equation in enumerate(iteration.equations):
        for place in range(len(equation.invars)):
            names = tuple(copy[at].invars[place] for copy in copies)
            made_at, which = level.steps[last + at].inputs[place]
            if made_at < repeat.start:
                own = tuple(map(_identity, names))
                if len(set(own)) == 1 or all(map(jaxprs.is_literal, names)):
                    iteration.reads[at, place] = "constant", names[0]
                    continue
                iteration.reads[at, place] = "stacked", stacks.setdefault(own, len(stacks))
                iteration.stacked += [names] if len(stacks) > len(iteration.stacked) else []
                continue
            number, made_at = divmod(made_at - repeat.start, repeat.period)
            source = iteration.equations[made_at].outvars[which]
            lag = repeat.copies - 1 - number
            if not lag:
                iteration.reads[at, place] = "made", source
                continue
            begin = names[:lag]
            key = source, tuple(map(_identity, begin))
            iteration.reads[at, place] = "carried", slots.setdefault(key, len(slots))
            iteration.slots += [Slot(source, begin)] if len(slots) > len(iteration.slots) else []


def _identity(name: Any) -> object:
    """A key that tells one input from another."""
    if not jaxprs.is_literal(name):
        return name
    value = np.asarray(name.val)
    return str(value.dtype), value.shape, value.tobytes()


def _sort_outputs(iteration: Iteration, level: JaxprLevel) -> None:
    """Find out what the program uses of each copy, and what of the last one alone."""
    repeat, jaxpr = iteration.repeat, level.sketch.jaxpr
    equations = jaxprs.equations_in(jaxpr)
    outside = [
        *(name for each in equations[: repeat.start] for name in each.invars),
        *(name for each in equations[repeat.end :] for name in each.invars),
        *jaxpr.outvars,
    ]
    used = {name for name in outside if not jaxprs.is_literal(name)}
    carried = {slot.name for slot in iteration.slots}
    for names in zip(*iteration.names, strict=True):
        if any(name in used for name in names[:-1]) or (
            names[-1] in used and not has_plain_dtype(names[0])
        ):
            iteration.outputs.append(names[0])
        elif names[-1] in used and names[0] not in carried:
            iteration.kept.append(names[0])


def has_plain_dtype(name: Any) -> bool:
    """Whether a value is an array of numbers, and not of random keys."""
    return not jax.numpy.issubdtype(name.aval.dtype, jax.dtypes.extended)


def _evaluate(equation: Any, inputs: list[Any], now: dict[Any, Any]) -> list[Any]:
    """Evaluate an equation with the numbers of this iteration, `now`, in place of its own."""
    name = equation.primitive.name
    inputs = [now.get((id(equation), place), each) for place, each in enumerate(inputs)]
    if name == "slice" and (id(equation), "start_indices") in now:
        return [_sliced(equation, inputs[0], now[id(equation), "start_indices"])]
    if name == "pad" and (id(equation), "padding_config") in now:
        return [_padded(equation, inputs, now[id(equation), "padding_config"])]
    if name in jaxprs.CALLS and _has_numbers(equation, now):
        return _evaluate_call(equation, inputs, now)
    return jaxprs.eval_equation(equation, inputs)


def _has_numbers(equation: Any, now: dict[Any, Any]) -> bool:
    changed = {key[0] for key in now}
    return any(
        id(each) in changed or _has_numbers(each, now)
        for jaxpr in jaxprs.inner_jaxprs(equation)
        for each in jaxprs.equations_in(jaxpr)
    )


def _evaluate_call(equation: Any, inputs: list[Any], now: dict[Any, Any]) -> list[Any]:
    """Evaluate a call inside of which numbers change: the equations of its body, in its place."""
    body = jaxprs.body_of(equation)
    if equation.params.get("differentiated") and inputs:
        inputs = list(jax.lax.optimization_barrier(tuple(inputs)))
    held = dict(zip(body.jaxpr.constvars, body.consts, strict=True))
    held.update(zip(body.jaxpr.invars, inputs, strict=True))

    def read(name: Any) -> Any:
        return name.val if jaxprs.is_literal(name) else held[name]

    for each in jaxprs.equations_in(body.jaxpr):
        made = _evaluate(each, list(map(read, each.invars)), now)
        held.update(zip(each.outvars, made, strict=True))
    return list(map(read, body.jaxpr.outvars))


def _sliced(equation: Any, operand: Any, begin: Any) -> Any:
    if any(step != 1 for step in equation.params["strides"] or ()):
        raise NotAScanError("it slices with strides, elsewhere in each turn")
    sizes = equation.outvars[0].aval.shape
    return jax.lax.dynamic_slice(operand, [begin[i] for i in range(len(sizes))], sizes)


def _padded(equation: Any, inputs: list[Any], config: Any) -> Any:
    """A pad whose widths change: the operand, written into an array of the padding."""
    if any(
        interior or low < 0 or high < 0 for low, high, interior in equation.params["padding_config"]
    ):
        raise NotAScanError("it pads in another way in each turn")
    operand, padding = inputs
    begin = [config[i, 0] for i in range(config.shape[0])]
    whole = jax.lax.full(equation.outvars[0].aval.shape, padding, operand.dtype)
    return jax.lax.dynamic_update_slice(whole, operand, begin)
