"""Makes a program in which some loops are `jax.lax.scan`.

What a copy of a loop's body takes from the one before is carried; what each copy has of its own is
stacked; the rest is a constant. What the program uses of the loop is a result of the scan, stacked
or carried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import jax

from jitcount._jax import jaxprs
from jitcount._loops.iteration import NotAScanError, has_plain_dtype, read_iteration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._loops.find import FoundLoop
    from jitcount._loops.iteration import Iteration

__all__ = ["Held", "NotAScanError", "ProgramVariant", "to_scan", "with_stacks"]


Held = list[tuple[int, ...]]
"""For each argument or result, which of the original program's it holds: one, or some stacked."""


@dataclass(frozen=True, slots=True)
class ProgramVariant:
    """A program that computes what another one does, as a function."""

    function: Callable[..., Any]
    given: list[jax.ShapeDtypeStruct]
    """The shapes of its arguments."""

    arguments: Held | None = None
    """Which of the program's own arguments each one holds; None where they are the same."""

    results: Held | None = None
    """Which of the program's own results each one holds; None where they are the same."""


def to_scan(closed_jaxpr: Any, loops: Sequence[FoundLoop]) -> ProgramVariant:
    """A program with these loops as scans; without any, it is as it was.

    Raises:
        NotAScanError: one of the loops cannot be made into a scan; the text says why.
    """
    interpreter = _Interpreter(loops)

    def program(*inputs: Any) -> Any:
        made = interpreter.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inputs)
        return list(map(_plain, made))

    return ProgramVariant(program, _shapes_of(closed_jaxpr))


def _shapes_of(closed_jaxpr: Any) -> list[jax.ShapeDtypeStruct]:
    """The shapes of a program's arguments."""
    return [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed_jaxpr.in_avals]


# --- Evaluating a program with its loops as scans -------------------------------------------------


@dataclass(slots=True)
class _Values:
    """The values of a jaxpr, by their names in it."""

    held: dict[Any, Any] = field(default_factory=dict)

    def __getitem__(self, name: Any) -> Any:
        return _plain(self.raw(name))

    def raw(self, name: Any) -> Any:
        """A value, which may be an `_ArraySlice` or an `_Argument`."""
        return name.val if jaxprs.is_literal(name) else self.held[name]


