"""Reads a jaxpr into steps once, and runs them on arrays of lanes.

Calls are opened. Loops and branches run in Python: where lanes decide differently, a loop goes on
for those that need it, and both branches are taken. What has no rule of its own is replaced by what
it is made of; what works on whole numbers alone is computed by JAX itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitcount._jax.evaluating import counts_of_scan
from jitcount._jax.jaxprs import (
    CALLS,
    Stacks,
    body_of,
    equations_in,
    eval_equation,
    has_effects,
    is_literal,
    made_of,
    stack_within,
)
from jitcount._jax.keys import is_key, keys_of, numbers_of
from jitcount._tolerance.lanes import format_of
from jitcount._tolerance.rules import RULES
from jitcount._tolerance.rules.moving import stored_dtype
from jitcount._tolerance.rules.rule import NotFollowedError, is_inexact, same_lanes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._jax.jaxprs import Stack
    from jitcount._tolerance.lanes import Lanes

    Compute = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Place:
    """An equation, and the call that it is inside of."""

    equation: Any
    jaxpr: Any
    outside: Place | None

    def stack(self, stacks: Stacks) -> Stack:
        """The stack that it was traced under, out to the call of the whole program."""
        outside = self.outside.stack(stacks) if self.outside is not None else ()
        return stack_within(stacks, self.equation, self.jaxpr, outside)


class _Step(NamedTuple):
    number: int
    compute: Compute
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    unused: tuple[int, ...]
    """What no later step needs."""


@dataclass(slots=True)
class Program:
    """The steps of a jaxpr, and where its arguments and results are."""

    steps: list[_Step] = field(default_factory=list)
    constants: list[tuple[int, np.ndarray]] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    size: int = 0

    def run(self, lanes: Lanes, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Compute the results of all lanes."""
        values: list[Any] = [None] * self.size
        for slot, constant in self.constants:
            values[slot] = constant
        for slot, argument in zip(self.arguments, arguments, strict=True):
            values[slot] = argument
        for number, compute, inputs, outputs, unused in self.steps:
            lanes.step = number
            found = compute(lanes, *[values[slot] for slot in inputs])
            if type(found) is np.ndarray:
                values[outputs[0]] = found
            else:
                for slot, value in zip(outputs, found, strict=True):
                    values[slot] = value
            for slot in unused:
                values[slot] = None
        return [values[slot] for slot in self.results]


