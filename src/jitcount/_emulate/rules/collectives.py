"""Operations between devices: the CPU's own; with one device they are nothing, or nearly so."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from jitcount._emulate.rules.custom_calls import call
from jitcount._emulate.rules.perturb import loosened_sum
from jitcount._emulate.translate import NotKnownError, rule
from jitcount._emulate.writer import flat_values, table
from jitcount._hlo.parser import FLOATS, NARROW, flat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction, Shape


@rule("all-reduce", "reduce-scatter")
def _reduce(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    """Of several arrays each by itself: a compiler has joined what were several operations."""
    if translation.devices == 1:
        return _unchanged(operands)
    how = f"{_among(translation, instruction)}{_ids(instruction)}"
    name = instruction.opcode.replace("-", "_")
    if name == "reduce_scatter":
        how += f", scatter_dimension = {instruction.numbers('dimensions')[0]} : i64"
    return _together(
        _reduced(translation, writer, instruction, value, (name, shape.of(), how))
        for value, shape in _pairs(operands, instruction)
    )


def _reduced(
    translation: Translation,
    writer: Writer,
    instruction: Instruction,
    value: Value,
    operation: tuple[str, Shape, str],
) -> Value:
    """16 bits in float32, rounded at the end, as every XLA does where the network cannot."""
    (applied,) = instruction.called("to_apply")
    by = translation.module.computations[applied].root.opcode
    if by not in _REDUCERS:
        raise NotKnownError(f"{instruction.opcode} by {by}")
    name, shape, how = operation
    element = "f32" if value.shape.element in NARROW else value.shape.element
    wide = writer.convert(value, element)
    scalar = wide.shape.of(extents=())

    def reduce(given: Value) -> Value:
        region = writer.region([scalar, scalar], lambda inner, pair: [inner.op(by, pair, scalar)])
        return writer.op(
            name, [given], shape.of(element), f"{how}{_channel(writer, instruction)}", [region]
        )

    made = reduce(wide)
    if by == "add" and translation.draw and element in FLOATS:
        magnitudes = reduce(writer.op("abs", [wide], wide.shape.of()))
        terms = len(groups_of(instruction, translation.devices)[0])
        made = loosened_sum(translation, writer, made, magnitudes, terms)
    return writer.convert(made, value.shape.element)


# What devices can agree on.
_REDUCERS = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


@rule("all-gather")
def _all_gather(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    if translation.devices == 1:
        return _unchanged(operands)
    (axis,) = instruction.numbers("dimensions")
    how = f"all_gather_dim = {axis} : i64, {_among(translation, instruction)}{_ids(instruction)}"
    return _together(
        writer.op(
            "all_gather",
            [value],
            shape.of(value.shape.element),
            f"{how}{_channel(writer, instruction)}",
        )
        for value, shape in _pairs(operands, instruction)
    )


@rule("collective-permute")
def _permute(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    """To each device from another; one that none sends to has zeros."""
    numbers = instruction.numbers("source_target_pairs")
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    if "slice_sizes" in instruction.attributes:
        raise NotKnownError("a collective-permute of parts of arrays")
    values = flat_values(tuple(operands))
    if translation.devices == 1:
        is_kept = pairs == [(0, 0)]
        return _together(value if is_kept else writer.full(0, value.shape) for value in values)
    return _together(
        writer.op(
            "collective_permute",
            [value],
            value.shape.of(),
            f"source_target_pairs = {table(pairs, 2)}{_channel(writer, instruction)}",
        )
        for value in values
    )


@rule("all-to-all")
def _all_to_all(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    """Parts along an axis go to their devices, and come from them."""
    if translation.devices == 1:
        return _unchanged(operands)
    values = flat_values(tuple(operands))
    count = len(groups_of(instruction, translation.devices)[0])
    axis = instruction.numbers("dimensions")
    if axis:
        (value,) = values
        return _exchanged(translation, writer, instruction, value, (axis[0], count))
    # An array for each device: joined, they are the parts.
    extents = values[0].shape.extents
    parts = [writer.reshape(value, (1, *extents)) for value in values]
    shape = parts[0].shape.of(extents=(count, *extents))
    joined = writer.op("concatenate", parts, shape, "dimension = 0 : i64")
    made = _exchanged(translation, writer, instruction, joined, (0, count))
    return tuple(writer.taken(made, at) for at in range(count))


def _exchanged(
    translation: Translation,
    writer: Writer,
    instruction: Instruction,
    value: Value,
    split: tuple[int, int],
) -> Value:
    axis, count = split
    how = (
        f"concat_dimension = {axis} : i64, {_among(translation, instruction)}, "
        f"split_count = {count} : i64, split_dimension = {axis} : i64"
        f"{_channel(writer, instruction)}"
    )
    return writer.op("all_to_all", [value], value.shape.of(), how)


# XLA:TPU runs a collective beside other work as calls in several fusions. Each has the collective
# in it again, of the same operand: the first starts it, the last gives what it made.


@call("AsyncCollectiveStart")
def _started(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    """The collective's operands and results, and what the hardware waits for."""
    given = translation.collected.get(instruction.operands[0])
    if given is None:
        raise NotKnownError("a call of AsyncCollectiveStart")
    known = [*flat_values(given), *flat_values(tuple(operands))]
    rest = flat(instruction.shapes)[len(known) :]
    return *known, *(writer.full(0, shape.of()) for shape in rest)


