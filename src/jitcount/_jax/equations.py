"""The equations of a jaxpr, each with the stack that it was traced under and its name stack.

A traced function is kept by JAX, and stands in the program wherever it is called: its equations
have the stack of the first call. What is outside of the function then comes from the call itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
from jax._src import source_info_util

from jitcount._jax.jaxprs import source_of
from jitcount._jax.levels import Stacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType

    from jitcount._jax import levels

Frame = tuple[str, int, str]
Stack = tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """One equation."""

    primitive: str
    stack: Stack
    """File, line and function, the innermost first; JAX's own frames are in it."""

    name_stack: str
    """``"vmap(transpose(jvp()))"``; of what is inside of a call, after that of the call."""


def equations(jaxpr: Any) -> Iterator[Equation]:
    """The equations that compute something, those in the jaxprs inside of it too."""
    return _equations(jaxpr, (), "", _Read())


def _equations(jaxpr: Any, outside: Stack, names: str, read: _Read) -> Iterator[Equation]:
    """Of a function inside of another, `outside` is the stack of its call, `names` its name stack.

    JAX writes both into the program only when it lowers it.
    """
    source = source_of(jaxpr) if outside else None
    function = (source.file, source.name.partition(" ")[0]) if source is not None else None
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        stack = _within(read.stack(equation), function, outside)
        name_stack = f"{names}/{own}" if (own := _name_stack(equation)) and names else own or names
        inner = list(_jaxprs_in(equation))
        if not inner or equation.primitive.name not in _CALLS:
            yield Equation(equation.primitive.name, stack, name_stack)
        for part in inner:
            yield from _equations(part, stack, name_stack, read)


# What holds other equations, and is no operation by itself.
_CALLS = frozenset(
    {"pjit", "jit", "closed_call", "core_call", "remat", "checkpoint", "remat2", "custom_jvp_call",
     "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"}
)  # fmt: skip


def _jaxprs_in(equation: Any) -> Iterator[Any]:
    if "pallas" in equation.primitive.name:  # its kernel is no part of the program
        return
    for value in equation.params.values():
        for part in value if isinstance(value, list | tuple) else (value,):
            if hasattr(getattr(part, "jaxpr", part), "eqns"):
                yield part


# Up to 0.9 the stack of an equation inside of a call has what was around the call, too.
_IS_WHOLE = jax.__version_info__ < (0, 10)


def _within(stack: Stack, function: tuple[str, str] | None, outside: Stack) -> Stack:
    """A stack up to the frame of the function, and from there on that of its call.

    A function that a library has wrapped has a frame of another name.
    """
    for number, (file, _, name) in enumerate(stack if function is not None else ()):
        if (file, name.rpartition(".")[2]) == function:
            return (*stack[: number + 1], *outside)
    return stack if stack and _IS_WHOLE else (*stack, *outside)


class _Read:
    """Reads the stacks of a program, each once."""

    def __init__(self) -> None:
        self._stacks = Stacks()
        self._written: dict[int, tuple[levels.Stack, Stack]] = {}

    def stack(self, equation: Any) -> Stack:
        """As JAX has kept it; empty where a release has it otherwise."""
        found = self._stacks.of(equation)
        if id(found) not in self._written:
            self._written[id(found)] = found, tuple(_frame(*each) for each in found)
        return self._written[id(found)][1]


@lru_cache(maxsize=1 << 14)
def _frame(code: CodeType, offset: int) -> Frame:
    lines = (line for start, end, line in code.co_lines() if start <= offset < end)
    return code.co_filename, next(lines, None) or code.co_firstlineno, code.co_qualname


def as_written(stacks: Iterable[Stack]) -> list[Stack]:
    """Stacks as JAX writes them into a program, each once.

    It leaves out its own frames, and those of files that a library has told it to: Flax does so.
    """
    different = dict.fromkeys(stacks)
    files = {file for stack in different for file, _, _ in stack}
    is_written = {file: source_info_util.is_user_filename(file) for file in files}
    found = (tuple(frame for frame in stack if is_written[frame[0]]) for stack in different)
    return list(dict.fromkeys(found))


def _name_stack(equation: Any) -> str:
    return str(getattr(equation.source_info, "name_stack", ""))


def constants(jaxpr: Any) -> list[Any]:
    """The arrays that a program has inside of it: what it closed over."""
    found = list(getattr(jaxpr, "consts", ()))
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        for part in _jaxprs_in(equation):
            found += constants(part)
    return found
