"""Asks for a higher precision in a program that is lowered already.

JAX has `precision=` where a program is written; to find out what that would do to one line of a
user's program, the attribute is set in the module that it was lowered to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jax._src.interpreters import mlir as _mlir
from jaxlib.mlir import ir

from jitcount._jax.lowering import bytecode_of

if TYPE_CHECKING:
    from collections.abc import Collection

_PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})
_HIGHEST = "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"


def with_highest_precision(bytecode: bytes, lines: Collection[tuple[str, int]]) -> bytes:
    """A module's bytecode, with the products of some lines at the highest precision.

    Lines are pairs of a file and a number; without any, all products are changed.
    """
    with _mlir.make_ir_context():
        module = ir.Module.parse(bytecode)
        highest = ir.Attribute.parse(_HIGHEST)

        def visit(operation: Any) -> Any:
            is_asked = not lines or not lines_of(operation).isdisjoint(lines)
            if operation.name in _PRODUCTS and is_asked:
                operation.attributes["precision_config"] = highest
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        return bytecode_of(module.operation)


_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):')


def lines_of(operation: Any) -> frozenset[tuple[str, int]]:
    """Every line of the stack that an operation was traced from."""
    found = _LINE.findall(str(operation.location))
    return frozenset((file.replace("\\\\", "\\"), int(line)) for file, line in found)
