"""Programs as JAX holds them before they are lowered: jaxprs, their equations and their source.

A jaxpr's debug info (which function it was traced from), the stack and name stack of an equation,
and which parameters hold a body are JAX's own. `jax.extend.core` has the types in public, but
imports Pallas with them, which takes longer than all of jitcount, and every recorder needs them.
Where a release has them otherwise, a source is None and a stack is empty: lines are then unknown
and no loop is found, and none is made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import jax
from jax._src import core, source_info_util
from jax._src.core import Jaxpr, Literal

from jitcount._jax.origin import JAX_DIRECTORIES, is_module_of_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType

# Since 0.11 a jaxpr has its constants, and there is one type.
ClosedJaxpr: Any = getattr(core, "ClosedJaxpr", Jaxpr)

_module_of = vars(type)["__module__"].__get__  # a metaclass of the user's may have another

Frame = tuple[str, int, str]
"""The file, line and function of a frame."""

Stack = tuple[Frame, ...]
"""The frames of a stack, the innermost first."""

CodeStack = tuple[tuple["CodeType", int], ...]
"""The code and the offset of each frame of a stack, the innermost first."""

CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "remat2", "custom_jvp_call",
     "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"}
)  # fmt: skip
"""Primitives that only call their body, which could as well stand in their place.

By their names: `jit` was `pjit` up to 0.8, `checkpoint` is also called remat2.
"""


# --- Jaxprs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """The function that a jaxpr was traced from."""

    name: str
    file: str
    line: str

    @property
    def is_jaxs(self) -> bool:
        """Whether the function is JAX's own."""
        return self.file.startswith(JAX_DIRECTORIES)


def source_of(jaxpr: object) -> Source | None:
    """The function that a jaxpr was traced from; None for anything that is no jaxpr.

    JAX writes it as ``step at /home/me/train.py:42``.
    """
    if not is_module_of_jax(str(_module_of(type(jaxpr)))):  # the user's: none of its code is run
        return None
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    text = getattr(info, "func_src_info", None)
    if not text:
        return None
    name, _, place = str(text).partition(" at ")
    file, _, line = place.rpartition(":")
    return Source(name, file, line)


def equations_in(jaxpr: Any) -> list[Any]:
    """The equations of a jaxpr, in their order, without those in their bodies."""
    return list(getattr(jaxpr, "jaxpr", jaxpr).eqns)


def open_jaxpr(value: Any) -> Any:
    """The jaxpr in a parameter, without its constants; None for a parameter that is no jaxpr."""
    if isinstance(value, Jaxpr):  # since 0.11 it may have constants
        return value
    return value.jaxpr if isinstance(value, ClosedJaxpr) else None


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """The jaxprs in an equation's parameters: a call's body, the branches of a condition."""
    if "pallas" in equation.primitive.name:  # its kernel is no part of the program
        return
    for value in equation.params.values():
        for part in value if isinstance(value, list | tuple) else (value,):
            if (found := open_jaxpr(part)) is not None:
                yield found


# A program with more equations than this is not small.
_FEW = 16


def is_small(jaxpr: Any) -> bool:
    """Whether a program has few equations, no other jaxpr inside, and no array: seen at a glance.

    False where that cannot be told.
    """
    equations = getattr(jaxpr, "eqns", None)
    if equations is None or len(equations) > _FEW or getattr(jaxpr, "consts", True):
        return False
    for equation in equations:
        if any(map(_may_be_large, equation.params.values())):
            return False
        for operand in equation.invars:
            if hasattr(operand, "val") and operand.aval.shape:  # a literal
                return False
    return True


def _may_be_large(parameter: Any) -> bool:
    """Whether a parameter is an array or a jaxpr, or holds some: the branches of a `cond`."""
    kind = type(parameter)
    if kind is tuple or kind is list:
        return any(map(_may_be_large, parameter))
    return hasattr(kind, "eqns") or hasattr(kind, "nbytes")


# --- Where equations were traced ------------------------------------------------------------------


class Stacks:
    """The stacks of a program's equations, each read once: a loop has few, and many equations.

    They are cached by the ids of the program's objects, so the program must outlive this.
    """

    def __init__(self) -> None:
        self._by_traceback: dict[int, CodeStack] = {}
        self._by_frames: dict[tuple[int, ...], CodeStack] = {}
        self._written: dict[int, tuple[CodeStack, Stack]] = {}

    def of(self, equation: Any) -> CodeStack:
        """The stack that an equation was traced under; in a backward pass, its forward pass's."""
        traceback = getattr(equation.source_info, "traceback", None)
        found = self._by_traceback.get(id(traceback))
        if found is None:
            found = self._by_traceback[id(traceback)] = self._read(traceback)
        return found

    def lines_of(self, equation: Any) -> Stack:
        """The same stack, with the files and lines of its frames."""
        found = self.of(equation)
        if id(found) not in self._written:
            self._written[id(found)] = found, tuple(_frame(*each) for each in found)
        return self._written[id(found)][1]

    def _read(self, traceback: Any) -> CodeStack:
        codes, offsets = _raw_frames(traceback)
        key = (*map(id, codes), *offsets)
        if key not in self._by_frames:
            self._by_frames[key] = tuple(zip(codes, offsets, strict=True))
        return self._by_frames[key]


