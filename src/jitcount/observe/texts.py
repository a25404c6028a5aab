"""Values in a few words, whatever they are, and what they hold.

None of the user's code is run for that, as far as it can be helped: a `__repr__` may be long, take
long, or fail. Of an array nothing is written but its shape: its contents are the user's own, and
may not even be computed yet.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import types
from typing import Any

import jax
import numpy as np

from jitcount._jax.jaxprs import source_of
from jitcount._jax.origin import is_module_of_jax
from jitcount._jax.trees import is_plain
from jitcount.observe.functions import describe_function
from jitcount.observe.paths import shown_path

_LONGEST = 80
MOST_FIELDS = 64
DEEPEST = 4

PLAIN = (type(None), bool, int, float, complex, str, bytes, enum.Enum, type(Ellipsis))
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
_ARRAYS = (jax.Array, np.ndarray)
_MISSING = object()


def type_name(value: Any) -> str:
    """The name of a value's type."""
    return type(value).__qualname__.rpartition("<locals>.")[2]


def fields_of(value: Any) -> list[tuple[str, Any]] | None:
    """What an object holds, by the way it is written; None for what is not looked into."""
    is_whole = isinstance(value, (*PLAIN, *_ARRAYS, type, types.ModuleType, np.generic))
    if is_whole or is_function(value):
        return None
    if isinstance(value, dict):
        items = itertools.islice(value.items(), MOST_FIELDS)
        return [(f"[{text_of(key)}]", inner) for key, inner in items]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{name}", inner) for name, inner in zip(value._fields, value, strict=False)]
    if isinstance(value, list | tuple):
        return [(f"[{index}]", inner) for index, inner in enumerate(value[:MOST_FIELDS])]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(held := getattr(value, "__dict__", None), dict) and held:
        names = list(held)[:MOST_FIELDS]
    else:
        names = [name for kind in type(value).__mro__ for name in _slots(kind)]
    found = [(f".{name}", _attribute(value, name)) for name in names]
    return [(key, inner) for key, inner in found if inner is not _MISSING] or None


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if not name.startswith("__")]


def _attribute(value: Any, name: str) -> Any:
    """What an object holds under a name; none of its own code is run, if it can be helped."""
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict) and name in held:
        return held[name]
    try:
        return object.__getattribute__(value, name)
    except Exception:  # noqa: BLE001 (a slot that is empty, or a property that fails)
        return _MISSING


def text_of(value: Any) -> str:
    """A short text for a value, whatever it is; the user's `__repr__` may be long, or may fail.

    >>> text_of({"a": np.ones(3)}), text_of("x" * 100)[-2:]
    ("{'a': float64[3]}", 'x…')
    """
    return shortened(_text(value, DEEPEST))


def _text(value: Any, depth: int) -> str:  # noqa: PLR0911 (one line for each type)
    if isinstance(value, (*PLAIN, np.generic, np.dtype)):
        return _plain_text(value)
    if isinstance(value, jax.core.Tracer | jax.Array | np.ndarray):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, type):
        return value.__qualname__
    if is_function(value):
        return _function_text(value)
    if (source := source_of(value)) is not None:  # a jaxpr is too long
        return f"{source.name} at {shown_path(source.file)}:{source.line}"
    if depth and isinstance(value, list | tuple | set | frozenset | dict):
        return _container_text(value, depth)
    if isinstance(value, jax.tree_util.PyTreeDef) and not is_plain(value):
        return f"PyTreeDef of {value.num_leaves}"  # what its nodes keep may be an array
    if is_module_of_jax(type(value).__module__):
        return " ".join(repr(value).split())
    return _object_text(value, depth)


def _plain_text(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str | bytes):
        return repr(value[:_LONGEST])
    return str(value) if isinstance(value, np.generic | np.dtype) else repr(value)


def is_function(value: Any) -> bool:
    """Whether a value is a function, or stands for one: what `jax.jit` and its like return."""
    return isinstance(value, _FUNCTIONS) or (callable(value) and hasattr(value, "__wrapped__"))


def _function_text(value: Any) -> str:
    function = describe_function(value)
    is_shown = function.place and not is_module_of_jax(getattr(value, "__module__", "") or "")
    return f"{function.name} at {function.place}" if is_shown else function.name


def _container_text(value: Any, depth: int) -> str:
    most = 12
    few = list(itertools.islice(value, most))
    more = ", …" if len(value) > most else ""
    if isinstance(value, dict):
        inner = (f"{_text(key, 0)}: {_text(value[key], depth - 1)}" for key in few)
        return f"{{{', '.join(inner)}{more}}}"
    inside = ", ".join(_text(each, depth - 1) for each in few) + more
    if hasattr(value, "_fields"):
        return _object_text(value, depth)
    if isinstance(value, tuple):
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return f"[{inside}]" if isinstance(value, list) else f"{{{inside}}}"


def _object_text(value: Any, depth: int) -> str:
    fields = fields_of(value) if depth else None
    if not fields:
        return f"{type_name(value)}()" if fields is None and depth else f"{type_name(value)}(…)"
    inner = (f"{key.removeprefix('.')}={_text(field, depth - 1)}" for key, field in fields[:12])
    return f"{type_name(value)}({', '.join(inner)})"


def shortened(text: str) -> str:
    """A text that fits into a sentence."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
