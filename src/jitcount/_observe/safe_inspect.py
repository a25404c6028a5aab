"""Looks at objects without running any code of theirs.

Python asks an object in many ways: `isinstance` asks for its ``__class__``, `getattr` runs
properties and ``__getattr__``, a set asks for its hash. All of these may be the user's code, which
may take long, or raise, or never return. Here the object's own dictionary and slots are read, and
those of its type, as the interpreter holds them.
"""

from __future__ import annotations

import types
from collections import namedtuple
from typing import Any

from jitcount._observe.call_site import is_installed

# The getters of `type`: a metaclass may have others.
_mro_of = vars(type)["__mro__"].__get__
_dict_of = vars(type)["__dict__"].__get__
_qualname_of = vars(type)["__qualname__"].__get__
_module_of = vars(type)["__module__"].__get__

MISSING = object()

# What C code puts into a type for a field or an attribute: reading it runs nothing else. The last
# is that of named tuples, which has no public name.
_FIELDS_IN_C = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    type(vars(namedtuple("_Named", "field"))["field"]),  # noqa: PYI024
)


def is_a(value: Any, *kinds: type) -> bool:
    """Whether the type of a value is one of these, or made of one.

    >>> is_a(True, int), is_a("a", int, str), is_a([], tuple)
    (True, True, False)
    """
    for base in _mro_of(type(value)):
        for kind in kinds:
            if base is kind:
                return True
    return False


def type_name(value: Any) -> str:
    """The name of a value's type."""
    return name_of_type(type(value)).rpartition("<locals>.")[2]


def name_of_type(kind: type) -> str:
    """The whole name of a type."""
    return str(_qualname_of(kind))


def module_of_type(kind: type) -> str:
    """The module that a type is from."""
    module = _module_of(kind)
    return module if type(module) is str else ""


def instance_dict(value: Any) -> dict[str, Any]:
    """An object's own ``__dict__``, without running code of its type; empty where it has none."""
    descriptor = in_type(value, "__dict__")
    if type(descriptor) is not types.GetSetDescriptorType:
        return {}
    found = descriptor.__get__(value)
    return found if type(found) is dict else {}


def in_type(value: Any, name: str) -> Any:
    """Look up a name in a value's type and its bases; `MISSING` where none has it."""
    return next((_dict_of(k)[name] for k in _mro_of(type(value)) if name in _dict_of(k)), MISSING)


def owner_of(value: Any, name: str) -> type:
    """The class, of those that a value's type is made of, which has that name."""
    return next((kind for kind in _mro_of(type(value)) if name in _dict_of(kind)), object)


def classes_of(value: Any) -> list[tuple[type, Any]]:
    """The classes that a value's type is made of, each with what stands in it."""
    return [(kind, _dict_of(kind)) for kind in _mro_of(type(value))]


def safe_getattr(value: Any, name: str, default: Any = None) -> Any:  # noqa: PLR0911 (a line for each)
    """Return an attribute, if that runs no code of the user's; else `default`.

    A property is run where it is a library's: equinox has its functions behind such.
    """
    if type(value) is types.ModuleType or is_a(value, type):
        return default
    own = instance_dict(value).get(name, MISSING)
    if own is not MISSING:
        return own
    found = in_type(value, name)
    if found is MISSING:
        return default
    if type(found) in _FIELDS_IN_C:
        try:
            return found.__get__(value)
        except AttributeError:  # a slot that is empty
            return default
    if type(found) is property:
        code = getattr(found.fget, "__code__", None)
        is_librarys = type(code) is types.CodeType and is_installed(code.co_filename)
        return found.__get__(value) if is_librarys else default
    is_computed = any("__get__" in _dict_of(kind) for kind in _mro_of(type(found)))
    return default if is_computed else found


def safe_hasattr(value: Any, name: str) -> bool:
    """Whether an object has an attribute, or its type would make it; runs no code of the user's."""
    return name in instance_dict(value) or in_type(value, name) is not MISSING
