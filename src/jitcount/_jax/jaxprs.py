"""Programs as JAX holds them before they are lowered: jaxprs, their equations and their source.

`jax.extend` has a jaxpr's types, but not the debug info, which alone says from which function it
was traced. Where a release takes that away, the source of a program is empty: the backward passes
of two functions of one name are then taken for those of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from jitcount._jax.origin import JAX_DIRECTORIES, is_module_of_jax

if TYPE_CHECKING:
    from collections.abc import Iterator
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