@call("AsyncCollectiveDone")
def _done(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    for name, value in zip(instruction.operands, operands, strict=True):
        if name in translation.collected:
            return value
    raise NotKnownError("a call of AsyncCollectiveDone")


@rule("collective-broadcast", "ragged-all-to-all")
def _others(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    if translation.devices != 1:
        raise NotKnownError(f"{instruction.opcode} between {translation.devices} devices")
    return _unchanged(operands)


@rule("partition-id", "replica-id")
def _which(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    if translation.devices == 1 or instruction.opcode == "replica-id":  # there is one replica
        return writer.full(0, instruction.shape.of())
    return writer.manual("partition_id", instruction.shape.of())


@rule("send", "recv", "infeed", "outfeed")
def _outside(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    flat_values(tuple(operands))
    raise NotKnownError(f"{instruction.opcode}, which speaks with the host")


def _unchanged(operands: list[Values]) -> Values:
    """Among one device everything is there already, and whole."""
    return operands[0] if len(operands) == 1 else tuple(operands)


def _pairs(operands: list[Values], instruction: Instruction) -> list[tuple[Value, Shape]]:
    """What is given, and what is to come of each."""
    return list(zip(flat_values(tuple(operands)), flat(instruction.shapes), strict=True))


def _among(translation: Translation, instruction: Instruction) -> str:
    groups = groups_of(instruction, translation.devices)
    return f"replica_groups = {table(groups, len(groups[0]))}"


def _together(values: Iterable[Value]) -> Values:
    made = tuple(values)
    return made[0] if len(made) == 1 else made


def _channel(writer: Writer, instruction: Instruction) -> str:
    """Where there is one, devices are counted as partitions; else as replicas, of which is one.

    Each operation has its own: what the target runs once may be written here several times.
    """
    if "channel_id" not in instruction.attributes:
        return ""
    number = next(writer.names) + 1
    return f", channel_handle = #stablehlo.channel_handle<handle = {number}, type = 1>"


def _ids(instruction: Instruction) -> str:
    return (
        ", use_global_device_ids"
        if instruction.attributes.get("use_global_device_ids") == "true"
        else ""
    )


# --- Which devices an operation joins, in all the ways that HLO writes it -------------------------


_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\]\s*\{([^}]*)\}")


def groups_of(instruction: Instruction, devices: int) -> list[list[int]]:
    """Its groups of devices; all in one where none are written.

    Raises:
        ValueError: they are written in a way that is not known.
    """
    text = instruction.attributes.get("replica_groups", "{}")
    if re.fullmatch(r"[{}\d,\s]*", text):
        rows = re.findall(r"\{([\d,\s]+)\}", text)
        found = [[int(number) for number in row.split(",")] for row in rows]
        return found or [list(range(devices))]
    if iota := _IOTA.fullmatch(text):
        return _of_iota(*(_numbers(each) for each in iota.groups()))
    if mesh := _MESH.fullmatch(text):
        return _of_mesh(mesh[1], mesh[2])
    raise ValueError(f"groups of devices written as {text}")


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []


def _of_iota(shape: list[int], given: list[int], axes: list[int]) -> list[list[int]]:
    """``[4,2]<=[2,4]T(1,0)``: all numbers, in a shape, turned, in another shape."""
    numbers = np.arange(math.prod(given)).reshape(given)
    turned = numbers.transpose(axes) if axes else numbers
    return _rows(turned.reshape(shape))


def _of_mesh(axes: str, joined: str) -> list[list[int]]:
    """``mesh['x'=4,'y'=2] {'x'}``: the devices that differ in their places along these axes."""
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", axes)}
    names = [name.strip() for name in joined.split(",")]
    if not all(re.fullmatch(r"'[^']+'", name) and name[1:-1] in sizes for name in names):
        raise ValueError(f"groups of devices written as mesh[{axes}] {{{joined}}}")
    order = list(sizes)
    along = [order.index(name[1:-1]) for name in names]
    others = [axis for axis in range(len(order)) if axis not in along]
    numbers = np.arange(math.prod(sizes.values())).reshape(list(sizes.values()))
    count = math.prod(numbers.shape[axis] for axis in along)
    return _rows(numbers.transpose([*others, *along]).reshape(-1, count))


def _rows(numbers: np.ndarray) -> list[list[int]]:
    return [[int(number) for number in row] for row in numbers]
