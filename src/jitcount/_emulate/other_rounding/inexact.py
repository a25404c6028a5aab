"""Which arrays of a program come from functions such as `exp`: they are no whole numbers.

Whether a sum is exact is found out while the program runs, and that takes time. It need not be
where a term comes from a function that hardly ever has an exact result, however it was added,
multiplied and moved since. Of what is not known it is found out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitcount._emulate.other_rounding.elementwise import FUNCTIONS

if TYPE_CHECKING:
    from jitcount._jax.rewriting import Operation

# Often exact: 6 / 3, the root of 4, the square of 3.
_MAY_BE_EXACT = frozenset({"divide", "sqrt", "power", "cbrt"})

_INEXACT = FUNCTIONS.keys() - _MAY_BE_EXACT

# What these return is no better than what they are given.
_CARRY = frozenset(
    {
        "abs", "add", "broadcast_in_dim", "complex", "concatenate", "convert", "convolution",
        "dot_general", "dynamic_slice", "dynamic_update_slice", "gather", "imag", "multiply",
        "negate", "pad", "real", "reduce", "reduce_window", "reshape", "reverse", "scatter",
        "select", "slice", "square", "subtract", "transpose",
    }
    | _MAY_BE_EXACT
)  # fmt: skip


class Inexact:
    """The arrays of a module that come from such functions."""

    def __init__(self, functions: dict[str, list[Operation]]) -> None:
        self._functions = functions
        self._whole: dict[str, bool] = {}
        """Of functions of the module, whether what they return is inexact."""

        self._found: set[Any] = set()
        for name in functions:
            self._look_through(name)

    def has(self, value: Any) -> bool:
        """Whether an array, as it was before the module was changed, is one of them."""
        return value in self._found

    def _look_through(self, name: str) -> bool:
        if name not in self._whole:
            self._whole[name] = False  # of a function that calls itself
            for operation in self._functions.get(name, ()):
                self._look_at(operation)
            last = self._functions[name][-1:] if name in self._functions else []
            returned = [value for each in last for value in each.mlir.operands]
            self._whole[name] = any(self.has(value) for value in returned)
        return self._whole[name]

    def _look_at(self, operation: Operation) -> bool:
        inner = [self._look_at(each) for each in operation.inner()]
        is_found = (
            operation.name in _INEXACT
            or any(inner)
            or bool(operation.callee and self._look_through(operation.callee))
            or (
                (operation.name in _CARRY or bool(operation.callee))
                and any(self.has(value) for value in operation.mlir.operands)
            )
        )
        if is_found:
            self._found.update(operation.mlir.results)
        return is_found
