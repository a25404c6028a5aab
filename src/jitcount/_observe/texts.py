"""Values in a few words, whatever they are, and what they hold.

None of the user's code is run for that: a `__repr__` may be long, take long, or fail. Of an array
nothing is written but its shape: its contents are the user's own, and may not even be computed yet.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import types
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount._jax.jaxprs import source_of
from jitcount._jax.origin import is_module_of_jax
from jitcount._jax.trees import is_plain
from jitcount._observe.call_site import shown_path
from jitcount._observe.functions import describe_function
from jitcount._observe.safe_inspect import (
    MISSING,
    classes_of,
    in_type,
    instance_dict,
    is_a,
    module_of_type,
    name_of_type,
    safe_getattr,
    safe_hasattr,
    type_name,
)
from jitcount._observe.values import ARRAYS, dtype_and_shape

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 80
MOST_FIELDS = 64
DEEPEST = 4

PLAIN = (type(None), bool, int, float, complex, str, bytes, enum.Enum, type(Ellipsis))
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
_WHOLE = (*PLAIN, *ARRAYS, type, types.ModuleType)


def fields_of(value: Any, most: int = MOST_FIELDS) -> list[tuple[str, Any]] | None:
    """What an object holds, by the way it is written; None for what is not looked into."""
    if is_a(value, *_WHOLE) or is_function(value):
        return None
    if is_a(value, dict):
        items = itertools.islice(dict.items(value), most)
        return [(f"[{text_of(key)}]", inner) for key, inner in items]
    if is_a(value, tuple):
        inside = list(tuple.__iter__(value))[:most]
        names = names_of_fields(value)
        if len(names) == len(inside):
            return [(f".{name}", inner) for name, inner in zip(names, inside, strict=True)]
        return [(f"[{index}]", inner) for index, inner in enumerate(inside)]
    if is_a(value, list):
        return [(f"[{index}]", inner) for index, inner in enumerate(list.__iter__(value))][:most]
    found = [
        (f".{name}", safe_getattr(value, name, MISSING)) for name in names_of_fields(value)[:most]
    ]
    return [(key, inner) for key, inner in found if inner is not MISSING] or None


def names_of_fields(value: Any) -> list[str]:
    """The names of what an object holds."""
    if is_a(value, tuple):
        names = in_type(value, "_fields")
        return list(names) if type(names) is tuple else []
    if type(fields := in_type(value, "__dataclass_fields__")) is dict:
        return [name for name, field in fields.items() if _is_field(field)]
    if own := instance_dict(value):
        return [name for name in own if type(name) is str]
    return [name for _, inside in classes_of(value) for name in _slots(inside)]


def _is_field(field: Any) -> bool:
    """Whether it is one of a dataclass, and none that belongs to the class or to its making."""
    return field._field_type is dataclasses._FIELD  # type: ignore[attr-defined]  # noqa: SLF001


def _slots(inside: Any) -> list[str]:
    slots = inside.get("__slots__", ())
    if type(slots) is str:
        return [slots]
    names = list(slots) if type(slots) in {tuple, list, dict} else []
    return [name for name in names if type(name) is str and not name.startswith("__")]


def text_of(value: Any) -> str:
    """A short text for a value, whatever it is; the user's `__repr__` may be long, or may fail.

    >>> text_of({"a": np.ones(3)}), text_of("x" * 100)[-2:]
    ("{'a': float64[3]}", 'x…')
    """
    return shortened(_text(value, DEEPEST))


def _text(value: Any, depth: int) -> str:  # noqa: PLR0911 (one line for each type)
    if is_a(value, *PLAIN, np.generic, np.dtype):
        return _plain_text(value)
    if is_a(value, *ARRAYS):
        dtype, shape = dtype_and_shape(value)
        return f"{dtype}[{','.join(map(str, shape))}]"
    if is_a(value, type):
        return name_of_type(value)
    if is_function(value):
        return _function_text(value)
    if (source := source_of(value)) is not None:  # a jaxpr is too long
        return f"{source.name} at {shown_path(source.file)}:{source.line}"
    if depth and is_a(value, list, tuple, set, frozenset, dict):
        return _container_text(value, depth)
    if is_a(value, jax.tree_util.PyTreeDef) and not is_plain(value):
        return f"PyTreeDef of {value.num_leaves}"  # what its nodes keep may be an array
    if is_module_of_jax(module_of_type(type(value))):
        return " ".join(repr(value).split())
    return _object_text(value, depth)


def _plain_text(value: Any) -> str:
    if is_a(value, enum.Enum):
        return f"{type_name(value)}.{instance_dict(value).get('_name_', '?')}"
    content = plain(value)
    if type(content) in {str, bytes}:
        return repr(content[:_LONGEST])
    if is_a(value, np.generic):
        return np.generic.__str__(value)
    return str(value) if is_a(value, np.dtype) else repr(content)


def plain(value: Any) -> Any:
    """A number or text of Python's own, where a value is one with more made of it."""
    for kind, read in _PLAIN.items():
        if type(value) is kind:
            return value
        if is_a(value, kind):
            return read(value)
    return value


_PLAIN: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
}


def is_function(value: Any) -> bool:
    """Whether a value is a function, or stands for one: what `jax.jit` and its like return."""
    return is_a(value, *_FUNCTIONS) or (callable(value) and safe_hasattr(value, "__wrapped__"))


def _function_text(value: Any) -> str:
    function = describe_function(value)
    is_shown = function.place and not is_module_of_jax(str(safe_getattr(value, "__module__", "")))
    return f"{function.name} at {function.place}" if is_shown else function.name


def _container_text(value: Any, depth: int) -> str:
    most = 12
    if names_of_fields(value) and is_a(value, tuple):
        return _object_text(value, depth)
    kind = next(kind for kind in (dict, list, tuple, set, frozenset) if is_a(value, kind))
    more = ", …" if kind.__len__(value) > most else ""
    if kind is dict:
        pairs = itertools.islice(dict.items(value), most)
        inner = (f"{_text(key, 0)}: {_text(each, depth - 1)}" for key, each in pairs)
        return f"{{{', '.join(inner)}{more}}}"
    few = itertools.islice(kind.__iter__(value), most)
    inside = ", ".join(_text(each, depth - 1) for each in few) + more
    if kind is tuple:
        return f"({inside},)" if tuple.__len__(value) == 1 else f"({inside})"
    return f"[{inside}]" if kind is list else f"{{{inside}}}"


def _object_text(value: Any, depth: int) -> str:
    fields = fields_of(value) if depth else None
    if not fields:
        return f"{type_name(value)}()" if fields is None and depth else f"{type_name(value)}(…)"
    inner = (f"{key.removeprefix('.')}={_text(field, depth - 1)}" for key, field in fields[:12])
    return f"{type_name(value)}({', '.join(inner)})"


def shortened(text: str) -> str:
    """A text that fits into a sentence."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
