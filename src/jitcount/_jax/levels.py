"""The equations of one level of a program: where they were traced, and which levels are inside.

`jax.extend.core` has the types. A stack, a name stack and which parameters hold a body are JAX's
own. Where a release has a stack otherwise it is empty here, and no loop is found: none is made up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

Stack = tuple[tuple["CodeType", int], ...]
"""Code and offset of each frame, the innermost first."""

# What is a call and no more: its body could as well stand in its place. By their names: `jit` was
# `pjit` up to 0.8, `checkpoint` is also called remat2.
CALLS = frozenset(
    {
        "jit",
        "pjit",
        "closed_call",
        "core_call",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
        "custom_lin",
        "checkpoint",
        "remat2",
        "remat",
    }
)


def equations_in(jaxpr: Any) -> list[Any]:
    """The equations of a level, in their order."""
    return list(jaxpr.eqns)


class Stacks:
    """The stacks of a program's equations, each read once: a loop has few, and many equations.

    It goes by the ids of objects of the program, which must be kept alive for as long as this is.
    """

    def __init__(self) -> None:
        self._by_traceback: dict[int, Stack] = {}
        self._by_frames: dict[tuple[int, ...], Stack] = {}

    def of(self, equation: Any) -> Stack:
        """The stack that it was traced under; of a backward pass, the one of its forward pass."""
        traceback = getattr(equation.source_info, "traceback", None)
        found = self._by_traceback.get(id(traceback))
        if found is None:
            found = self._by_traceback[id(traceback)] = self._read(traceback)
        return found

    def _read(self, traceback: Any) -> Stack:
        try:
            codes, offsets = traceback.raw_frames()
        except (AttributeError, TypeError, ValueError):
            return ()
        key = (*map(id, codes), *offsets)
        if key not in self._by_frames:
            self._by_frames[key] = tuple(zip(codes, offsets, strict=True))
        return self._by_frames[key]


def is_backward(equation: Any) -> bool:
    """Whether it belongs to a backward pass."""
    return "transpose(" in str(getattr(equation.source_info, "name_stack", ""))


def open_jaxpr(value: Any) -> Any:
    """The jaxpr in a parameter, without its constants; None for what is none."""
    if isinstance(value, Jaxpr):  # since 0.12 it may have constants
        return value
    return value.jaxpr if isinstance(value, ClosedJaxpr) else None


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """The jaxprs in its parameters: a call's body, the branches of a condition."""
    if "pallas" in equation.primitive.name:  # its kernel is no part of the program
        return
    for value in equation.params.values():
        for part in value if isinstance(value, list | tuple) else (value,):
            if (found := open_jaxpr(part)) is not None:
                yield found


def is_literal(value: Any) -> bool:
    """Whether an input is a number that was written into the equation."""
    return isinstance(value, Literal)


def count(jaxpr: Any, counted: dict[int, int] | None = None) -> int:
    """How many equations there are, with those in bodies; a call itself is none."""
    counted = {} if counted is None else counted
    if id(jaxpr) not in counted:
        counted[id(jaxpr)] = sum(weight(equation, counted) for equation in jaxpr.eqns)
    return counted[id(jaxpr)]


def weight(equation: Any, counted: dict[int, int]) -> int:
    """How many equations one stands for."""
    inside = sum(count(jaxpr, counted) for jaxpr in inner_jaxprs(equation))
    return inside + (equation.primitive.name not in CALLS)


def evaluate(equation: Any, inputs: list[Any]) -> list[Any]:
    """Do what an equation does, as JAX's own interpreter of jaxprs does it."""
    found = equation.primitive.get_bind_params(equation.params)
    # Up to 0.9, with the functions that it is about apart.
    functions, parameters = found if isinstance(found, tuple) else ((), found)
    with equation.ctx.manager:
        made = equation.primitive.bind(*functions, *inputs, **parameters)
    return list(made) if equation.primitive.multiple_results else [made]


def with_bodies(equation: Any, replaced: Callable[[Any], Any]) -> Any:
    """An equation with other bodies; what has constants inside of it keeps them."""

    def part(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(part, value))
        return replaced(value) if isinstance(value, ClosedJaxpr) else value

    parameters = {name: part(value) for name, value in equation.params.items()}
    return equation.replace(params=parameters)


def body_of(equation: Any) -> ClosedJaxpr:
    """The body of a call."""
    for value in equation.params.values():
        if isinstance(value, ClosedJaxpr):
            return value
        if isinstance(value, Jaxpr):
            return ClosedJaxpr(value, ())
    raise TypeError(f"{equation.primitive.name} has no body")


def has_effects(equation: Any) -> bool:
    """Whether it does more than compute: it prints, or calls Python."""
    return bool(equation.effects) or "callback" in equation.primitive.name