class _Interpreter:
    """Evaluates jaxprs, with some of their loops as scans."""

    def __init__(self, loops: Sequence[FoundLoop]) -> None:
        self.groups: Held = []
        """Arguments of the program that a scan takes as one array."""

        self._iterations: dict[int, list[Iteration]] = {}
        for loop in sorted(loops, key=lambda loop: loop.repeat.start):
            iterations = self._iterations.setdefault(id(loop.level.sketch.jaxpr), [])
            iterations.append(read_iteration(loop.level, loop.repeat))
        self._has_loops: dict[int, bool] = {}

    def run(self, jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """Evaluate a jaxpr; results may be slices of arrays or arguments, as inputs may."""
        values = _Values()
        values.held.update(zip(jaxpr.constvars, constants, strict=True))
        values.held.update(zip(jaxpr.invars, inputs, strict=True))
        iterations = {each.repeat.start: each for each in self._iterations.get(id(jaxpr), ())}
        equations = jaxprs.equations_in(jaxpr)
        at = 0
        while at < len(equations):
            if at in iterations:
                self._scan(iterations[at], values)
                at = iterations[at].repeat.end
                continue
            inputs = [values.raw(each) for each in equations[at].invars]
            made = self._evaluate(equations[at], inputs)
            values.held.update(zip(equations[at].outvars, made, strict=True))
            at += 1
        return [values.raw(each) for each in jaxpr.outvars]

    def _evaluate(self, equation: Any, inputs: list[Any]) -> list[Any]:
        if any(map(self._is_changed, jaxprs.inner_jaxprs(equation))):
            if equation.primitive.name in jaxprs.CALLS:
                return self._inline(equation, inputs)
            equation = jaxprs.with_bodies(equation, self._with_scans)
        return jaxprs.eval_equation(equation, list(map(_plain, inputs)))

    def _inline(self, equation: Any, inputs: list[Any]) -> list[Any]:
        """Evaluate a call's body in its place; what is recomputed is not merged with the first."""
        body = jaxprs.body_of(equation)
        if equation.params.get("differentiated") and inputs:
            inputs = list(jax.lax.optimization_barrier(tuple(map(_plain, inputs))))
        return self.run(body.jaxpr, body.consts, inputs)

    def _with_scans(self, closed_jaxpr: Any) -> Any:
        """A body with its loops as scans."""
        if not self._is_changed(closed_jaxpr.jaxpr):
            return closed_jaxpr
        given = [
            jax.ShapeDtypeStruct(
                aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False)
            )
            for aval in closed_jaxpr.in_avals
        ]

        def body(*inputs: Any) -> Any:
            return list(map(_plain, self.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inputs)))

        return jax.make_jaxpr(body)(*given)

    def _is_changed(self, jaxpr: Any) -> bool:
        """Whether a loop in a jaxpr, or in one inside of it, is made into a scan."""
        if id(jaxpr) not in self._has_loops:
            inside = (x for each in jaxprs.equations_in(jaxpr) for x in jaxprs.inner_jaxprs(each))
            is_so = id(jaxpr) in self._iterations or any(map(self._is_changed, inside))
            self._has_loops[id(jaxpr)] = is_so
        return self._has_loops[id(jaxpr)]

    def _scan(self, iteration: Iteration, values: _Values) -> None:
        """Evaluate a loop as a scan."""
        begin = [
            [
                jax.numpy.asarray(values[name], slot.name.aval.dtype)
                if has_plain_dtype(slot.name)
                else values[name]
                for name in slot.begin
            ]
            for slot in iteration.slots
        ]
        kept = [jax.numpy.zeros(each.aval.shape, each.aval.dtype) for each in iteration.kept]
        rows = [[values.raw(name) for name in names] for names in iteration.stacked]
        # A backward pass takes what the forward pass has stacked from its end on.
        is_reversed = sum(map(_step_of, rows)) < 0
        order = -1 if is_reversed else 1
        stacks = [self._stack(each[::order]) for each in rows]
        numbers = [jax.numpy.asarray(each[::order]) for each in iteration.numbers.values()]
        for kind, name in iteration.reads.values():
            if kind == "constant":
                _ = values[name]  # a slice that is taken inside of the scan is known only there

        def body(carry: Any, given: Any) -> Any:
            slots, _ = carry
            made = iteration.run(values, slots, *given)
            slots = [
                [*rest, made[slot.name]]
                for slot, (_, *rest) in zip(iteration.slots, slots, strict=True)
            ]
            return (slots, [made[name] for name in iteration.kept]), [
                made[name] for name in iteration.outputs
            ]

        copies = iteration.repeat.copies
        (slots, kept), outputs = jax.lax.scan(
            body, (begin, kept), (stacks, numbers), copies, is_reversed
        )
        slices = [_slices(stack, copies)[::order] for stack in outputs]
        iteration.put(values.held, slots, kept, slices)

    def _stack(self, rows: list[Any]) -> Any:
        if all(isinstance(row, _Argument) for row in rows):
            self.groups.append(tuple(row.number for row in rows))
        return _stacked(rows)


# --- Values that are slices of one array, or arguments of the program -----------------------------
#
# A scan takes and returns one array for all of its iterations. If another loop takes what the first
# one made, that goes over as it is; a slice is taken only where something else needs it.


