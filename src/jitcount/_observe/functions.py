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

from jitcount._jax.origin import JAX_DIRECTORIES
from jitcount._observe.call_site import is_installed, shown_path
from jitcount._observe.safe_inspect import (
    is_a,
    module_of_type,
    name_of_type,
    safe_getattr,
    type_name,
)

if TYPE_CHECKING:
    from jitcount._jax.jaxprs import Source

# A cache of descriptions, by token: a function that is compiled often is described once.
_described: dict[int, Function] = {}
_MOST_DESCRIBED = 10_000

# What JAX puts around all of its functions, to filter tracebacks.
_BOUNDARIES = {"reraise_with_filtered_traceback"}

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

    inner_token: int = 0
    """The token of the function that a person wrote, under all that was made around it."""

    around: str = ""
    """What was made around it last: "value_and_grad", "vmap", "wrapper"; empty for nothing."""

    is_librarys: bool = False
    """Whether it is defined neither in the user's code nor in JAX's."""

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
        code = safe_getattr(inner, "__code__")
        code = code if type(code) is types.CodeType else None
        place = f"{shown_path(code.co_filename)}:{code.co_firstlineno}" if code else ""
        known = Function(
            name=_name(inner) or type_name(inner),
            kind=_kind(fun, inner),
            place=place,
            sources=_sources(fun, _DEPTH),
            token=number,
            inner_token=token(inner),
            around=_around(fun, inner),
            is_librarys=code is not None and is_installed(code.co_filename),
        )
        if len(_described) > _MOST_DESCRIBED:
            _described.clear()
        _described[number] = known
    return known


def _name(fun: Any) -> str:
    """What a function calls itself; a class has its name elsewhere than its objects."""
    name = (
        name_of_type(fun).rpartition(".")[2] if is_a(fun, type) else safe_getattr(fun, "__name__")
    )
    return plain_text(name)


def plain_text(text: Any) -> str:
    """A text, if it is one."""
    return str.__str__(text) if is_a(text, str) else ""


def _around(fun: Any, inner: Any) -> str:
    """What stands around a function: one of JAX's transformations, or a decorator's wrapper."""
    if fun is inner or type(fun) is not types.FunctionType:
        return ""
    if fun.__code__.co_name in _BOUNDARIES:  # around the transformation, whatever it says it wraps
        held = (value for value in _closed_over(fun) if type(value) is types.FunctionType)
        fun = next(held, fun)
    code = fun.__code__
    is_jaxs = code.co_filename.startswith(JAX_DIRECTORIES)
    return code.co_name.removesuffix("_f").strip("_") if is_jaxs else "wrapper"


def describe_body(jaxpr: Any, source: Source) -> Function:
    """Describe a function that was traced into an operation: the body of a loop."""
    place = f"{shown_path(source.file)}:{source.line}"
    kind = "lambda" if source.name == "<lambda>" else "function"
    is_librarys = is_installed(source.file)
    number = token(jaxpr)
    return Function(source.name, kind, place, (source,), number, number, "", is_librarys)


def unwrapped(fun: Any) -> Any:
    """The function that a person wrote, under partials, methods and wrappers."""
    for _ in range(_DEPTH):
        if is_a(fun, functools.partial):
            fun = fun.func
        elif type(fun) is types.MethodType:
            fun = fun.__func__
        elif (wrapped := safe_getattr(fun, "__wrapped__")) is not None and wrapped is not fun:
            fun = wrapped
        else:
            break
    return fun


def _kind(fun: Any, inner: Any) -> str:
    if is_a(fun, functools.partial):
        return "partial"
    if type(fun) is types.MethodType:
        return "method"
    if _name(inner) == "<lambda>":
        return "lambda"
    if type(inner) is not types.FunctionType:
        return "callable"
    return "closure" if inner.__closure__ else "function"


def _sources(fun: Any, depth: int) -> tuple[object, ...]:
    """All places that a function is made of; a wrapper's closure tells what it wraps."""
    if depth == 0:
        return ()
    if is_a(fun, functools.partial):
        held = (fun.func, *fun.args, *fun.keywords.values())
        return ("partial", *_sources_of_functions(held, depth))
    if type(fun) is types.MethodType:
        return (*_source_of_type(fun.__self__), *_sources(fun.__func__, depth - 1))
    found: list[object] = []
    if type(fun) is types.FunctionType:
        code = fun.__code__
        # Two lambdas of one line have other code; one lambda in a loop has the same.
        found += [code.co_filename, code.co_firstlineno, fun.__qualname__, hash(code)]
        found += _sources_of_functions(_closed_over(fun), depth)
    else:
        found += _source_of_type(fun)
    if (wrapped := safe_getattr(fun, "__wrapped__")) is not None and wrapped is not fun:
        found += _sources(wrapped, depth - 1)
    return tuple(found)


def _source_of_type(value: Any) -> list[str]:
    return [module_of_type(type(value)), name_of_type(type(value))]


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
    return [_sources(value, depth - 1) for value in values if is_a(value, *functions)]


# Tokens of objects that are alive, by `id`; an entry goes with its object.
_tokens: dict[int, tuple[weakref.ref[Any], int]] = {}
_next_token = itertools.count(1)


def next_token() -> int:
    """A number that stands for nothing yet."""
    return next(_next_token)


def token(value: Any) -> int:
    """A number that stands for an object, and is never given to another one.

    An `id` is given again when the object is gone; a weak reference tells.
    """
    if type(value) is types.MethodType:  # made anew at each access
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
