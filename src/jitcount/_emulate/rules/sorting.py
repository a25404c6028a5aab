"""Sorts, and the largest of an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array, flat_values
from jitcount._hlo.parser import Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values, Writer


@rule("sort")
def _sort(context: Context) -> Values:
    """Ties are kept in order; a target that does not promise so may return another one.

    Where what only the hardware knows is perturbed, ties of such a sort are turned round.
    """
    (axis,) = context.numbers("dimensions")
    writer, arrays = context.writer, context.arrays
    ties = _ties(context, axis)
    left_out = ties.counter if ties and not _is_used(context, ties.counter) else -1
    sorted_ones = [each for at, each in enumerate(arrays) if at != left_out]
    is_stable = ties is not None or context.attributes.get("is_stable") == "true"
    if context.translation.perturbation_seed and not is_stable and len(sorted_ones) > 1:
        how = f"dimensions = {array([axis])}"
        sorted_ones = [writer.op("reverse", [each], each.shape, how) for each in sorted_ones]

    def compare(inner: Writer, given: list[Value]) -> list[Value]:
        values: list[Values] = list(given)
        if left_out >= 0:
            zero = inner.full(0, arrays[left_out].shape.replace(extents=()))
            values[2 * left_out : 2 * left_out] = [zero, zero]
        root = ties.rest if ties else ""
        called = context.called("to_apply")
        return flat_values(context.translation.run(inner, called, values, root))

    scalars = [each.shape.replace(extents=()) for each in sorted_ones for _ in range(2)]
    made = _sorted(writer, sorted_ones, axis, writer.region(scalars, compare))
    if left_out >= 0:
        made.insert(left_out, arrays[left_out])
    return context.structured(made)


def _sorted(writer: Writer, values: list[Value], axis: int, compare: str) -> list[Value]:
    shapes = [each.shape for each in values]
    how = f"dimension = {axis} : i64, is_stable = true"
    return writer.ops("sort", values, shapes, how, [compare])


@dataclass(frozen=True, slots=True)
class _Ties:
    """How a target keeps the order of equals: it counts the elements, and compares the numbers."""

    rest: str
    """The instruction that compares all else."""

    counter: int
    """The number of the operand that holds the elements' numbers."""


def _ties(context: Context, axis: int) -> _Ties | None:
    """How a target without a stable sort makes one; here a sort is stable, and faster without."""
    module = context.translation.module
    every = module.instructions
    root = module.computations[context.called("to_apply")].root
    if root.opcode != "select":
        return None
    equal, tie, rest = (every[name] for name in root.operands)
    if [(each.opcode, each.attributes.get("direction")) for each in (equal, tie)] != [
        ("compare", "EQ"),
        ("compare", "LT"),
    ]:
        return None
    pair = [every[name] for name in tie.operands]
    if any(each.opcode != "parameter" for each in pair):
        return None
    first, second = (int(each.inside) for each in pair)
    counted = every[context.instruction.operands[first // 2]]
    is_count = counted.opcode == "iota" and counted.numbers("iota_dimension") == (axis,)
    if first % 2 or second != first + 1 or not is_count:
        return None
    return _Ties(rest.name, first // 2)


def _is_used(context: Context, number: int) -> bool:
    """Whether anything takes one result of the instruction."""
    module, instruction = context.translation.module, context.instruction
    if any(computation.root is instruction for computation in module.computations.values()):
        return True
    takers = [each for each in module.instructions.values() if instruction.name in each.operands]
    return any(
        each.opcode != "get-tuple-element" or each.numbers("index") == (number,) for each in takers
    )


@rule("topk")
def _top_k(context: Context) -> Values:
    (k,) = context.numbers("k")
    largest = context.attributes.get("largest", "true") == "true"
    return top_k(context.writer, context.arrays[0], k, largest=largest)


def top_k(writer: Writer, value: Value, k: int, *, largest: bool = True) -> Values:
    """The largest along the last axis, and where they stand; of equals the first."""
    axis = len(value.shape.extents) - 1
    places = writer.iota(value.shape.replace("s32"), axis)
    direction = "GT" if largest else "LT"
    kind = "TOTALORDER" if value.shape.element[0] in "fb" else "SIGNED"
    kind = "UNSIGNED" if value.shape.element.startswith("u") else kind
    scalar, place = value.shape.replace(extents=()), Shape("s32", ())
    region = writer.region(
        [scalar, scalar, place, place],
        lambda inner, given: [inner.compare(given[0], given[1], direction, kind)],
    )
    made = _sorted(writer, [value, places], axis, region)
    limits = (*value.shape.extents[:-1], k)
    return tuple(writer.slice(each, limits) for each in made)
