"""Sorts, and the largest of an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import flat_values
from jitcount._hlo.parser import Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction


@rule("sort")
def _sort(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    """Ties are kept in order: a target that does not promise so may give another order."""
    (axis,) = instruction.numbers("dimensions")
    (applied,) = instruction.called("to_apply")
    ties = _ties(translation, instruction, applied, axis)
    left_out = ties.counter if ties and not _is_used(translation, instruction, ties.counter) else -1
    sorted_ones = [each for at, each in enumerate(operands) if at != left_out]

    def compare(inner: Writer, given: list[Value]) -> list[Value]:
        values: list[Values] = list(given)
        if left_out >= 0:
            zero = inner.full(0, operands[left_out].shape.of(extents=()))
            values[2 * left_out : 2 * left_out] = [zero, zero]
        return flat_values(translation.run(inner, applied, values, ties.rest if ties else ""))

    scalars = [each.shape.of(extents=()) for each in sorted_ones for _ in range(2)]
    region = writer.region(scalars, compare)
    shapes = [each.shape.of() for each in sorted_ones]
    how = f"dimension = {axis} : i64, is_stable = true"
    made = writer.ops("sort", sorted_ones, shapes, how, [region])
    if left_out >= 0:
        made.insert(left_out, operands[left_out])
    return made[0] if isinstance(instruction.shapes, Shape) else tuple(made)


@dataclass(frozen=True, slots=True)
class _Ties:
    """How a target keeps the order of equals: it counts the elements, and compares the numbers."""

    rest: str
    """What compares all else."""

    counter: int
    """Which operand holds the numbers."""


def _ties(
    translation: Translation, instruction: Instruction, applied: str, axis: int
) -> _Ties | None:
    """Of a target that has no stable sort. Here a sort is stable, and faster without."""
    every = translation.module.instructions
    root = translation.module.computations[applied].root
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
    counted = every[instruction.operands[first // 2]]
    is_count = counted.opcode == "iota" and counted.numbers("iota_dimension") == (axis,)
    if first % 2 or second != first + 1 or not is_count:
        return None
    return _Ties(rest.name, first // 2)


def _is_used(translation: Translation, instruction: Instruction, number: int) -> bool:
    """Whether anything takes one result of an instruction."""
    computations = translation.module.computations.values()
    if any(computation.root is instruction for computation in computations):
        return True
    takers = [
        each
        for each in translation.module.instructions.values()
        if instruction.name in each.operands
    ]
    return any(
        each.opcode != "get-tuple-element" or each.numbers("index") == (number,) for each in takers
    )


@rule("topk")
def _top_k(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Values:
    (k,) = instruction.numbers("k")
    largest = instruction.attributes.get("largest", "true") == "true"
    return top_k(writer, operands[0], k, largest=largest)


def top_k(writer: Writer, value: Value, k: int, *, largest: bool = True) -> Values:
    """The largest along the last axis, and where they stand; of equals the first."""
    axis = len(value.shape.extents) - 1
    places = writer.op("iota", [], value.shape.of("s32"), f"iota_dimension = {axis} : i64")
    direction = "GT" if largest else "LT"
    kind = "TOTALORDER" if value.shape.element[0] in "fb" else "SIGNED"
    kind = "UNSIGNED" if value.shape.element.startswith("u") else kind
    how = (
        f"compare_type = #stablehlo<comparison_type {kind}>, "
        f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    )
    scalar, place = value.shape.of(extents=()), Shape("s32", ())
    region = writer.region(
        [scalar, scalar, place, place],
        lambda inner, given: [inner.op("compare", given[:2], Shape("pred", ()), how)],
    )
    made = writer.ops(
        "sort",
        [value, places],
        [value.shape.of(), places.shape],
        f"dimension = {axis} : i64, is_stable = true",
        [region],
    )
    limits = (*value.shape.extents[:-1], k)
    return tuple(writer.slice(each, limits) for each in made)
