"""Who a function is: where it stands, and which object it is.

JAX's caches know functions as objects. People know them as lines of source. One line can make many
objects (a lambda in a loop), and one line of a decorator can stand for many functions.
"""

from __future__ import annotations

import functools
import itertools
import types
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount.observe.paths import shown_path

if TYPE_CHECKING:
    from jitcount._jax.jaxprs import Source

# Descriptions by token, so that a function that is compiled often is described once.
_described: dict[int, Function] = {}
_MOST_DESCRIBED = 10_000

# So deep are wrappers and closures looked through.
_DEPTH = 6


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function as a description: it keeps no object alive. Equal ones are the same object."""

    name: str
    kind: str
    """"lambda", "closure", "partial", "method", "function" or "callable"."""

    place: str
    """The line that made it: "train.py:42"; empty where there is none."""

    sources: tuple[object, ...]
    """Equal for two functions of the same source, through wrappers and closures."""

    token: int
    """Equal for the same object."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.token == other.token

    def __hash__(self) -> int:
        return self.token


def describe_function(fun: Any, identity: Any = None) -> Function:
    """Describe what was given to `jax.jit`; `identity` stands for it where it is made anew.

    >>> describe_function(lambda x: x).kind
    'lambda'
    """
    number = token(fun if identity is None else identity)
    known = _described.get(number)
    if known is None:
        inner = unwrapped(fun)
        code = getattr(inner, "__code__", None)
        place = f"{shown_path(code.co_filename)}:{code.co_firstlineno}" if code else ""
        name = getattr(inner, "__name__", None) or type(inner).__name__
        known = Function(name, _kind(fun, inner), place, _sources(fun, _DEPTH), number)
        if len(_described) > _MOST_DESCRIBED:
            _described.clear()
        _described[number] = known
    return known


def describe_body(jaxpr: Any, source: Source) -> Function:
    """Describe a function that was traced into an operation: the body of a loop."""
    place = f"{shown_path(source.file)}:{source.line}"
    kind = "lambda" if source.name == "<lambda>" else "function"
    return Function(source.name, kind, place, (source,), token(jaxpr))


def unwrapped(fun: Any) -> Any:
    """The function that a person wrote, under partials, methods and wrappers."""
    for _ in range(_DEPTH):
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        elif (wrapped := getattr(fun, "__wrapped__", None)) is not None and wrapped is not fun:
            fun = wrapped
        else:
            break
    return fun


def _kind(fun: Any, inner: Any) -> str:
    if isinstance(fun, functools.partial):
        return "partial"
    if isinstance(fun, types.MethodType):
        return "method"
    if getattr(inner, "__name__", "") == "<lambda>":
        return "lambda"
    if not isinstance(inner, types.FunctionType):
        return "callable"
    return "closure" if inner.__closure__ else "function"


def _sources(fun: Any, depth: int) -> tuple[object, ...]:
    """All places that a function is made of; a wrapper's closure tells what it wraps."""
    if depth == 0:
        return ()
    if isinstance(fun, functools.partial):
        held = (fun.func, *fun.args, *fun.keywords.values())
        return ("partial", *_sources_of_functions(held, depth))
    if isinstance(fun, types.MethodType):
        owner = type(fun.__self__)
        return (owner.__module__, owner.__qualname__, *_sources(fun.__func__, depth - 1))
    found: list[object] = []
    if isinstance(fun, types.FunctionType):
        code = fun.__code__
        # Two lambdas of one line have other code; one lambda in a loop has the same.
        found += [code.co_filename, code.co_firstlineno, fun.__qualname__, hash(code)]
        found += _sources_of_functions(_closed_over(fun), depth)
    else:
        found += [type(fun).__module__, type(fun).__qualname__]
    if (wrapped := getattr(fun, "__wrapped__", None)) is not None and wrapped is not fun:
        found += _sources(wrapped, depth - 1)
    return tuple(found)


def _closed_over(fun: types.FunctionType) -> list[Any]:
    values = []
    for cell in fun.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    return values


def _sources_of_functions(values: Any, depth: int) -> list[object]:
    functions = (types.FunctionType, types.MethodType, functools.partial)
    return [_sources(value, depth - 1) for value in values if isinstance(value, functions)]


_tokens: dict[int, tuple[weakref.ref[Any], int]] = {}
_next_token = itertools.count(1)


def token(value: Any) -> int:
    """A number that stands for an object, and is never given to another one.

    An `id` is given again when the object is gone; a weak reference tells.
    """
    if isinstance(value, types.MethodType):  # made anew at each access
        return hash((token(value.__self__), token(value.__func__)))
    key = id(value)
    known = _tokens.get(key)
    if known is not None and known[0]() is value:
        return known[1]
    try:
        reference = weakref.ref(value, lambda _: _tokens.pop(key, None))
    except TypeError:
        return -key  # never the number of another object that is there at the same time
    number = next(_next_token)
    _tokens[key] = (reference, number)
    return number
