"""Walks an argument as JAX flattens it, and names each place as a user would write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import msgspec

from jitcount.observe.values import ARRAYS, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator


class Node(msgspec.Struct, frozen=True, gc=False):
    """What holds other places: a container, or None, which holds none."""

    type_name: str
    keys: tuple[str, ...] = ()
    """As they are written behind the place: ``['kernel']``, ``[0]``, ``.mean``."""

    static: str = ""
    """What else is compiled in, such as the static fields of a dataclass."""

    static_token: int = 0
    """Equal where that is equal."""


class AtLeaf(NamedTuple):
    """A place that holds no others."""

    value: Any


_LEAVES = (*ARRAYS, bool, int, float, complex)


def walk(value: Any, where: str) -> Iterator[tuple[str, Node | AtLeaf]]:
    """Yield a value and all that is in it, place by place.

    >>> for place, found in walk({"a": [1.0, None]}, "params"):
    ...     print(place, found)
    params Node(type_name='dict', keys=("['a']",), static='', static_token=0)
    params['a'] Node(type_name='list', keys=('[0]', '[1]'), static='', static_token=0)
    params['a'][0] AtLeaf(value=1.0)
    params['a'][1] Node(type_name='None', keys=(), static='', static_token=0)
    """
    if isinstance(value, _LEAVES):
        yield where, AtLeaf(value)
        return
    if value is None:
        yield where, Node("None")
        return
    children, static, token = _children(value)
    if children is None:
        yield where, AtLeaf(value)
        return
    keys = tuple(key for key, _ in children)
    yield where, Node(type(value).__qualname__, keys, static, token)
    for key, child in children:
        yield from walk(child, where + key)


class _Children(NamedTuple):
    """What is in a node; no list for a leaf."""

    children: list[tuple[str, Any]] | None
    static: str = ""
    static_token: int = 0


def _children(value: Any) -> _Children:
    if type(value) is dict:
        return _Children([(f"[{key!r}]", value[key]) for key in _sorted(value)])
    if type(value) in {list, tuple}:
        return _Children([(f"[{index}]", child) for index, child in enumerate(value)])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _Children([(f".{name}", getattr(value, name)) for name in value._fields])
    found, structure = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda v: v is not value)
    if len(found) == 1 and not found[0][0]:
        return _Children(None)
    children = [(jax.tree_util.keystr(path), child) for path, child in found]
    return _Children(children, _static_text(structure), hash(structure))


def _sorted(keys: dict[Any, Any]) -> list[Any]:
    """In JAX's order, on which the names of arrays depend; keys without one it refuses."""
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)


def _static_text(structure: Any) -> str:
    """The static fields of a node, out of ``PyTreeDef(CustomNode(State[(...)], [*]))``."""
    text = str(structure).removeprefix("PyTreeDef(").removeprefix("CustomNode(")
    return shortened(text.rpartition(", [")[0] or text)
