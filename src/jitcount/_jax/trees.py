"""What a node of a pytree keeps beside its children: JAX compares that, too, to find a program.

`PyTreeDef.node_data` is not documented. A release without it leaves None: then a change of a static
field is taken for one of the structure's text, or is not seen.
"""

from __future__ import annotations

from typing import Any

_CONTAINERS = (dict, list, tuple, type(None))


def is_plain(structure: Any) -> bool:
    """Whether a tree is made of nothing but dicts, lists and tuples: its text then holds no more.

    >>> import jax
    >>> is_plain(jax.tree.structure({"a": [1, None]}))
    True
    """
    if not hasattr(structure, "node_data"):
        return False
    data = structure.node_data()
    return (data is None or data[0] in _CONTAINERS) and all(map(is_plain, structure.children()))


def aux_data(structure: Any) -> Any:
    """What the `tree_flatten` of a tree's only node returned beside the children.

    Of the containers that JAX knows itself, dicts and named tuples among them, there is none: their
    keys and types say it all.
    """
    found = structure.node_data() if hasattr(structure, "node_data") else None
    return None if found is None or found[0] is dict else found[1]
