"""The user's lines on the stack of a compile, outermost first, and what each of them calls.

They are looked at while the program waits, so only what is gone afterwards is read: which
instruction of which code called which other code, and what kinds of arguments that was given. The
source is read when a log is asked, by `jitcount._explain.callers`.
"""

from __future__ import annotations

import inspect
import logging
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from jitcount._observe.call_site import CallSite, owner_of, site_at
from jitcount._observe.safe_inspect import is_a
from jitcount._observe.values import ARRAYS

if TYPE_CHECKING:
    from types import CodeType, FrameType

_logger = logging.getLogger("jitcount")

# Deeper than this nobody reads, and recursion has no end.
_MOST_CALLERS = 64

ARRAY = "array"
"""An array, or a floating-point number."""

TREE = "tree"
"""A pytree that holds nothing but these."""

STATIC = "static"
"""No array, but hashable: what `jax.jit` can take as a static argument."""

OTHER = "other"
"""Neither: a list of names, a data loader."""

LINEN = "linen"
"""A module of `flax.linen`, which is equal to others with the same fields: a static argument."""

NNX, EQUINOX = "nnx", "equinox"
"""An object of `flax.nnx`, or one of equinox, which have a jit of their own."""


class Callee(NamedTuple):
    """What a line calls: the first function below it that is neither JAX's nor Python's own."""

    code: CodeType
    module: str
    """The name of the module that the code belongs to."""

    arguments: tuple[tuple[str, str], ...]
    """The name and the kind of each argument that was given when that line called it first.

    Those that ``*args`` takes are called ``"*0"``, ``"*1"`` and so on.
    """

    makes_object: bool
    """Whether it is a class that is called."""


class CallerFrame(NamedTuple):
    """One line of the user's on the stack of a compile."""

    code: CodeType
    line: int
    instruction: int
    """The offset of the instruction that calls, by which the call is found in the source."""

    callee: Callee | None
    """None where the line itself asks JAX for an operation."""

    inside: tuple[CodeType, ...]
    """The code of libraries that runs between this line and the next one of the user's."""

    is_import: bool

    @property
    def site(self) -> CallSite:
        """The line, as people read it."""
        return site_at(self.code.co_filename, self.line, self.code.co_qualname)


def callers_in(frame: FrameType | None) -> tuple[CallerFrame, ...]:
    """Find the user's lines on a stack, outermost first; where there are none, a library's."""
    found: list[CallerFrame] = []
    library: CallerFrame | None = None
    callee: FrameType | None = None
    inside: list[CodeType] = []
    is_import = False
    while frame is not None and len(found) < _MOST_CALLERS:
        code = frame.f_code
        owner = owner_of(code.co_filename)
        # A library that changes modules as they are imported stands between the import and them.
        is_hook = owner == "library" and code.co_name == "exec_module"
        if owner == "passed over" or is_hook:
            is_import = is_import or is_hook or code.co_filename.startswith(_IMPORTS)
        else:
            if owner == "user" or library is None:
                known = None if callee is None else _callee(callee, (code, frame.f_lasti))
                called = (known, tuple(inside), is_import)
                caller = CallerFrame(code, frame.f_lineno, frame.f_lasti, *called)
                if owner == "user":
                    found.append(caller)
                    inside = []
                else:
                    library = caller
            if owner == "library":
                inside.append(code)
            callee, is_import = frame, False
        frame = frame.f_back
    return tuple(reversed(found or ([library] if library is not None else [])))


_IMPORTS = "<frozen importlib"

# A cache by the place of a call: what is given there is looked at once.
_callees: dict[tuple[tuple[CodeType, int], CodeType], Callee] = {}
_MOST_CALLEES = 10_000


def _callee(frame: FrameType, called_at: tuple[CodeType, int]) -> Callee:
    code = frame.f_code
    key = called_at, code
    if (known := _callees.get(key)) is not None:
        return known
    if len(_callees) >= _MOST_CALLEES:
        _callees.clear()
    module = str(frame.f_globals.get("__name__", ""))
    found = _callees[key] = Callee(code, module, *_arguments(frame))
    return found


def _arguments(frame: FrameType) -> tuple[tuple[tuple[str, str], ...], bool]:
    """The arguments of the function that a frame runs, and whether a class is called."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    has_args = bool(code.co_flags & inspect.CO_VARARGS)
    has_kwargs = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    if not (count or has_args or has_kwargs) or not code.co_flags & inspect.CO_OPTIMIZED:
        return (), False
    names = code.co_varnames
    try:
        local = frame.f_locals
        given = {name: local[name] for name in names[:count] if name in local}
        if has_args:
            given |= {f"*{n}": value for n, value in enumerate(local.get(names[count], ()))}
        if has_kwargs:
            given |= local.get(names[count + has_args], {})
        first = local.get(names[0]) if code.co_argcount else None
        is_class = code.co_name.startswith("__") and isinstance(first, type)
        found = tuple((name, kind_of(value)) for name, value in given.items())
        if isinstance(first, type) and is_class:
            found = ((names[0], kind_of_class(first)), *found[1:])
        _forget(code, local)
    except Exception:  # observing must never fail the user's program
        _logger.debug("could not read the arguments of %s", code.co_qualname, exc_info=True)
        return (("", OTHER),), False
    return found, is_class or code.co_name == "__init__"


# Held by the frame, by `_arguments`, by `_forget` and by the call of `getrefcount` itself.
_HOLDERS = 4


def _forget(code: CodeType, local: Any) -> None:
    """Let go of a frame's variables: up to Python 3.12 the frame would keep this copy of them.

    An array that the function drops while it runs would stay in memory. The names of its own
    variables are copied anew whenever anyone asks; other entries, and a dict that anyone else
    holds (the user's own `locals()`), stay as they are.
    """
    if type(local) is dict and sys.getrefcount(local) <= _HOLDERS:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            local.pop(name, None)


def kind_of(value: Any) -> str:
    """Which kind of argument a value is for a jit.

    >>> import numpy as np
    >>> kind_of(np.ones(3)), kind_of({"w": 0.5}), kind_of(64), kind_of([64, "relu"])
    ('array', 'tree', 'static', 'other')
    """
    if isinstance(value, type):
        return STATIC
    if (kind := kind_of_class(type(value))) != OTHER:
        return kind
    if is_a(value, *ARRAYS, float, complex):
        return ARRAY
    leaves = jax.tree.leaves(value, is_leaf=_is_iterator)
    if all(is_a(leaf, *ARRAYS, float, complex) for leaf in leaves) and value is not None:
        return TREE
    return STATIC if _is_hashable(value) else OTHER


def _is_iterator(value: Any) -> bool:
    """Whether a value is an iterator: a leaf to JAX, which warns unless it is told so."""
    return hasattr(type(value), "__next__")


def kind_of_class(each: type) -> str:
    """Whose the objects of a class are: `NNX`, `EQUINOX`, `LINEN` or `OTHER`."""
    bases = {base.__module__ for base in each.__mro__}
    if any(module.startswith("flax.nnx") for module in bases):
        return NNX
    if any(module.partition(".")[0] == "equinox" for module in bases):
        return EQUINOX
    return LINEN if any(module.startswith("flax.linen") for module in bases) else OTHER


def _is_hashable(value: Any) -> bool:
    """Whether a value is equal to others of its kind by what it is, as a static argument must be.

    The user's own `__hash__` is not called. An object without one is no other than itself.
    """
    if isinstance(value, tuple | frozenset):
        return all(map(_is_hashable, value))
    made_hash: Any = type(value).__hash__
    if made_hash is object.__hash__:
        return value is None or callable(value)
    return made_hash is not None
