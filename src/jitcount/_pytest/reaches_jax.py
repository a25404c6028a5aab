"""Whether a test can have computed anything with JAX, by what its code names.

A test may run programs that an earlier one has compiled, and nothing reports that: JAX's caches
serve them without a line of Python. So what the test's code names is looked up, and what that names
in turn, as far as it is the user's own.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import TYPE_CHECKING

from jitcount._jax.origin import is_module_of_jax
from jitcount._observe.call_site import owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# More than that is not looked at: then it may.
_MOST = 2000


def reaches_jax(*things: object) -> bool:
    """Whether functions, or values that they are called with, name anything of JAX's.

    >>> import jax
    >>> reaches_jax(lambda: jax.numpy.ones(3)), reaches_jax(lambda: 3)
    (True, False)
    """
    waiting = list(things)
    seen: dict[int, object] = {}
    try:
        while waiting:
            thing = waiting.pop()
            if id(thing) in seen:
                continue
            seen[id(thing)] = thing
            if len(seen) > _MOST or _is_jaxs(thing):
                return True
            waiting += _named_by(thing)
    except Exception:  # noqa: BLE001 (somebody's attribute): then it may
        return True
    return False


def _is_jaxs(thing: object) -> bool:
    """Whether something is JAX's, or of a library that uses it."""
    if isinstance(thing, types.ModuleType):
        return _uses_jax(thing.__name__.partition(".")[0])
    names = (type(thing).__module__, getattr(thing, "__module__", None))
    return any(isinstance(name, str) and _uses_jax(name.partition(".")[0]) for name in names)


# Installed packages that know JAX, and compute with NumPy.
_WITHOUT = {"numpy", "scipy", "ml_dtypes", "pytest", "_pytest", "hypothesis"}


@functools.cache
def _uses_jax(package: str) -> bool:
    if is_module_of_jax(package):
        return True
    if package in _WITHOUT or _owner(package) != "library":
        return False
    inside = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    return any("jax" in vars(sys.modules[name]) for name in inside)


def _owner(module: str) -> str:
    return owner_of(getattr(sys.modules.get(module), "__file__", None) or "<none>")


def _named_by(thing: object) -> Iterator[object]:  # noqa: C901 (a branch for each kind of thing)
    """What the user's code names: globals, what closures hold, attributes of modules."""
    if isinstance(thing, types.MethodType):
        yield thing.__func__
        yield thing.__self__
    elif isinstance(thing, functools.partial):
        yield thing.func
        yield from thing.args
        yield from thing.keywords.values()
    elif isinstance(thing, types.FunctionType):
        if owner_of(thing.__code__.co_filename) == "user":
            yield from _named_in(thing.__code__, thing.__globals__)
        yield from (cell.cell_contents for cell in thing.__closure__ or () if _is_full(cell))
        yield from thing.__defaults__ or ()
        yield from (thing.__kwdefaults__ or {}).values()
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from thing
    elif isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, type):
        if _owner(thing.__module__) == "user":
            yield from vars(thing).values()
            yield from thing.__bases__
    elif isinstance(thing, staticmethod | classmethod):
        yield thing.__func__
    elif isinstance(thing, property):
        yield thing.fget
    elif _owner(type(thing).__module__) == "user":
        yield type(thing)
        yield from getattr(thing, "__dict__", {}).values()


def _is_full(cell: types.CellType) -> bool:
    return cell != types.CellType()


def _named_in(code: types.CodeType, names: dict[str, object]) -> Iterator[object]:
    for name in code.co_names:
        if name in names:
            yield names[name]
            if isinstance(module := names[name], types.ModuleType):
                yield from (vars(module)[each] for each in code.co_names if each in vars(module))
        elif name in sys.modules:  # imported in the function, perhaps
            yield sys.modules[name]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _named_in(constant, names)
