"""A program with loops as scans, and with what these stack stacked from the start.

A scan takes what each turn has of its own as one array. Where that are arguments of the program
(the weights of layers), they can be stacked once, before it is called; so can its results (their
gradients). This is that program: with other arguments and results, which say what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax

from jitcount.profile.pieces import Argument, Piece, plain, rows_of
from jitcount.profile.rolling import Rolled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount.profile.loops import Found

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
