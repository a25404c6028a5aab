"""Programs as JAX holds them before they are lowered: jaxprs, their equations and their source.

`jax.extend` has a jaxpr's types, but not the debug info, which alone says from which function it
was traced. Where a release takes that away, the source of a program is empty: the backward passes
of two functions of one name are then taken for those of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import jax
from jax._src import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jitcount._jax.origin import JAX_DIRECTORIES, is_module_of_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType

_module_of = vars(type)["__module__"].__get__  # a metaclass of the user's may have another


@dataclass(frozen=True, slots=True)
class Source:
    """The function that a jaxpr was traced from."""

    name: str
    file: str
    line: str

    @property
    def is_jaxs(self) -> bool:
        """Whether it stands in JAX."""
        return self.file.startswith(JAX_DIRECTORIES)


def source_of(jaxpr: object) -> Source | None:
    """Where the function stands that a jaxpr was traced from; None for what is no jaxpr.

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


# So many equations are few.
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
    """Whether it is an array or a jaxpr, or holds some: the branches of a `cond`."""
    kind = type(parameter)
    if kind is tuple or kind is list:
        return any(map(_may_be_large, parameter))
    return hasattr(kind, "eqns") or hasattr(kind, "nbytes")


@dataclass(frozen=True, slots=True)
class TracedFrame:
    """A frame of the stack under which an equation was traced; reads as Python's own do."""

    f_code: CodeType
    f_lasti: int
    f_back: Self | None

    @property
    def f_lineno(self) -> int:
        """The line that it was at."""
        spans = self.f_code.co_lines()
        found = (line for start, end, line in spans if start <= self.f_lasti < end)
        return next(found, None) or self.f_code.co_firstlineno


@dataclass(frozen=True, slots=True)
class Callback:
    """An equation that calls Python when the program runs."""

    kind: str
    """Its primitive: ``"pure_callback"``."""

    frame: TracedFrame | None
    """The innermost frame of the stack that it was traced under; None where that is not known."""


def callbacks(jaxpr: Any, around: tuple[Any, ...] = ()) -> Iterator[Callback]:
    """The equations that call Python when the program runs, also in the jaxprs inside of it.

    They are known by their names: pure_callback, io_callback, debug_callback, debug_print. A kernel
    of Pallas has its own way to print, which stays in the program.

    Args:
        jaxpr: the program.
        around: the equations that it is inside of, the outermost first.
    """
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        name = equation.primitive.name
        if "callback" in name or name == "debug_print":
            yield Callback(name, _traced_under((*around, equation)))
        elif "pallas" not in name:
            for value in equation.params.values():
                for part in value if isinstance(value, list | tuple) else (value,):
                    if hasattr(getattr(part, "jaxpr", part), "eqns"):
                        yield from callbacks(part, (*around, equation))


def _traced_under(equations: tuple[Any, ...]) -> TracedFrame | None:
    """The stacks, each inside the one before, from tracebacks that only JAX can read.

    That of an equation may be JAX's alone: of one that `vmap` has made in a loop of its own. None
    where a release has it otherwise.
    """
    frame = None
    for equation in equations:
        try:
            codes, offsets = equation.source_info.traceback.raw_frames()
        except (AttributeError, TypeError, ValueError):
            continue
        for code, offset in zip(reversed(codes), reversed(offsets), strict=True):
            frame = TracedFrame(code, offset, frame)
    return frame


# --- The equations of a jaxpr, each with the stack that it was traced under and its name stack ----
#
# A traced function is kept by JAX, and stands in the program wherever it is called: its equations
# have the stack of the first call. What is outside of the function then comes from the call itself.


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
        self._written: dict[int, tuple[CodeStack, Stack]] = {}

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


# --- The equations of one level of a program: where they were traced, and which levels are insi
#
# `jax.extend.core` has the types. A stack, a name stack and which parameters hold a body are
# JAX's own. Where a release has a stack otherwise it is empty here, and no loop is found: none is
# made up.


CodeStack = tuple[tuple["CodeType", int], ...]
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
        self._by_traceback: dict[int, CodeStack] = {}
        self._by_frames: dict[tuple[int, ...], CodeStack] = {}

    def of(self, equation: Any) -> CodeStack:
        """The stack that it was traced under; of a backward pass, the one of its forward pass."""
        traceback = getattr(equation.source_info, "traceback", None)
        found = self._by_traceback.get(id(traceback))
        if found is None:
            found = self._by_traceback[id(traceback)] = self._read(traceback)
        return found

    def _read(self, traceback: Any) -> CodeStack:
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
