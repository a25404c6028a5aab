"""A program with some of its loops rolled up again: into `jax.lax.scan`.

What a copy takes from the one before is carried; what each has of its own is stacked; the rest is a
constant. What is used outside of the loop comes out of it, stacked or carried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from jitcount._jax import jaxprs
from jitcount._loops.iteration import (
    Argument,
    NotRolledError,
    Piece,
    Turn,
    new_turn,
    plain,
    rows_of,
    stacked,
    step_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._loops.find import Found

__all__ = ["NotRolledError", "as_function", "rolled"]


@dataclass(slots=True)
class _Values:
    """The values of a level, by their names in the jaxpr."""

    held: dict[Any, Any] = field(default_factory=dict)

    def __getitem__(self, name: Any) -> Any:
        return plain(self.raw(name))

    def raw(self, name: Any) -> Any:
        """The value, or the row or argument that it is."""
        return name.val if jaxprs.is_literal(name) else self.held[name]


def as_function(closed_jaxpr: Any) -> Callable[..., Any]:
    """A program as it is."""
    return rolled(closed_jaxpr, ())


def rolled(closed_jaxpr: Any, loops: Sequence[Found]) -> Callable[..., Any]:
    """A program, as a function, with these loops as scans.

    Raises:
        NotRolledError: one of them cannot be; the text says why.
    """
    by_level = Rolled(loops)

    def program(*inputs: Any) -> Any:
        made = by_level.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inputs)
        return list(map(plain, made))

    return program


class Rolled:
    """Runs jaxprs, with their loops as scans."""

    def __init__(self, loops: Sequence[Found]) -> None:
        self.groups: list[tuple[int, ...]] = []
        """Arguments of the program that a scan takes as one array."""

        self._turns: dict[int, list[Turn]] = {}
        for loop in sorted(loops, key=lambda loop: loop.repeat.start):
            turns = self._turns.setdefault(id(loop.level.sketch.jaxpr), [])
            turns.append(new_turn(loop.level, loop.repeat))
        self._has_loops: dict[int, bool] = {}

    def run(self, jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """All equations of a level, one after the other; rows and arguments stay what they are."""
        values = _Values()
        values.held.update(zip(jaxpr.constvars, constants, strict=True))
        values.held.update(zip(jaxpr.invars, inputs, strict=True))
        turns = {turn.repeat.start: turn for turn in self._turns.get(id(jaxpr), ())}
        equations = jaxprs.equations_in(jaxpr)
        at = 0
        while at < len(equations):
            if at in turns:
                self._scan(turns[at], values)
                at = turns[at].repeat.end
                continue
            made = self._made(equations[at], [values.raw(each) for each in equations[at].invars])
            values.held.update(zip(equations[at].outvars, made, strict=True))
            at += 1
        return [values.raw(each) for each in jaxpr.outvars]

    def _made(self, equation: Any, inputs: list[Any]) -> list[Any]:
        inside = list(jaxprs.inner_jaxprs(equation))
        if not any(map(self._is_changed, inside)):
            return jaxprs.evaluate(equation, list(map(plain, inputs)))
        if equation.primitive.name in jaxprs.CALLS:
            return self._inline(equation, inputs)
        again = jaxprs.with_bodies(equation, self._again)
        return jaxprs.evaluate(again, list(map(plain, inputs)))

    def _inline(self, equation: Any, inputs: list[Any]) -> list[Any]:
        """What a call does, in its place; what is computed again is not merged with the first."""
        body = jaxprs.body_of(equation)
        if equation.params.get("differentiated") and inputs:
            inputs = list(jax.lax.optimization_barrier(tuple(map(plain, inputs))))
        return self.run(body.jaxpr, body.consts, inputs)

    def _again(self, closed_jaxpr: Any) -> Any:
        """A body with its loops rolled up."""
        if not self._is_changed(closed_jaxpr.jaxpr):
            return closed_jaxpr
        given = [
            jax.ShapeDtypeStruct(
                aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False)
            )
            for aval in closed_jaxpr.in_avals
        ]

        def body(*inputs: Any) -> Any:
            return list(map(plain, self.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inputs)))

        return jax.make_jaxpr(body)(*given)

    def _is_changed(self, jaxpr: Any) -> bool:
        """Whether there is a loop in it that is rolled up."""
        if id(jaxpr) not in self._has_loops:
            inside = (x for each in jaxprs.equations_in(jaxpr) for x in jaxprs.inner_jaxprs(each))
            is_so = id(jaxpr) in self._turns or any(map(self._is_changed, inside))
            self._has_loops[id(jaxpr)] = is_so
        return self._has_loops[id(jaxpr)]

    def _scan(self, turn: Turn, values: _Values) -> None:
        """One loop, as a scan."""
        carried = [[values[name] for name in slot.begin] for slot in turn.slots]
        begin = [
            [jax.numpy.asarray(one, like.aval.dtype) if _is_plain(like) else one for one in each]
            for each, like in zip(carried, (slot.name for slot in turn.slots), strict=True)
        ]
        kept = [_zeros(name) for name in turn.kept]
        rows = [[values.raw(name) for name in names] for names in turn.stacked]
        # A backward pass takes what the forward pass has stacked from its end on.
        is_reversed = sum(map(step_of, rows)) < 0
        stacks = [self._stack(each[::-1] if is_reversed else each) for each in rows]
        numbers = [
            jax.numpy.asarray(each[::-1] if is_reversed else each) for each in turn.numbers.values()
        ]
        for kind, name in turn.reads.values():
            if kind == "constant":
                _ = values[name]  # a row that is taken out inside of the scan is known only there

        def body(carry: Any, given: Any) -> Any:
            slots, _ = carry
            made = turn.run(values, slots, *given)
            slots = [
                [*rest, made[slot.name]] for slot, (_, *rest) in zip(turn.slots, slots, strict=True)
            ]
            return (slots, [made[name] for name in turn.kept]), [
                made[name] for name in turn.outputs
            ]

        (slots, kept), outputs = jax.lax.scan(
            body, (begin, kept), (stacks, numbers), turn.repeat.copies, is_reversed
        )
        pieces = [_rows(stack, turn.repeat.copies, is_reversed=is_reversed) for stack in outputs]
        turn.put(values.held, slots, kept, pieces)

    def _stack(self, rows: list[Any]) -> Any:
        if all(isinstance(row, Argument) for row in rows):
            self.groups.append(tuple(row.number for row in rows))
        return stacked(rows)


def _rows(stack: Any, copies: int, *, is_reversed: bool) -> list[Piece]:
    """What each turn has left in an array."""
    rows = [Piece(stack, row) for row in range(copies)]
    return rows[::-1] if is_reversed else rows


def _is_plain(name: Any) -> bool:
    return not jax.numpy.issubdtype(name.aval.dtype, jax.dtypes.extended)


def _zeros(name: Any) -> Any:
    return jax.numpy.zeros(name.aval.shape, name.aval.dtype)


# --- A program with loops as scans, and with what these stack stacked from the start --------------
#
# A scan takes what each turn has of its own as one array. Where that are arguments of the program
# (the weights of layers), they can be stacked once, before it is called; so can its results (their
# gradients). This is that program: with other arguments and results, which say what they hold.


Held = list[tuple[int, ...]]
"""Of each argument (or result), which ones of the program before it holds: one, or some stacked."""


@dataclass(frozen=True, slots=True)
class Stacked:
    """A program with other arguments and results."""

    function: Callable[..., Any]
    given: list[jax.ShapeDtypeStruct]
    arguments: Held
    results: Held


def with_stacks(closed_jaxpr: Any, loops: Sequence[Found]) -> Stacked | None:
    """A program with these loops as scans, and their arguments stacked; None where they have none.

    Raises:
        NotRolledError: one of them cannot be; the text says why.
    """
    shapes = shapes_of(closed_jaxpr)
    groups = _groups(closed_jaxpr, loops, shapes)
    if not groups:
        return None
    grouped = {number: group for group in groups for number in group}
    held = [grouped.get(number, (number,)) for number in range(len(shapes))]
    arguments = list(dict.fromkeys(held))
    given = [_stack_of(shapes[group[0]], len(group)) for group in arguments]
    by_level = Rolled(loops)
    results: Held = []

    def program(*inputs: Any) -> Any:
        values: dict[int, Any] = {}
        for group, each in zip(arguments, inputs, strict=True):
            rows = [each] if len(group) == 1 else [Piece(each, row) for row in range(len(group))]
            values.update(zip(group, rows, strict=True))
        inside = [values[number] for number in range(len(shapes))]
        made = by_level.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inside)
        results[:], gathered = _gathered(made)
        return gathered

    jax.eval_shape(program, *given)  # says what the results hold
    return Stacked(program, given, arguments, list(results))


def shapes_of(closed_jaxpr: Any) -> list[jax.ShapeDtypeStruct]:
    """The arguments of a program."""
    return [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed_jaxpr.in_avals]


def _groups(closed_jaxpr: Any, loops: Sequence[Found], shapes: Sequence[Any]) -> Held:
    """The arguments that are stacked somewhere: the longest groups first, each argument in one."""
    by_level = Rolled(loops)

    def program(*inputs: Any) -> Any:
        inside = [Argument(number, each) for number, each in enumerate(inputs)]
        made = by_level.run(closed_jaxpr.jaxpr, closed_jaxpr.consts, inside)
        return list(map(plain, made))

    jax.eval_shape(program, *shapes)
    found: Held = []
    taken: set[int] = set()
    for group in sorted(by_level.groups, key=len, reverse=True):
        if len(set(group)) == len(group) and taken.isdisjoint(group):
            taken.update(group)
            found.append(group)
    return found


def _stack_of(shape: jax.ShapeDtypeStruct, count: int) -> jax.ShapeDtypeStruct:
    return shape if count == 1 else jax.ShapeDtypeStruct((count, *shape.shape), shape.dtype)


def _gathered(made: list[Any]) -> tuple[Held, list[Any]]:
    """Results, those that are the rows of one array as that array."""
    rows: dict[int, list[int]] = {}
    for number, each in enumerate(made):
        if isinstance(each, Piece):
            rows.setdefault(id(each.stack), []).append(number)
    results: Held = []
    gathered = []
    done: set[int] = set()
    for number, each in enumerate(made):
        if number in done:
            continue
        group = sorted(
            rows.get(id(getattr(each, "stack", None)), ()), key=lambda at: made[at].index
        )
        indices = [made[at].index for at in group]
        if isinstance(each, Piece) and _is_a_range(indices):
            gathered.append(rows_of(each.stack, indices[0], len(group)))
            results.append(tuple(group))
            done.update(group)
        else:
            gathered.append(plain(each))
            results.append((number,))
    return results, gathered


def _is_a_range(numbers: list[int]) -> bool:
    return len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
