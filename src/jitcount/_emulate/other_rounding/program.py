"""A program of JAX's, with each operation moved within its rounding.

JAX's own module is rewritten, before XLA has seen it: whatever is fused or reordered afterwards is
so for what is moved, too. Its arguments, results, aliases, shardings and names stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._emulate.emulator import Emulated
from jitcount._emulate.other_rounding import algebra, elementwise, sums
from jitcount._emulate.other_rounding.chance import Chance
from jitcount._emulate.other_rounding.costs import Costs
from jitcount._emulate.other_rounding.inexact import Inexact
from jitcount._jax.rewriting import elements_passed, functions_in, operations_in, use_instead
from jitcount._targets.names import ROUNDING
from jitcount._targets.result import first_line

if TYPE_CHECKING:
    from jitcount._jax.rewriting import Array, Operation
    from jitcount._jax.substituting import Compilable
    from jitcount._observe.in_flight import LoweredProgram


@dataclass(frozen=True, slots=True)
class OtherRounding:
    """Makes programs run on this machine with other roundings than its own."""

    seed: int = 0
    scale: float = 1.0
    timeout: float = 0.0
    """Nothing is waited for."""

    @property
    def name(self) -> str:
        """How it is asked for: ``"rounding:7"``."""
        return f"{ROUNDING}:{self.seed}" if self.seed else ROUNDING

    @property
    def written(self) -> str:
        """The call that opens a block of it."""
        scale = "" if self.scale == 1 else f", scale={self.scale:g}"
        return f"as_if({self.name!r}{scale})"

    def get_ready(self) -> None:
        """Nothing: no compiler is started."""

    def emulate(self, compilable: Compilable, _program: LoweredProgram | None) -> Emulated:
        """Make an executable whose operations are moved.

        It never raises: a program that cannot be rewritten has a reason, and runs as it always does.
        """
        try:
            return Emulated(compilable.compile_rewritten(self._rewrite if self.scale else None))
        except Exception as error:  # noqa: BLE001 (it must run, whatever happens)
            return Emulated(reason=first_line(f"{type(error).__name__}: {error}"))

    def _rewrite(self, module: Any) -> None:
        """Move every operation of a module that rounds."""
        found = list(operations_in(module))
        chance = Chance(self.seed, self.scale)
        left_out = _left_out(found, elements_passed(module), chance)
        inexact = Inexact(functions_in(module))
        may_be_exact = [not any(map(inexact.has, each.mlir.operands)) for each in found]
        for place, operation in enumerate(found):
            if place not in left_out:
                _move(operation, chance, place, may_be_exact=may_be_exact[place])


def _is_rounded(operation: Operation) -> bool:
    result = operation.results[0] if len(operation.results) == 1 else None
    return result is not None and result.size > 0 and (result.is_float or result.is_complex)


def _left_out(operations: list[Operation], passed: int, chance: Chance) -> frozenset[int]:
    """The places of those operations for which there is no time."""
    costs = Costs()
    costs.add_transfer(passed)
    for place, operation in enumerate(operations):
        if not _is_rounded(operation):
            continue
        (result,) = operation.results
        assert result is not None  # noqa: S101 (it was looked at)
        if operation.name in elementwise.ROUNDED:
            costs.add_rounded(place, result.size)
        elif operation.name in elementwise.FUNCTIONS:
            costs.add_function(result.size, is_root=operation.name in _ROOTS)
        elif sums.is_sum(operation):
            costs.add_sum(sums.terms_of(operation), result.size)
        elif operation.name not in _FREE:
            costs.add_transfer(result.size)
    return costs.left_out({place: chance.coin("whether", place) for place in costs.sometimes})


_ROOTS = frozenset({"divide", "sqrt", "rsqrt"})

_FREE = frozenset({"constant", "broadcast_in_dim", "reshape", "iota"})


def _move(operation: Operation, chance: Chance, place: int, *, may_be_exact: bool) -> None:
    """Let those who use the result of an operation use a moved one."""
    if algebra.is_decomposition(operation):
        for at, operand in enumerate(operation.operands):
            if operand is not None and _is_matrix(operand):
                builder = operation.before()
                operation.give(at, algebra.moved_input(builder, chance, place, operand))
        return
    if not _is_rounded(operation):
        return
    (result,) = operation.results
    operands = operation.operands
    if result is None or None in operands:
        return
    (uses,) = operation.uses()
    given: list[Array] = [each for each in operands if each is not None]
    moved = _moved(operation, chance, place, given, result, may_be_exact=may_be_exact)
    if moved is not None:
        use_instead(uses, moved)


def _moved(
    operation: Operation,
    chance: Chance,
    place: int,
    operands: list[Array],
    result: Array,
    *,
    may_be_exact: bool,
) -> Array | None:
    name, builder = operation.name, operation.after()
    if name in elementwise.ROUNDED or name in elementwise.FUNCTIONS:
        if elementwise.is_exact(name, operands):
            return None
        return elementwise.moved(builder, chance, operation, operands, result)
    if name == "abs" and operands[0].is_complex:
        return elementwise.moved(builder, chance, operation, operands, result)
    if sums.is_sum(operation):
        return sums.moved_sum(
            builder, chance, place, operation, operands, may_be_exact=may_be_exact
        )
    if name == "reduce" and operation.body() == ["stablehlo.multiply", "stablehlo.return"]:
        return sums.moved_product(builder, chance, place, result, sums.terms_of(operation))
    if name == "fft":
        return algebra.moved_transform(builder, chance, place, operation, result)
    return None


def _is_matrix(array: Array) -> bool:
    return (array.is_float or array.is_complex) and array.size > 1
