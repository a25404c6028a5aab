"""Recognises kernels that XLA:CPU computes wrongly, by their operations in the optimised program.

YNNPACK, a library of kernels, can compute a product and what reduces it at once. In some releases
it does that wrongly for some forms of products, if they are large, and clamps arithmetic of 8 bits
that should wrap around. Which forms these are was found
by comparing kernels that are wrong with others that are right; the library says nothing about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from jitcount._hlo.scanner import Instruction, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIMENSIONS = re.compile(r"\b(\w+)=\{([\d,]*)\}")
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")

# What hands on its operand, in another type or shape.
_PASSING = frozenset({"bitcast", "convert", "copy", "reshape", "transpose"})


@dataclass(frozen=True, slots=True)
class ReducedProduct:
    """A product and a reduction in one kernel of YNNPACK's."""

    is_right_turned: bool
    """Whether the right operand is contracted along its last axis."""

    spread: tuple[bool, ...]
    """For each operand that the kernel repeats, whether it is a single number."""

    is_reduced_at_once: bool
    """Whether the product itself is reduced, and not something that is computed from it."""

    is_reduced_along_last: bool
    """Whether the reduction goes along the product's last axis."""


def rows_reduced(optimised: str) -> bool:
    """Whether many rows are multiplied by one matrix, and each product is reduced at once."""
    return any(_is_of_rows(each) and each.is_reduced_at_once for each in _in(optimised))


def rows_changed_and_reduced(optimised: str) -> bool:
    """Whether many rows are multiplied by one matrix, and squared, say, before they are reduced."""
    return any(_is_of_rows(each) and not each.is_reduced_at_once for each in _in(optimised))


def _is_of_rows(product: ReducedProduct) -> bool:
    return product.is_right_turned and not product.spread and not product.is_reduced_along_last


def with_repeated_array(optimised: str) -> bool:
    """Whether a product of an array that is repeated over a batch is reduced."""
    return any(not is_number for each in _in(optimised) for is_number in each.spread)


def with_repeated_number(optimised: str) -> bool:
    """Whether a product with an array of one number is reduced."""
    return any(is_number for each in _in(optimised) for is_number in each.spread)


def with_arithmetic_of_bytes(optimised: str) -> bool:
    """Whether numbers of 8 bits are computed, and the largest or smallest is taken at once."""
    return any(
        instruction.opcode in {"add", "multiply", "negate", "subtract"}
        and instruction.line.startswith(("s8[", "u8["), instruction.shape_at)
        for kernel in _kernels(optimised)
        if kernel.reduced_by & {"maximum", "minimum"}
        for instruction in kernel.instructions
    )


def _in(optimised: str) -> list[ReducedProduct]:
    return [
        found for kernel in _kernels(optimised) for found in _reduced_products(kernel.instructions)
    ]


class _Kernel(NamedTuple):
    """One of YNNPACK's kernels."""

    instructions: list[Instruction]
    reduced_by: set[str]
    """What its reductions do: ``"add"``, ``"maximum"``."""


@lru_cache(maxsize=1)  # each miscompile asks about the same program
def _kernels(optimised: str) -> tuple[_Kernel, ...]:
    if "__ynn_fusion" not in optimised:
        return ()
    computations = scan(optimised).computations
    found = []
    for instructions in computations.values():
        for instruction in instructions:
            if "__ynn_fusion" in instruction.line:
                inside = [each for name in instruction.called for each in computations[name]]
                reducers = [
                    name for each in inside if each.opcode == "reduce" for name in each.called
                ]
                done = {each.opcode for name in reducers for each in computations[name]}
                found.append(_Kernel(inside, done))
    return tuple(found)


def _reduced_products(kernel: list[Instruction]) -> Iterator[ReducedProduct]:
    by_name = {instruction.name: instruction for instruction in kernel}
    reductions = [instruction for instruction in kernel if instruction.opcode == "reduce"]
    for dot in kernel:
        if dot.opcode != "dot" or not reductions:
            continue
        taken = [_origin(by_name, name) for name in dot.operands]
        contracted = _dimensions(dot).get("rhs_contracting_dims", ())
        right = by_name.get(dot.operands[-1])
        last_of_right = _rank(right) - 1 if right is not None else -1
        yield ReducedProduct(
            is_right_turned=last_of_right in contracted,
            spread=tuple(
                not _dimensions(each).get("dimensions")
                for each in taken
                if each is not None and each.opcode == "broadcast"
            ),
            is_reduced_at_once=any(
                _origin(by_name, each.operands[0]) is dot for each in reductions
            ),
            is_reduced_along_last=all(
                _rank(dot) - 1 in _dimensions(each).get("dimensions", ()) for each in reductions
            ),
        )


def _origin(by_name: dict[str, Instruction], name: str) -> Instruction | None:
    """What computes a value, apart from changes of its type and shape."""
    found = by_name.get(name)
    while found is not None and found.opcode in _PASSING:
        found = by_name.get(found.operands[0])
    return found


def _dimensions(instruction: Instruction) -> dict[str, tuple[int, ...]]:
    """The attributes of an instruction that name axes."""
    attributes = instruction.line[instruction.inside_end :].partition(", metadata=")[0]
    return {
        name: tuple(int(axis) for axis in axes.split(",") if axis)
        for name, axes in _DIMENSIONS.findall(attributes)
    }


def _rank(instruction: Instruction) -> int:
    shape = _SHAPE.match(instruction.line, instruction.shape_at)
    return len([size for size in shape[1].split(",") if size]) if shape else 0
