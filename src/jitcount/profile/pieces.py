"""Values that are rows of one array, or arguments of the program, and stay so until they are used.

A scan gives one array for all of its turns, and takes one. What another loop takes of the first
goes over as it is; a row is taken out only where something else needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax


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
