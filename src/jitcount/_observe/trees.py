"""Walks an argument as JAX flattens it, and names each place as a user would write it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import msgspec

from jitcount._jax.trees import aux_data
from jitcount._observe.safe_inspect import MISSING, instance_dict, is_a, safe_getattr, type_name
from jitcount._observe.statics import Static, describe_static
from jitcount._observe.texts import names_of_fields, text_of
from jitcount._observe.values import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Callable


class Node(msgspec.Struct, frozen=True, gc=False):
    """What holds other places: a container, or None, which holds none."""

    type_name: str
    keys: tuple[str, ...] = ()
    """As they are written behind the place: ``['kernel']``, ``[0]``, ``.mean``."""

    static: Static | None = None
    """What else is compiled in, such as the static fields of a dataclass."""


_LEAVES = (*ARRAYS, bool, int, float, complex)
_NONE = Node("None")

# A cache of the types of leaves, by `id`: to walk a type's bases takes long, and its hash may be
# the user's own. It holds one entry for each type of array or number in the program.
_leaf_types: dict[int, type] = {}

Found: TypeAlias = dict[str, Any]
"""By place, a `Node` or what `describe` makes of a leaf."""


def walk(value: Any, where: str, found: Found, describe: Callable[[Any], object]) -> None:
    """Find a value and all that is in it, place by place; trees of 20,000 leaves are no exception.

    >>> found = {}
    >>> walk({"a": [1.0, None]}, "params", found, describe=str)
    >>> for place, value in found.items():
    ...     print(place, value)
    params Node(type_name='dict', keys=("['a']",), static=None)
    params['a'] Node(type_name='list', keys=('[0]', '[1]'), static=None)
    params['a'][0] 1.0
    params['a'][1] Node(type_name='None', keys=(), static=None)
    """
    kind = type(value)
    if id(kind) in _leaf_types:
        found[where] = describe(value)
    elif kind is dict:
        items = _sorted(value)
        names = tuple([f"[{repr(key) if type(key) is str else text_of(key)}]" for key, _ in items])
        found[where] = Node("dict", names)
        for name, (_, child) in zip(names, items, strict=True):
            if id(type(child)) in _leaf_types:  # nearly all of a large tree: no call for each
                found[where + name] = describe(child)
            else:
                walk(child, where + name, found, describe)
    elif kind is list or kind is tuple:
        names = tuple([f"[{index}]" for index in range(len(value))])
        found[where] = Node(kind.__name__, names)
        for name, child in zip(names, value, strict=True):
            walk(child, where + name, found, describe)
    elif value is None:
        found[where] = _NONE
    elif is_a(value, *_LEAVES):
        _leaf_types[id(kind)] = kind
        found[where] = describe(value)
    else:
        _walk_registered(value, where, found, describe)


def _walk_registered(
    value: Any, where: str, found: Found, describe: Callable[[Any], object]
) -> None:
    children, static = _children(value)
    if children is None:
        found[where] = describe(value)
        return
    found[where] = Node(type_name(value), tuple(key for key, _ in children), static)
    for key, child in children:
        walk(child, where + key, found, describe)


def _children(value: Any) -> tuple[list[tuple[str, Any]] | None, Static | None]:
    """What is in a node, and what it keeps beside that; no list for a leaf."""
    # JAX's registry decides: a NamedTuple, too, may be registered as something else. Here code of
    # the user's is run, which JAX itself has just run several times: `tree_flatten`.
    found, structure = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda v: v is not value)
    if len(found) == 1 and not found[0][0]:
        return None, None
    children = [(_key(path, child, value), child) for path, child in found]
    return children, _static_part(value, aux_data(structure), children)


def _key(path: Any, child: Any, value: Any) -> str:
    """How a child is written behind its parent, by the attribute where JAX has only a number."""
    if len(path) == 1 and isinstance(path[0], jax.tree_util.FlattenedIndexKey):
        for name in list(instance_dict(value)) or names_of_fields(value):
            if safe_getattr(value, name) is child:
                return f".{name}"
        return f"[{path[0].key}]"
    return jax.tree_util.keystr(path)


def _static_part(value: Any, aux: Any, children: list[tuple[str, Any]]) -> Static | None:
    """What a node keeps beside its children, told apart as JAX does, field by field if it can be.

    JAX compares what `tree_flatten` returned beside the children. Users know fields: those of the
    object that are no children.
    """
    if aux is None or (type(aux) is tuple and not aux):
        return None
    static = describe_static(aux)
    keys = {key for key, _ in children}
    beside = [name for name in names_of_fields(value) if f".{name}" not in keys]
    kept = {
        name: inner
        for name in beside
        if (inner := safe_getattr(value, name, MISSING)) is not MISSING
    }
    if not kept:
        return static
    fields = _Fields(kept)
    return msgspec.structs.replace(static, parts=describe_static(fields).parts)


class _Fields:
    """Some fields of an object, to be described like one."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)


def _sorted(container: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """In JAX's order, on which the names of arrays depend; keys without one it refuses."""
    try:
        return sorted(container.items(), key=operator.itemgetter(0))
    except TypeError:
        return list(container.items())
