"""Computes a jaxpr operation by operation, without compiling it as a whole.

`jax.disable_jit` does that to Python functions, and `jax.core.eval_jaxpr` hands a jit or a loop
inside to the compiler in one piece. Here calls are opened, and loops and branches are run by
Python. The parameters of `scan`, `while` and `cond` are JAX's own: with a release that has others,
a program with such an operation raises, and is not computed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from jitcount._jax.jaxprs import (
    CALLS,
    Stacks,
    body_of,
    eval_equation,
    has_effects,
    inner_jaxprs,
    is_literal,
    with_stacks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._jax.jaxprs import Stack

    Compute = Callable[[Any, list[Any]], Sequence[Any]]
    """Takes an equation that calls nothing, and its operands; returns its results."""


class TooLongError(Exception):
    """A program takes longer, operation by operation, than it may; the text says what of."""


class Evaluator:
    """Computes programs one operation at a time, up to a number of operations and a time.

    Args:
        most: how many operations and steps of loops it may have.
        until: when to stop, by `time.monotonic`.
        compute: computes one operation.
    """

    def __init__(self, most: int, until: float, compute: Compute = eval_equation) -> None:
        self._most = self._left = most
        self._until = until
        self._compute = compute

    def run(self, program: Any, operands: Sequence[Any]) -> list[Any]:
        """The results of a closed jaxpr.

        Raises:
            TooLongError: it has more operations than it may, or takes longer.
        """
        return self._evaluate(program.jaxpr, program.consts, operands)

    def _evaluate(self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom: Any) -> Any:
            # The value of a literal may be a number of Python's, which has no dtype.
            return np.asarray(atom.val, atom.aval.dtype) if is_literal(atom) else values[atom]

        last_uses = _last_uses(jaxpr)
        for place, equation in enumerate(jaxpr.eqns):
            results = self._apply(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
            for variable in last_uses.get(place, ()):
                values.pop(variable, None)
        return [read(atom) for atom in jaxpr.outvars]

    def _apply(self, equation: Any, operands: list[Any]) -> Sequence[Any]:
        name = equation.primitive.name
        if name == "scan":
            return self._scan(equation.params, operands)
        if name == "while":
            return self._while(equation.params, operands)
        if name == "cond":
            return self._cond(equation.params["branches"], operands)
        if name in CALLS:
            return self.run(body_of(equation), operands)
        self._count()
        return self._compute(equation, operands)

    def _count(self) -> None:
        """Count an operation, or a step of a loop, whose body may have none."""
        self._left -= 1
        if self._left < 0:
            raise TooLongError(f"it has more than {self._most:,} operations")
        if time.monotonic() > self._until:
            raise TooLongError("that takes too long")

    def _scan(self, parameters: Any, operands: list[Any]) -> list[Any]:
        body, length = parameters["jaxpr"], parameters["length"]
        consts, carry, rows = _split(operands, *counts_of_scan(parameters))
        made: list[list[Any]] = []
        steps = range(length)
        for step in reversed(steps) if parameters["reverse"] else steps:
            self._count()
            results = self.run(body, [*consts, *carry, *(row[step] for row in rows)])
            carry, stacked = results[: len(carry)], results[len(carry) :]
            made.append(stacked)
        if parameters["reverse"]:
            made.reverse()
        types = body.out_avals[len(carry) :]
        columns = zip(*made, strict=True) if made else ([] for _ in types)
        return [*carry, *(_stacked(*pair) for pair in zip(columns, types, strict=True))]

    def _while(self, parameters: Any, operands: list[Any]) -> list[Any]:
        of_condition, of_body, carry = _split(
            operands, parameters["cond_nconsts"], parameters["body_nconsts"]
        )
        while True:
            goes_on = np.asarray(self.run(parameters["cond_jaxpr"], [*of_condition, *carry])[0])
            if not goes_on.any():
                return carry
            self._count()
            found = self.run(parameters["body_jaxpr"], [*of_body, *carry])
            # Under vmap there is a condition for each element, along the first axes of what it
            # carries.
            carry = [
                new if goes_on.all() else _chosen(goes_on, new, old)
                for new, old in zip(found, carry, strict=True)
            ]

    def _cond(self, branches: Sequence[Any], operands: list[Any]) -> list[Any]:
        chosen = min(max(int(operands[0]), 0), len(branches) - 1)
        return self.run(branches[chosen], operands[1:])


def _chosen(goes_on: np.ndarray, new: Any, old: Any) -> Any:
    return jnp.where(goes_on.reshape(*goes_on.shape, *[1] * (new.ndim - goes_on.ndim)), new, old)


def counts_of_scan(parameters: Any) -> tuple[int, int]:
    """How many constants and how many carried values the operands of a scan begin with."""
    if "num_consts" in parameters:  # up to 0.11.0
        return parameters["num_consts"], parameters["num_carry"]
    constants, carried, _ = parameters["ft_in"].unpack()
    return len(constants), len(carried)


def _split(operands: list[Any], first: int, second: int) -> tuple[list[Any], list[Any], list[Any]]:
    return operands[:first], operands[first : first + second], operands[first + second :]


def _stacked(rows: Sequence[Any], of_one: Any) -> Any:
    """The results of a scan's steps as one array."""
    return jnp.stack(rows) if rows else jnp.zeros((0, *of_one.shape), of_one.dtype)


def _last_uses(jaxpr: Any) -> dict[int, list[Any]]:
    """By the place of an equation, the variables that no later one needs: they can be dropped."""
    last: dict[Any, int] = {}
    for place, equation in enumerate(jaxpr.eqns):
        for atom in (*equation.invars, *equation.outvars):
            if not is_literal(atom):
                last[atom] = place
    for atom in jaxpr.outvars:
        if not is_literal(atom):
            last.pop(atom, None)
    by_place: dict[int, list[Any]] = {}
    for variable, place in last.items():
        by_place.setdefault(place, []).append(variable)
    return by_place


class Step(NamedTuple):
    """An operation that was computed, or a whole loop or branch."""

    primitive: str
    stack: Stack
    operands: list[Any]
    results: list[Any]


def computed_in_steps(program: Any, operands: Sequence[Any]) -> tuple[list[Any], list[Step]]:
    """The results of a closed jaxpr, and each operation on the way to them.

    A result that is an operand later is the same object there.
    """
    steps: list[Step] = []
    stacks = Stacks()

    def run(body: Any, given: Sequence[Any], outside: Stack) -> list[Any]:
        jaxpr = body.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, body.consts, strict=True))
        values.update(zip(jaxpr.invars, given, strict=True))

        def read(atom: Any) -> Any:
            return np.asarray(atom.val, atom.aval.dtype) if is_literal(atom) else values[atom]

        for equation, stack in with_stacks(jaxpr, outside, stacks):
            inputs = [read(atom) for atom in equation.invars]
            if equation.primitive.name in CALLS:
                results = run(body_of(equation), inputs, stack)
            else:
                results = eval_equation(equation, inputs)
                steps.append(Step(equation.primitive.name, stack, inputs, results))
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    return run(program, operands, ()), steps


def does_more_than_compute(jaxpr: Any) -> bool:
    """Whether a jaxpr prints, calls Python or changes something: all that would happen again."""
    return any(
        has_effects(equation) or any(map(does_more_than_compute, inner_jaxprs(equation)))
        for equation in jaxpr.eqns
    )


def compiled_again(program: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of a closed jaxpr that is compiled as a whole."""
    return list(jax.jit(jaxpr_as_fun(program))(*operands))
