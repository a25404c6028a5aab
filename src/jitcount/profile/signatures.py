"""What an equation does, as a value that is equal for the copies of one in a loop.

Small numbers that change from copy to copy do not count: one that was written into the equation,
or where a slice begins. What does: the primitive, its other parameters, dtypes and shapes, and for
what has a body, all of that for the body.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from jitcount._jax.levels import CALLS, equations_in, inner_jaxprs, is_literal, open_jaxpr

# By primitive, parameters that a loop would compute from its index; the shapes say the rest.
INDICES = {
    "slice": frozenset({"start_indices", "limit_indices"}),
    "pad": frozenset({"padding_config"}),
}

_PLAIN = (int, float, complex, str, bytes, np.dtype, type(None), type)


class Signatures:
    """The signatures of a program; the bodies that were seen are kept."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._bodies: dict[int, tuple[Any, int, list[int]]] = {}
        """With the jaxpr itself: while it is kept, its id is no other's."""

    def of(self, equation: Any) -> int:
        """A number that is the same for equations that do the same."""
        name = equation.primitive.name
        left_out = INDICES.get(name, frozenset())
        parameters: object = tuple(
            (key, self._value(value))
            for key, value in sorted(equation.params.items())
            if key not in left_out
        )
        if name in CALLS:  # their rules for derivatives are new functions each time
            parameters = tuple(map(self.of_jaxpr, inner_jaxprs(equation)))
        return self._number((name, parameters, shapes_of(equation)))

    def of_jaxpr(self, jaxpr: Any) -> int:
        """The same for a body: what it does, and from what it computes what."""
        return self._body(jaxpr)[1]

    def of_equations(self, jaxpr: Any) -> list[int]:
        """The numbers of a body's equations."""
        return self._body(jaxpr)[2]

    def _body(self, jaxpr: Any) -> tuple[Any, int, list[int]]:
        if id(jaxpr) not in self._bodies:
            numbers = list(map(self.of, equations_in(jaxpr)))
            number = self._number(_written(jaxpr, numbers))
            self._bodies[id(jaxpr)] = jaxpr, number, numbers
        return self._bodies[id(jaxpr)]

    def _value(self, value: Any) -> object:
        """A parameter, as something that can be hashed; of functions and the like their kind."""
        if isinstance(value, _PLAIN):
            return type(value).__name__, value
        if isinstance(value, list | tuple):
            return type(value).__name__, tuple(map(self._value, value))
        if isinstance(value, dict):
            return "dict", tuple((str(key), self._value(each)) for key, each in value.items())
        if (jaxpr := open_jaxpr(value)) is not None:
            return self.of_jaxpr(jaxpr)
        return value if _is_a_value(value) else type(value).__qualname__

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _written(jaxpr: Any, numbers: list[int]) -> object:
    """A body, with the numbers of its equations."""
    names: dict[Any, int] = {}

    def name(value: Any) -> int:
        return -1 if is_literal(value) else names.setdefault(value, len(names))

    heads = tuple((name(each), _shape(each)) for each in (*jaxpr.constvars, *jaxpr.invars))
    equations = tuple(
        (number, tuple(map(name, each.invars)), tuple(map(name, each.outvars)))
        for number, each in zip(numbers, equations_in(jaxpr), strict=True)
    )
    return "jaxpr", heads, equations, tuple(map(name, jaxpr.outvars))


def _is_a_value(value: Any) -> bool:
    """Whether it is equal to others, and not only to itself."""
    equal: Any = type(value).__eq__
    if isinstance(value, types.FunctionType) or equal is object.__eq__:
        return False
    try:
        hash(value)
    except Exception:  # noqa: BLE001 (what it holds may be anything)
        return False
    return True


def shapes_of(equation: Any) -> tuple[object, ...]:
    """Dtype and shape of what an equation takes and makes."""
    return tuple(_shape(each) for each in (*equation.invars, *equation.outvars))


def _shape(value: Any) -> object:
    aval = value.aval
    return getattr(aval, "dtype", type(aval)), getattr(aval, "shape", ())