class Reader:
    """Reads a jaxpr into a program; `places` has the equation of each step, by its number."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.longest_loop = 0
        """The steps of the longest loop that ran so far."""

        self.unit = 0.0
        """Half an ulp of 1 in the narrowest dtype of floats that it computes with."""

    def read(self, closed: Any, outside: Place | None = None) -> Program:
        """The program of a closed jaxpr.

        Raises:
            NotFollowedError: it has something that no rule follows.
        """
        program = Program()
        builder = _Builder(self, program)
        program.arguments = [builder.new() for _ in closed.jaxpr.invars]
        program.results = builder.add(closed.jaxpr, closed.consts, program.arguments, outside)
        program.size = builder.size
        program.steps = _with_unused(program)
        return program

    # --- Equations --------------------------------------------------------------------------------

    def compute_of(self, place: Place) -> Compute:
        """What computes an equation that is not opened where it stands."""
        equation = place.equation
        name = equation.primitive.name
        for atom in equation.outvars:
            if is_inexact(atom.aval.dtype.name):
                self.unit = max(self.unit, format_of(atom.aval.dtype.name).unit)
        control = _CONTROL.get(name)
        if control is not None:
            return control(self, place)
        make = RULES.get(name)
        keys = any(_is_key(atom) for atom in (*equation.invars, *equation.outvars))
        if make is not None and not keys:
            return make(equation)
        if not any(is_inexact(atom.aval.dtype.name) for atom in equation.outvars):
            return _by_jax(equation)
        if (opened := made_of(equation)) is not None:
            inner = self.read(opened, place)
            return lambda lanes, *operands: inner.run(lanes, operands)
        raise NotFollowedError(f"{name} has no rule")


class _Builder:
    """Adds the equations of a jaxpr, and of the calls inside of it, to a program."""

    def __init__(self, reader: Reader, program: Program) -> None:
        self._reader, self._program = reader, program
        self.size = 0

    def new(self) -> int:
        """Another slot."""
        self.size += 1
        return self.size - 1

    def _constant(self, value: Any, aval: Any) -> int:
        slot = self.new()
        self._program.constants.append((slot, to_lanes(value, aval)))
        return slot

    def add(
        self, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[int], outside: Place | None
    ) -> list[int]:
        """Add a jaxpr's equations; returns the slots of its results."""
        slots: dict[Any, int] = dict(zip(jaxpr.invars, arguments, strict=True))
        for variable, value in zip(jaxpr.constvars, consts, strict=True):
            slots[variable] = self._constant(value, variable.aval)

        def read(atom: Any) -> int:
            return self._constant(atom.val, atom.aval) if is_literal(atom) else slots[atom]

        for equation in equations_in(jaxpr):
            inputs = [read(atom) for atom in equation.invars]
            place = Place(equation, jaxpr, outside)
            outputs = self._add_equation(place, inputs)
            slots.update(zip(equation.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _add_equation(self, place: Place, inputs: list[int]) -> list[int]:
        equation = place.equation
        if equation.primitive.name in CALLS:
            body = body_of(equation)
            return self.add(body.jaxpr, body.consts, inputs, place)
        if equation.primitive.name == "custom_linear_solve":
            solve = equation.params["jaxprs"].solve
            counts = equation.params["const_lengths"]
            first = counts.matvec + counts.vecmat
            count = len(solve.jaxpr.invars) - (len(inputs) - sum(counts))
            given = [*inputs[first : first + count], *inputs[sum(counts) :]]
            return self.add(solve.jaxpr, solve.consts, given, place)
        outputs = [self.new() for _ in equation.outvars]
        number = len(self._reader.places)
        self._reader.places.append(place)
        compute = self._reader.compute_of(place)
        step = _Step(number, compute, tuple(inputs), tuple(outputs), ())
        self._program.steps.append(step)
        return outputs


def _with_unused(program: Program) -> list[_Step]:
    last: dict[int, int] = {}
    for at, step in enumerate(program.steps):
        for slot in (*step.inputs, *step.outputs):
            last[slot] = at
    for slot in program.results:
        last.pop(slot, None)
    unused: dict[int, list[int]] = {}
    for slot, at in last.items():
        unused.setdefault(at, []).append(slot)
    return [
        step._replace(unused=tuple(unused.get(at, ()))) for at, step in enumerate(program.steps)
    ]


# --- Values ---------------------------------------------------------------------------------------


def _is_key(atom: Any) -> bool:
    return is_key(atom.aval.dtype)


def to_lanes(value: Any, aval: Any) -> np.ndarray:
    """A value of a program as an array of one lane; of a random key, its numbers."""
    if is_key(aval.dtype):
        return numbers_of(value)[None]
    # A literal of Python's is a number of its dtype, too.
    return np.asarray(value, aval.dtype).astype(stored_dtype(aval))[None]


def _from_lane(value: np.ndarray, aval: Any) -> Any:
    """The values of one lane as JAX has them."""
    if is_key(aval.dtype):
        return keys_of(value, aval.dtype)
    return np.asarray(value).astype(aval.dtype)


def _by_jax(equation: Any) -> Compute:
    """An operation on whole numbers or random keys: JAX computes it, lane by lane if need be."""
    ins = [atom.aval for atom in equation.invars]
    outs = [atom.aval for atom in equation.outvars]

    def one(*operands: np.ndarray) -> list[np.ndarray]:
        given = [_from_lane(value, aval) for value, aval in zip(operands, ins, strict=True)]
        made = eval_equation(equation, given)
        return [to_lanes(value, aval) for value, aval in zip(made, outs, strict=True)]

    def compute(lanes: Lanes, *operands: np.ndarray) -> list[np.ndarray]:
        if all(operand.shape[0] == 1 for operand in operands):
            return one(*(operand[0] for operand in operands))
        spread = zip(*same_lanes(list(operands)), strict=True)
        columns = zip(*(one(*values) for values in spread), strict=True)
        return [lanes.settled(np.concatenate(column)) for column in columns]

    return compute


def _where_active(active: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The new values where a condition holds; it has the first axes of what it decides over."""
    new, old, active = same_lanes([new, old, active])
    return np.where(active.reshape(*active.shape, *[1] * (new.ndim - active.ndim)), new, old)


# --- Loops and branches ---------------------------------------------------------------------------


def _scan(reader: Reader, place: Place) -> Compute:
    parameters = place.equation.params
    length, reverse = parameters["length"], parameters["reverse"]
    body = reader.read(parameters["jaxpr"], place)
    constants, carried = counts_of_scan(parameters)
    outs = [atom.aval for atom in place.equation.outvars]

    def compute(lanes: Lanes, *operands: np.ndarray) -> list[np.ndarray]:
        given, carry = operands[:constants], list(operands[constants : constants + carried])
        rows = operands[constants + carried :]
        made: list[list[np.ndarray]] = [[] for _ in outs[carried:]]
        reader.longest_loop = max(reader.longest_loop, length)
        for at in reversed(range(length)) if reverse else range(length):
            found = body.run(lanes, [*given, *carry, *(row[:, at] for row in rows)])
            carry = found[:carried]
            for column, value in zip(made, found[carried:], strict=True):
                column.append(value)
        return [*carry, *(_stacked(c, aval, reverse=reverse) for c, aval in
                          zip(made, outs[carried:], strict=True))]  # fmt: skip

    return compute


def _stacked(rows: list[np.ndarray], aval: Any, *, reverse: bool) -> np.ndarray:
    """The results of a scan's steps as one array."""
    if not rows:
        return np.zeros((1, *aval.shape), stored_dtype(aval))
    rows = rows[::-1] if reverse else rows
    return np.stack(same_lanes(rows), 1)


def _while(reader: Reader, place: Place) -> Compute:
    parameters = place.equation.params
    condition = reader.read(parameters["cond_jaxpr"], place)
    body = reader.read(parameters["body_jaxpr"], place)
    of_condition, of_body = parameters["cond_nconsts"], parameters["body_nconsts"]

    def compute(lanes: Lanes, *operands: np.ndarray) -> list[np.ndarray]:
        step = lanes.step
        asked, given = operands[:of_condition], operands[of_condition : of_condition + of_body]
        carry = list(operands[of_condition + of_body :])
        active, trips, alone = np.ones(1, bool), 0, 0
        while True:
            # Under vmap a loop has a condition for each element, and goes on while any holds.
            active = condition.run(lanes, [*asked, *carry])[0].astype(bool)
            if not active.any():
                break
            found = body.run(lanes, [*given, *carry])
            if active.all():
                carry = found
            else:
                if (active != active[:1]).any():
                    lanes.step = step
                    other = (active != active[:1]).reshape(len(active), -1).any(1)
                    lanes.flip("the number of steps of the loop", other)
                carry = [
                    _where_active(active, new, old) for new, old in zip(found, carry, strict=True)
                ]
            trips += 1
            alone = 0 if active[0].any() else alone + 1
            if alone > _MOST_TRIPS_ALONE:
                break
        reader.longest_loop = max(reader.longest_loop, trips)
        return carry

    return compute


# A draw may need more steps than the reference to come to an end, or never come to one.
_MOST_TRIPS_ALONE = 1000


def _cond(reader: Reader, place: Place) -> Compute:
    branches = [reader.read(branch, place) for branch in place.equation.params["branches"]]

    def compute(lanes: Lanes, index: np.ndarray, *operands: np.ndarray) -> list[np.ndarray]:
        step = lanes.step
        chosen = np.clip(index.astype(np.int64), 0, len(branches) - 1)
        if (chosen == chosen[0]).all():
            return branches[int(chosen[0])].run(lanes, operands)
        lanes.flip("the branch", chosen != chosen[0])
        made: list[np.ndarray] | None = None
        for which in np.unique(chosen).tolist():
            found = branches[which].run(lanes, operands)
            lanes.step = step
            here = chosen == which
            made = [
                _where_active(here, new, old) for new, old in zip(found, made or found, strict=True)
            ]
        return made or []

    return compute


def _callback(reader: Reader, place: Place) -> Compute:
    """A call of Python: a pure one is made; one that only reports is not."""
    del reader
    equation = place.equation
    if has_effects(equation) and "pure" not in equation.primitive.name:
        raise NotFollowedError(f"{equation.primitive.name} has side effects")
    return _by_jax(equation)


def _silent(reader: Reader, place: Place) -> Compute:
    del reader, place
    return lambda lanes, *operands: []  # noqa: ARG005


_CONTROL: dict[str, Callable[[Reader, Place], Compute]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "pure_callback": _callback,
    "io_callback": _callback,
    "debug_callback": _silent,
    "debug_print": _silent,
}