@dataclass(slots=True)
class _ArraySlice:
    """A value that is one row of an array, and taken out of it only if it is needed alone."""

    stack: Any
    index: int
    _value: Any = None

    def value(self) -> Any:
        """The row, as an array of its own."""
        if self._value is None:
            self._value = jax.lax.index_in_dim(self.stack, self.index, keepdims=False)
        return self._value


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of the program, by its number."""

    number: int
    given: Any

    def value(self) -> Any:
        """The array that was passed."""
        return self.given


def _plain(value: Any) -> Any:
    """A value as an array, whatever it is held as."""
    return value.value() if isinstance(value, _ArraySlice | _Argument) else value


def _slices(stack: Any, count: int) -> list[_ArraySlice]:
    return [_ArraySlice(stack, index) for index in range(count)]


def _stacked(rows: list[Any]) -> Any:
    """Rows as one array: a part of the one that they are slices of, if it is the same for all."""
    if step := _step_of(rows):
        low = min(rows[0].index, rows[-1].index)
        part = _rows_of(rows[0].stack, low, len(rows))
        return part if step == 1 else jax.numpy.flip(part, 0)
    return jax.numpy.stack(list(map(_plain, rows)))


def _step_of(rows: list[Any]) -> int:
    """1 for slices that follow each other in one array, -1 for the other way round, else 0."""
    if not all(isinstance(row, _ArraySlice) and row.stack is rows[0].stack for row in rows):
        return 0
    steps = {after.index - before.index for before, after in pairwise(rows)}
    return steps.pop() if steps in ({1}, {-1}) else 0


def _rows_of(stack: Any, low: int, count: int) -> Any:
    """Some consecutive rows of an array; the array itself, if these are all."""
    if (low, count) == (0, stack.shape[0]):
        return stack
    return jax.lax.slice_in_dim(stack, low, low + count)


# --- A program whose scans take arguments that are stacked from the start -------------------------
#
# A scan takes what each iteration has of its own as one array. If these are arguments of the
# program (the weights of layers), they can be stacked once, before it is called; so can its results
# (their gradients).


def with_stacks(closed_jaxpr: Any, loops: Sequence[FoundLoop]) -> ProgramVariant | None:
    """A program with these loops as scans and their arguments stacked; None where they have none.

    Raises:
        NotAScanError: one of the loops cannot be made into a scan; the text says why.
    """
    shapes = _shapes_of(closed_jaxpr)
    groups = _groups(closed_jaxpr, loops, shapes)
    if not groups:
        return None
    grouped = {number: group for group in groups for number in group}
    arguments = list(dict.fromkeys(grouped.get(n, (n,)) for n in range(len(shapes))))
    given = [_stack_of(shapes[group[0]], len(group)) for group in arguments]
    interpreter = _Interpreter(loops)
    results: Held = []

    def program(*inputs: Any) -> Any:
        values: dict[int, Any] = {}
        for group, each in zip(arguments, inputs, strict=True):
            rows = [each] if len(group) == 1 else _slices(each, len(group))
            values.update(zip(group, rows, strict=True))
        inside = [values[number] for number in range(len(shapes))]
        made = interpreter.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inside)
        results[:], gathered = _gathered(made)
        return gathered

    jax.eval_shape(program, *given)  # fills `results`
    return ProgramVariant(program, given, arguments, list(results))


def _groups(closed_jaxpr: Any, loops: Sequence[FoundLoop], shapes: Sequence[Any]) -> Held:
    """The arguments that scans stack: the longest groups first, each argument in one at most."""
    interpreter = _Interpreter(loops)

    def program(*inputs: Any) -> Any:
        inside = [_Argument(number, each) for number, each in enumerate(inputs)]
        made = interpreter.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inside)
        return list(map(_plain, made))

    jax.eval_shape(program, *shapes)
    found: Held = []
    taken: set[int] = set()
    for group in sorted(interpreter.groups, key=len, reverse=True):
        if len(set(group)) == len(group) and taken.isdisjoint(group):
            taken.update(group)
            found.append(group)
    return found


def _stack_of(shape: jax.ShapeDtypeStruct, count: int) -> jax.ShapeDtypeStruct:
    return shape if count == 1 else jax.ShapeDtypeStruct((count, *shape.shape), shape.dtype)


def _gathered(made: list[Any]) -> tuple[Held, list[Any]]:
    """Results, with those that are consecutive slices of one array as that array."""
    slices: dict[int, list[int]] = {}
    for number, each in enumerate(made):
        if isinstance(each, _ArraySlice):
            slices.setdefault(id(each.stack), []).append(number)
    results: Held = []
    gathered = []
    done: set[int] = set()
    for number, each in enumerate(made):
        if number in done:
            continue
        group = sorted(
            slices.get(id(getattr(each, "stack", None)), ()), key=lambda at: made[at].index
        )
        indices = [made[at].index for at in group]
        if isinstance(each, _ArraySlice) and _is_a_range(indices):
            gathered.append(_rows_of(each.stack, indices[0], len(group)))
            results.append(tuple(group))
            done.update(group)
        else:
            gathered.append(_plain(each))
            results.append((number,))
    return results, gathered


def _is_a_range(numbers: list[int]) -> bool:
    return len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