def _raw_frames(traceback: Any) -> tuple[list[CodeType], list[int]]:
    """The code and the offset of each frame; none where a release has a traceback otherwise."""
    try:
        codes, offsets = traceback.raw_frames()
    except (AttributeError, TypeError, ValueError):
        return [], []
    return codes, offsets


@lru_cache(maxsize=1 << 14)
def _frame(code: CodeType, offset: int) -> Frame:
    return code.co_filename, line_at(code, offset), code.co_qualname


def line_at(code: CodeType, offset: int) -> int:
    """The line of an instruction of Python's, by its offset."""
    lines = (line for start, end, line in code.co_lines() if start <= offset < end)
    return next(lines, None) or code.co_firstlineno


def is_backward(equation: Any) -> bool:
    """Whether an equation belongs to a backward pass."""
    return "transpose(" in _name_stack(equation)


def _name_stack(equation: Any) -> str:
    return str(getattr(equation.source_info, "name_stack", ""))


def as_written(stacks: Iterable[Stack]) -> list[Stack]:
    """Stacks as JAX writes them into a program, without duplicates.

    It leaves out its own frames, and those of files that a library has told it to: Flax does so.
    """
    different = dict.fromkeys(stacks)
    files = {file for stack in different for file, _, _ in stack}
    is_written = {file: source_info_util.is_user_filename(file) for file in files}
    found = (tuple(frame for frame in stack if is_written[frame[0]]) for stack in different)
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Equation:
    """One equation of a program, and where it was traced."""

    primitive: str
    stack: Stack
    """The stack that it was traced under; JAX's own frames are in it."""

    name_stack: str
    """``"vmap(transpose(jvp()))"``; inside of a call it follows that of the call."""


def equations(jaxpr: Any) -> Iterator[Equation]:
    """The equations of a program that compute something, with those in the jaxprs inside of it.

    JAX caches a traced function and puts it into the program wherever it is called: its equations
    have the stack of the first call. Here they have that of the call that they are inside of.
    """
    return _equations(jaxpr, (), "", Stacks())


def _equations(jaxpr: Any, outside: Stack, names: str, stacks: Stacks) -> Iterator[Equation]:
    """The equations of a function that is called from `outside`, within the name stack `names`.

    JAX writes both into the program only when it lowers it.
    """
    for equation, stack in with_stacks(jaxpr, outside, stacks):
        name_stack = f"{names}/{own}" if (own := _name_stack(equation)) and names else own or names
        inner = list(inner_jaxprs(equation))
        if not inner or equation.primitive.name not in CALLS:
            yield Equation(equation.primitive.name, stack, name_stack)
        for part in inner:
            yield from _equations(part, stack, name_stack, stacks)


def stack_within(stacks: Stacks, equation: Any, jaxpr: Any, outside: Stack) -> Stack:
    """The stack that an equation of a jaxpr was traced under, out to the call that it is inside of.

    Args:
        stacks: the stacks that were read so far.
        equation: one of the jaxpr's.
        jaxpr: what holds the equation.
        outside: the stack of the call; empty for a whole program.
    """
    return _within(stacks.lines_of(equation), _function_of(jaxpr, outside), outside)


def _function_of(jaxpr: Any, outside: Stack) -> tuple[str, str] | None:
    source = source_of(jaxpr) if outside else None
    return (source.file, source.name.partition(" ")[0]) if source is not None else None


def with_stacks(jaxpr: Any, outside: Stack, stacks: Stacks) -> Iterator[tuple[Any, Stack]]:
    """The equations of a function that is called from `outside`, each with its stack."""
    function = _function_of(jaxpr, outside)
    for equation in equations_in(jaxpr):
        yield equation, _within(stacks.lines_of(equation), function, outside)


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


@dataclass(frozen=True, slots=True)
class TracedFrame:
    """A frame of the stack that an equation was traced under, with the fields of Python's own."""

    f_code: CodeType
    f_lasti: int
    f_back: Self | None

    @property
    def f_lineno(self) -> int:
        """The line that the frame was at."""
        return line_at(self.f_code, self.f_lasti)


@dataclass(frozen=True, slots=True)
class Callback:
    """An equation that calls Python when the program runs."""

    kind: str
    """The name of its primitive: ``"pure_callback"``."""

    frame: TracedFrame | None
    """The innermost frame of the stack that it was traced under; None where that is unknown."""


def callbacks(jaxpr: Any, around: tuple[Any, ...] = ()) -> Iterator[Callback]:
    """The equations that call Python when the program runs, also in the jaxprs inside of it.

    They are known by their names: pure_callback, io_callback, debug_callback, debug_print. A kernel
    of Pallas has its own way to print, which stays in the program.

    Args:
        jaxpr: the program.
        around: the equations that it is inside of, the outermost first.
    """
    for equation in equations_in(jaxpr):
        name = equation.primitive.name
        if "callback" in name or name == "debug_print":
            yield Callback(name, _traced_under((*around, equation)))
        else:
            for inside in inner_jaxprs(equation):
                yield from callbacks(inside, (*around, equation))


