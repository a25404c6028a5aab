"""Computations inside computations: fusions, calls, loops, branches, and what runs beside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount._emulate.translate import RULES, rule
from jitcount._emulate.writer import Value, array, flat_values, like

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Values, Writer
    from jitcount._hlo.parser import Instruction


@rule("fusion")
def _fusion(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    """Run what was fused; a fusion that is one kernel of a matrix unit is no loop."""
    (name,) = instruction.called("calls")
    before = translation.is_in_loop
    translation.is_in_loop = instruction.attributes.get("kind") in {"kLoop", "kInput"}
    try:
        return translation.run(writer, name, operands)
    finally:
        translation.is_in_loop = before


@rule("map")
def _map(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    """A computation of scalars, for each element."""
    (name,) = instruction.called("to_apply")
    shape = instruction.shape.of()
    scalars = [operand.shape.of(extents=()) for operand in operands]
    region = writer.region(scalars, translation.apply(name))
    how = f"dimensions = {array(range(len(shape.extents)))}"
    return writer.op("map", operands, shape, how, [region])


@rule("call")
def _call(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    (name,) = instruction.called("to_apply")
    return translation.run(writer, name, operands)


@rule("while")
def _while(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    (state,) = operands
    values = flat_values(state)
    shapes = [value.shape for value in values]

    def run(name: str, inner: Writer, given: Sequence[Value]) -> list[Value]:
        return flat_values(translation.run(inner, name, [like(state, iter(given))]))

    (condition,), (body,) = instruction.called("condition"), instruction.called("body")

    def step(inner: Writer, given: Sequence[Value]) -> list[Value]:
        made = run(body, inner, given)
        pairs = zip(made, shapes, strict=True)
        return [inner.convert(value, shape.element) for value, shape in pairs]

    regions = [
        writer.region(shapes, lambda inner, given: run(condition, inner, given)),
        writer.region(shapes, step),
    ]
    return like(state, iter(writer.ops("while", values, shapes, regions=regions)))


@rule("conditional")
def _conditional(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    which, *given = operands
    assert isinstance(which, Value)  # noqa: S101
    names = instruction.called("branch_computations")
    if not names:
        names = instruction.called("false_computation") + instruction.called("true_computation")
        given = given[::-1]
        which = writer.op("convert", [which], which.shape.of("s32"))
    found: list[Values] = []

    def body(name: str, argument: Values, inner: Writer) -> list[Value]:
        found.append(translation.run(inner, name, [argument]))
        return flat_values(found[-1])

    regions = [
        writer.region([], lambda inner, _, name=name, each=each: body(name, each, inner))  # type: ignore[misc]
        for name, each in zip(names, given, strict=True)
    ]
    structure = found[0]
    shapes = [value.shape for value in flat_values(structure)]
    return like(structure, iter(writer.ops("case", [which], shapes, regions=regions)))


# --- What runs beside: started, and done ----------------------------------------------------------

# A start gives a tuple of operands, results and what the hardware waits for. Here the result is
# there at once, and is what stands for that tuple.


@rule(
    "copy-start",
    "all-reduce-start",
    "all-gather-start",
    "collective-permute-start",
    "slice-start",
    "dynamic-slice-start",
    "dynamic-update-slice-start",
    "reduce-scatter-start",
    "all-to-all-start",
    "call-start",
    "fusion-start",
    "custom-call-start",
    "pad-start",
    "broadcast-start",
    "sort-start",
    "gather-start",
    "scatter-start",
    "while-start",
)
def _start(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    opcode = instruction.opcode.removesuffix("-start")
    return _as(translation, writer, opcode, instruction, operands)


@rule(
    "copy-done",
    "all-reduce-done",
    "all-gather-done",
    "collective-permute-done",
    "async-done",
    "async-update",
    "slice-done",
    "dynamic-slice-done",
    "dynamic-update-slice-done",
    "reduce-scatter-done",
    "all-to-all-done",
    "call-done",
    "fusion-done",
    "custom-call-done",
    "pad-done",
    "broadcast-done",
    "sort-done",
    "gather-done",
    "scatter-done",
    "while-done",
)
def _done(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    return operands[0]


@rule("async-start")
def _async_start(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    (name,) = instruction.called("calls")
    return translation.run(writer, name, operands)


def _as(
    translation: Translation,
    writer: Writer,
    opcode: str,
    instruction: Instruction,
    operands: list[Values],
) -> Values:
    """The operation that a start begins; its result is in the tuple that the start gives."""
    shapes = instruction.shapes
    if opcode == "copy":
        return operands[0]
    # Of an all-reduce, before JAX 0.12, only the results: arrays, where else operands come first.
    has_operands = opcode != "all-reduce" or (
        isinstance(shapes, tuple) and isinstance(shapes[0], tuple)
    )
    if isinstance(shapes, tuple) and has_operands:
        shapes = shapes[1]
    return RULES[opcode](
        translation, writer, replace(instruction, opcode=opcode, shapes=shapes), operands
    )
