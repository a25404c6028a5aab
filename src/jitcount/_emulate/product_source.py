"""The product that a line of source writes: ``q @ k``."""

from __future__ import annotations

import ast
import functools
import linecache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount._observe.call_site import CallSite

_CALLS = frozenset(
    {
        *("dot", "dot_general", "einsum", "inner", "matmul", "outer", "tensordot", "vdot"),
        *("conv", "conv_general_dilated", "conv_with_general_padding", "convolve", "solve"),
    }
)
_LONGEST = 40


def product_in(place: CallSite) -> str:
    """The one product that a line writes; empty where it writes none, several, or a long one."""
    found = _products(place.file).get(place.line, ())
    text = found[0] if len(found) == 1 else ""
    return text if len(text) <= _LONGEST else ""


@functools.lru_cache(maxsize=64)
def _products(file: str) -> dict[int, list[str]]:
    """By line, the products that a file writes, each as it would be written in one line."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and _is_product(node):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, []).append(ast.unparse(node))
    return found


def _is_product(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    if isinstance(node, ast.Call):
        name = node.func
        called = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
        return called in _CALLS
    return False