def chooses_a_platform(jaxpr: Any) -> bool:
    """Whether a program only says on which platform it is: `lax.platform_dependent` outside of jit.

    JAX calls the branch of the number that it returns. In a program, the choice is one equation
    among others, or none any more.
    """
    return [equation.primitive.name for equation in equations_in(jaxpr)] == ["platform_index"]


def _traced_under(equations: tuple[Any, ...]) -> TracedFrame | None:
    """The stacks of equations that are each inside of the one before, as one; None for no frames.

    The stack of an equation may be JAX's alone: `vmap` makes some in a loop of its own.
    """
    frame = None
    for equation in equations:
        codes, offsets = _raw_frames(getattr(equation.source_info, "traceback", None))
        for code, offset in zip(reversed(codes), reversed(offsets), strict=True):
            frame = TracedFrame(code, offset, frame)
    return frame


# --- What equations do ----------------------------------------------------------------------------


def is_literal(value: Any) -> bool:
    """Whether an input of an equation is a number that was written into it."""
    return isinstance(value, Literal)


def computes(jaxpr: Any) -> bool:
    """Whether the jaxpr in a parameter does anything; False for None."""
    opened = open_jaxpr(jaxpr)
    return opened is not None and bool(opened.eqns)


def has_effects(equation: Any) -> bool:
    """Whether an equation does more than compute: it prints, or calls Python."""
    return bool(equation.effects) or "callback" in equation.primitive.name


def count(jaxpr: Any, counted: dict[int, int] | None = None) -> int:
    """How many equations a jaxpr has, with those in bodies; a call itself is none."""
    counted = {} if counted is None else counted
    if id(jaxpr) not in counted:
        counted[id(jaxpr)] = sum(weight(equation, counted) for equation in jaxpr.eqns)
    return counted[id(jaxpr)]


def weight(equation: Any, counted: dict[int, int]) -> int:
    """How many equations one stands for: itself, unless it is a call, and those in its bodies."""
    inside = sum(count(jaxpr, counted) for jaxpr in inner_jaxprs(equation))
    return inside + (equation.primitive.name not in CALLS)


def eval_equation(equation: Any, inputs: list[Any]) -> list[Any]:
    """Evaluate an equation, as JAX's own interpreter of jaxprs does."""
    found = equation.primitive.get_bind_params(equation.params)
    # Up to 0.9, with the functions that it is about apart.
    functions, parameters = found if isinstance(found, tuple) else ((), found)
    with equation.ctx.manager:
        made = equation.primitive.bind(*functions, *inputs, **parameters)
    return list(made) if equation.primitive.multiple_results else [made]


def eval_in_doubles(equation: Any, inputs: list[Any]) -> Any:
    """Evaluate an equation of one result that works on each element, on float64.

    `jax.enable_x64` is a context manager since 0.8; before, `jax.experimental` has it.
    """
    switch: Any = getattr(jax, "enable_x64", None)
    if not callable(switch):
        from jax import experimental  # noqa: PLC0415 (deprecated since)

        switch = vars(experimental)["enable_x64"]
    with switch(True):  # noqa: FBT003
        return eval_equation(equation, inputs)[0]


def with_bodies(equation: Any, replaced: Callable[[Any], Any]) -> Any:
    """An equation with its closed bodies replaced; other bodies are kept."""

    def part(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(part, value))
        return replaced(value) if isinstance(value, ClosedJaxpr) else value

    parameters = {name: part(value) for name, value in equation.params.items()}
    return equation.replace(params=parameters)


def body_of(equation: Any) -> Any:
    """The body of a call."""
    for value in equation.params.values():
        if isinstance(value, ClosedJaxpr):
            return value
        if isinstance(value, Jaxpr):
            return ClosedJaxpr(value, ())
    raise TypeError(f"{equation.primitive.name} has no body")


def made_of(equation: Any) -> Any:
    """The jaxpr of what a primitive's own implementation does; None where that says no more.

    Libraries define primitives that are made of JAX's operations; JAX's own are made of themselves.
    """
    primitive = equation.primitive
    shapes = [jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in equation.invars]

    def implementation(*operands: Any) -> Any:
        return primitive.impl(*operands, **equation.params)

    try:
        found = jax.make_jaxpr(implementation)(*shapes)
    except Exception:  # noqa: BLE001 (whatever a library's implementation raises)
        return None
    return None if _is_only(found.jaxpr, primitive) else found


def _is_only(jaxpr: Any, primitive: Any) -> bool:
    """Whether a jaxpr does nothing but one operation, perhaps inside of calls."""
    if len(jaxpr.eqns) != 1:
        return False
    (equation,) = jaxpr.eqns
    return equation.primitive is primitive or (
        equation.primitive.name in CALLS and _is_only(body_of(equation).jaxpr, primitive)
    )
