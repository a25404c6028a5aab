"""A program of JAX's, with each operation moved within its rounding.

JAX's own module is rewritten, before XLA has seen it: whatever is fused or reordered afterwards is
so for what is moved, too. Its arguments, results, aliases, shardings and names stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._emulate.emulator import Emulated
from jitcount._emulate.other_rounding import algebra, elementwise, sums
from jitcount._emulate.other_rounding.chance import Chance, Site
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

        It never raises: a program that cannot be rewritten has a reason, and runs as it does.
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


def _left_out(operations: list[Operation], passed: int, chance: Chance) -> set[int]:
    """The places of operations that are the same everywhere, and of those that cost too much."""
    costs, alone = Costs(), set[int]()
    costs.add_transfer(passed)
    for place, operation in enumerate(operations):
        if not _is_rounded(operation):
            continue
        (result,) = operation.results
        assert result is not None  # noqa: S101 (it was looked at)
        if operation.name in elementwise.ROUNDED:
            costs.add_rounded(place, result.size)
            if not _may_be_fused(operation):
                alone.add(place)
        elif operation.name in elementwise.FUNCTIONS:
            costs.add_function(result.size, is_root=operation.name in _ROOTS)
        elif operation.name == "dot_general":
            costs.add_product(place, sums.terms_of(operation), result.size)
        elif sums.is_sum(operation):
            costs.add_sum(sums.terms_of(operation), result.size)
        elif operation.name not in _FREE:
            costs.add_transfer(result.size)
    coins = {place: chance.coin("whether", place) for place in costs.sometimes}
    return alone | costs.left_out(coins)


_ROOTS = frozenset({"divide", "sqrt", "rsqrt"})

_FREE = frozenset({"constant", "broadcast_in_dim", "reshape", "iota"})


def _move(operation: Operation, chance: Chance, place: int, *, may_be_exact: bool) -> None:
    """Let those who use the result of an operation use a moved one."""
    if algebra.is_decomposition(operation):
        site = Site(operation.before(), chance, place)
        for at, operand in enumerate(operation.operands):
            if operand is not None and operand.size > 1 and _is_moved(operand):
                operation.give(at, algebra.moved_input(site, operand))
        return
    operands = operation.operands
    if not _is_rounded(operation) or None in operands:
        return
    (result,), (uses,) = operation.results, operation.uses()
    given = [each for each in operands if each is not None]
    site = Site(operation.after(), chance, place)
    assert result is not None  # noqa: S101 (it was looked at)
    moved = _moved(site, operation, given, result, may_be_exact=may_be_exact)
    if moved is not None:
        use_instead(uses, moved)


def _moved(
    site: Site, operation: Operation, operands: list[Array], result: Array, *, may_be_exact: bool
) -> Array | None:
    name = operation.name
    if sums.is_sum(operation):
        return sums.moved_sum(site, operation, operands, may_be_exact=may_be_exact)
    if name == "fft":
        return algebra.moved_transform(site, operation, result)
    is_modulus = name == "abs" and operands[0].is_complex
    is_elementwise = name in elementwise.ROUNDED or name in elementwise.FUNCTIONS or is_modulus
    if not is_elementwise or elementwise.is_exact(name, operands):
        return None
    return elementwise.moved(site, operation, operands, result)


def _is_moved(array: Array) -> bool:
    return (array.is_float and array.element in {"f32", "f64"}) or array.is_complex


def _may_be_fused(operation: Operation) -> bool:
    """Whether a compiler may round an addition or a product otherwise than by itself.

    By itself it is the same on every backend, by IEEE 754. With another one a product may not be
    rounded at all, and sums may be added in another order.
    """
    return operation.is_in_a_body or any(each in _ARITHMETIC for each in operation.neighbours())


_ARITHMETIC = elementwise.ROUNDED | {"reduce", "dot_general"}
