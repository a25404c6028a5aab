"""Walks an argument as JAX flattens it, and names each place as a user would write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from jitcount.observe.values import ARRAYS, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

# A node of the tree: the name of its type, its keys as they are written behind the place, and what
# else is compiled in (the static fields of a dataclass), as a text and as a number.
Node = tuple[str, tuple[str, ...], str, int]

_NONE = ("", 0)

_LEAVES = (*ARRAYS, bool, int, float, complex)


def walk(value: Any, where: str) -> Iterator[tuple[str, Node | None, Any]]:
    """Yield ``(place, node, leaf)`` for a value and all that is in it; a leaf has no node.

    >>> for place, node, leaf in walk({"a": [1.0, None]}, "params"):
    ...     print(place, node, leaf)
    params ('dict', ("['a']",), '', 0) None
    params['a'] ('list', ('[0]', '[1]'), '', 0) None
    params['a'][0] None 1.0
    params['a'][1] ('None', (), '', 0) None
    """
    if isinstance(value, _LEAVES):
        yield where, None, value
        return
    if value is None:
        yield where, ("None", (), "", 0), None
        return
    children, static = _children(value)
    if children is None:
        yield where, None, value
        return
    yield where, (type(value).__qualname__, tuple(key for key, _ in children), *static), None
    for key, child in children:
        yield from walk(child, where + key)


def _children(value: Any) -> tuple[list[tuple[str, Any]] | None, tuple[str, int]]:
    """The children of a node with their keys, and its static part; no list for a leaf."""
    if type(value) is dict:
        return [(f"[{key!r}]", value[key]) for key in sorted(value, key=_sortable)], _NONE
    if type(value) in {list, tuple}:
        return [(f"[{index}]", child) for index, child in enumerate(value)], _NONE
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{name}", getattr(value, name)) for name in value._fields], _NONE
    found, structure = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda v: v is not value)
    if len(found) == 1 and not found[0][0]:
        return None, _NONE
    return [(jax.tree_util.keystr(path), child) for path, child in found], (
        _static_text(structure),
        hash(structure),
    )


def _sortable(key: Any) -> tuple[str, Any]:
    return type(key).__name__, key if isinstance(key, str | int | float) else repr(key)


def _static_text(structure: Any) -> str:
    """The static fields of a node, out of ``PyTreeDef(CustomNode(State[(...)], [*]))``."""
    text = str(structure).removeprefix("PyTreeDef(").removeprefix("CustomNode(")
    return shortened(text.rpartition(", [")[0] or text)
