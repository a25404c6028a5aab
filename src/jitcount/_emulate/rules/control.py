"""Computations inside computations: fusions, calls, loops, branches, and what runs beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.translate import RULES, rule
from jitcount._emulate.writer import Value, array, flat_values, like

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Values, Writer


@rule("fusion")
def _fusion(context: Context) -> Values:
    """Run what was fused; a fusion that is one kernel of a matrix unit is no loop."""
    translation = context.translation
    before = translation.is_in_loop
    translation.is_in_loop = context.attributes.get("kind") in {"kLoop", "kInput"}
    try:
        return context.run("calls")
    finally:
        translation.is_in_loop = before


@rule("map")
def _map(context: Context) -> Value:
    """A computation of scalars, for each element."""
    shape = context.result
    scalars = [operand.shape.replace(extents=()) for operand in context.arrays]
    region = context.writer.region(scalars, context.region("to_apply"))
    how = f"dimensions = {array(range(len(shape.extents)))}"
    return context.writer.op("map", context.arrays, shape, how, [region])


@rule("call")
def _call(context: Context) -> Values:
    return context.run("to_apply")


@rule("while")
def _while(context: Context) -> Values:
    (state,) = context.operands
    values = flat_values(state)
    shapes = [value.shape for value in values]

    def run(name: str, inner: Writer, given: Sequence[Value]) -> list[Value]:
        called, arguments = context.called(name), [like(state, iter(given))]
        return flat_values(context.translation.run(inner, called, arguments))

    def step(inner: Writer, given: Sequence[Value]) -> list[Value]:
        pairs = zip(run("body", inner, given), shapes, strict=True)
        return [inner.convert(value, shape.element) for value, shape in pairs]

    regions = [
        context.writer.region(shapes, lambda inner, given: run("condition", inner, given)),
        context.writer.region(shapes, step),
    ]
    return like(state, iter(context.writer.ops("while", values, shapes, regions=regions)))


@rule("conditional")
def _conditional(context: Context) -> Values:
    which, *given = context.operands
    assert isinstance(which, Value)  # noqa: S101
    writer, called = context.writer, context.instruction.called
    names = called("branch_computations")
    if not names:
        names = called("false_computation") + called("true_computation")
        given = given[::-1]
        which = writer.op("convert", [which], which.shape.replace("s32"))
    found: list[Values] = []

    def body(name: str, argument: Values, inner: Writer) -> list[Value]:
        found.append(context.translation.run(inner, name, [argument]))
        return flat_values(found[-1])

    regions = [
        writer.region([], lambda inner, _, name=name, each=each: body(name, each, inner))  # type: ignore[misc]
        for name, each in zip(names, given, strict=True)
    ]
    structure = found[0]
    shapes = [value.shape for value in flat_values(structure)]
    return like(structure, iter(writer.ops("case", [which], shapes, regions=regions)))


# --- What runs beside: started, and done ----------------------------------------------------------

# A start returns a tuple of operands, results and what the hardware waits for. Here the result is
# known at once, and stands for that tuple.


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
def _start(context: Context) -> Values:
    """The operation that a start begins; its result is in the tuple that the start returns."""
    opcode, shapes = context.opcode.removesuffix("-start"), context.instruction.shapes
    if opcode == "copy":
        return context.operands[0]
    # Of an all-reduce, before JAX 0.12, only the results: arrays, where else operands come first.
    has_operands = opcode != "all-reduce" or (
        isinstance(shapes, tuple) and isinstance(shapes[0], tuple)
    )
    if isinstance(shapes, tuple) and has_operands:
        shapes = shapes[1]
    return RULES[opcode](context.changed(opcode=opcode, shapes=shapes))


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
def _done(context: Context) -> Values:
    return context.operands[0]


@rule("async-start")
def _async_start(context: Context) -> Values:
    return context.run("calls")
