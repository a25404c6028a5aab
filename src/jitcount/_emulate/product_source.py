"""What people write for a product, ``q @ k``, and its name: ``@``, ``einsum``, ``Dense``."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from typing import TYPE_CHECKING, NamedTuple

from jitcount._hlo.locations import called_in
from jitcount._observe.call_site import owner_of

if TYPE_CHECKING:
    from jitcount._hlo.locations import Stack
    from jitcount._observe.call_site import CallSite

_CALLS = frozenset(
    {
        *("dot", "dot_general", "einsum", "inner", "matmul", "outer", "tensordot", "vdot"),
        *("conv", "conv_general_dilated", "conv_with_general_padding", "convolve", "solve"),
    }
)
_LONGEST = 40


class _Product(NamedTuple):
    """A product that a line writes."""

    name: str
    """``"@"``, or the name of the function that is called."""

    text: str


def product_in(place: CallSite) -> str:
    """The one product that a line writes; empty where it writes none, several, or a long one."""
    found = _written(place.file).products.get(place.line, ())
    text = found[0].text if len(found) == 1 else ""
    return text if len(text) <= _LONGEST else ""


def written_name(place: CallSite, stack: Stack, op_name: str) -> str:
    """What the line of a product calls it.

    That is the operator or function that the line writes, or the layer of a library that it calls.
    Only where it writes neither is it the jitted function that the product is in, or JAX's name.

    Args:
        place: the line.
        stack: what the product was traced under, as far as it is known.
        op_name: JAX's own name for it, with all that it is inside of.
    """
    layers = _layers(stack)
    if layers:
        source = linecache.getline(place.file, place.line)
        inner = [name for name in reversed(layers) if re.search(rf"\b{name}\b", source)]
        return (inner or layers)[0]
    written = _written(place.file)
    names = list(dict.fromkeys(each.name for each in written.products.get(place.line, ())))
    inside = called_in(op_name)
    if inside in names:
        return inside
    called = written.calls.get(place.line, ())
    return " and ".join(sorted(names)) or (called[0] if len(called) == 1 else "") or inside


def _layers(stack: Stack) -> list[str]:
    """The layers of libraries inside of the user's line, by name, the outermost first."""
    found: list[str] = []
    for file, _, function in stack:
        owner = owner_of(file)
        if owner == "user":
            return found[::-1]
        layer, _, method = function.replace("<locals>.", "").rpartition(".")
        name = layer.rpartition(".")[2].lstrip("_") if method == "__call__" else method
        if owner == "library" and not name.startswith(("_", "<")):
            found.append(name)
    return []


class _Written(NamedTuple):
    """What a file writes, by line."""

    products: dict[int, list[_Product]]
    """Each as it would be written in one line."""

    calls: dict[int, list[str]]
    """The names of all functions that are called."""


@functools.lru_cache(maxsize=64)
def _written(file: str) -> _Written:
    found = _Written({}, {})
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        name = _name_of(node)
        for line in _lines_of(node):
            if name and isinstance(node, ast.expr):
                found.products.setdefault(line, []).append(_Product(name, ast.unparse(node)))
            if isinstance(node, ast.Call):
                found.calls.setdefault(line, []).append(_called_by(node))
    return found


def _lines_of(node: ast.AST) -> range:
    if not isinstance(node, ast.expr):
        return range(0)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _name_of(node: ast.AST) -> str:
    """What a product is called; empty for what is no product."""
    if isinstance(node, ast.BinOp):
        return "@" if isinstance(node.op, ast.MatMult) else ""
    name = _called_by(node) if isinstance(node, ast.Call) else ""
    return name if name in _CALLS else ""


def _called_by(call: ast.Call) -> str:
    """The name of the function that is called, or what it is called on; empty for neither."""
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
