"""Operations between devices: the CPU's own; with one device they are nothing, or nearly so."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from jitcount._emulate.meshes import parse_mesh
from jitcount._emulate.rules.custom_calls import call
from jitcount._emulate.rules.perturb import perturbed_sum
from jitcount._emulate.translate import NotKnownError, rule
from jitcount._emulate.writer import flat_values, table
from jitcount._hlo.parser import FLOATS, NARROW

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value, Values
    from jitcount._hlo.parser import Computation, Instruction, Shape


@rule("all-reduce", "reduce-scatter")
def _reduce(context: Context) -> Values:
    """Several arrays, each by itself: a compiler has joined what were several operations."""
    if context.translation.devices == 1:
        return _together(context.operands)
    how = _groups(context) + _ids(context)
    if context.opcode == "reduce-scatter":
        how += f", scatter_dimension = {context.numbers('dimensions')[0]} : i64"
    return _together(_reduced(context, *pair, how) for pair in _pairs(context))


def _reduced(context: Context, value: Value, shape: Shape, how: str) -> Value:
    """16 bits in float32, rounded at the end, as every XLA does where the network cannot."""
    writer, translation = context.writer, context.translation
    computation = translation.module.computations[context.called("to_apply")]
    if by := _of_packed_booleans(computation):
        octets = shape.replace("u8", (*shape.extents, 4))
        parts = writer.op("bitcast_convert", [value], octets)
        return writer.op("bitcast_convert", [_all(context, parts, octets, by, how)], shape)
    by = computation.root.opcode
    if by not in _REDUCERS or not _is_plain(computation):
        raise NotKnownError(f"{context.opcode} by {by}")
    element = "f32" if value.shape.element in NARROW else value.shape.element
    wide = writer.convert(value, element)
    made = _all(context, wide, shape.replace(element), by, how)
    if by == "add" and translation.perturbation_seed and element in FLOATS:
        magnitudes = _all(context, writer.apply("abs", wide), shape.replace(element), by, how)
        terms = len(groups_of(context.instruction, translation.devices)[0])
        made = perturbed_sum(context, made, magnitudes, terms)
    return writer.convert(made, value.shape.element)


def _all(context: Context, value: Value, shape: Shape, by: str, how: str) -> Value:
    """What all devices of a group make of their values together."""
    writer = context.writer
    scalar = value.shape.replace(extents=())
    region = writer.region([scalar, scalar], lambda inner, pair: [inner.op(by, pair, scalar)])
    name, attributes = context.opcode.replace("-", "_"), how + _channel(context)
    return writer.op(name, [value], shape, attributes, [region])


def _is_plain(computation: Computation) -> bool:
    """Whether a computation is one operation of two values, and conversions of them."""
    kinds = {each.opcode for each in computation.instructions}
    return kinds <= {"parameter", "convert", computation.root.opcode}


def _of_packed_booleans(computation: Computation) -> str:
    """How four booleans in each word are combined, byte by byte; empty if they are none.

    XLA:TPU joins them so for the network. The computation takes each out of its word by a shift,
    combines two, and puts them back.
    """
    kinds = {each.opcode for each in computation.instructions}
    if computation.root.shape.element != "u32" or "shift-right-logical" not in kinds:
        return ""
    on_booleans = {
        each.opcode
        for each in computation.instructions
        if each.shape.element == "pred" and each.opcode != "convert"
    }
    known = kinds - on_booleans <= _TAKEN_APART and len(on_booleans) == 1
    return {"and": "minimum", "or": "maximum"}.get(on_booleans.pop(), "") if known else ""


_TAKEN_APART = frozenset(
    {"parameter", "constant", "convert", "shift-left", "shift-right-logical", "or"}
)

# What devices can agree on.
_REDUCERS = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


@rule("all-gather")
def _all_gather(context: Context) -> Values:
    if context.translation.devices == 1:
        return _together(context.operands)
    (axis,) = context.numbers("dimensions")
    how = f"all_gather_dim = {axis} : i64, {_groups(context)}{_ids(context)}"

    def gather(value: Value, shape: Shape) -> Value:
        attributes = how + _channel(context)
        return context.writer.op(
            "all_gather", [value], shape.replace(value.shape.element), attributes
        )

    return _together(gather(*pair) for pair in _pairs(context))


@rule("collective-permute")
def _permute(context: Context) -> Values:
    """To each device from another; one that none sends to has zeros."""
    writer = context.writer
    numbers = context.numbers("source_target_pairs")
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    if "slice_sizes" in context.attributes:
        raise NotKnownError("a collective-permute of parts of arrays")
    values = flat_values(tuple(context.operands))
    if context.translation.devices == 1:
        is_kept = pairs == [(0, 0)]
        return _together(value if is_kept else writer.full(0, value.shape) for value in values)
    how = f"source_target_pairs = {table(pairs, 2)}"
    return _together(
        writer.op("collective_permute", [value], value.shape, how + _channel(context))
        for value in values
    )


@rule("all-to-all")
def _all_to_all(context: Context) -> Values:
    """Parts along an axis go to their devices, and come from them."""
    if context.translation.devices == 1:
        return _together(context.operands)
    writer = context.writer
    values = flat_values(tuple(context.operands))
    count = len(groups_of(context.instruction, context.translation.devices)[0])
    axis = context.numbers("dimensions")
    if axis:
        (value,) = values
        return _exchanged(context, value, axis[0], count)
    # An array for each device: joined, they are the parts.
    parts = [writer.reshape(value, (1, *value.shape.extents)) for value in values]
    made = _exchanged(context, writer.concatenate(parts, 0), 0, count)
    return tuple(writer.taken(made, at) for at in range(count))


def _exchanged(context: Context, value: Value, axis: int, count: int) -> Value:
    how = (
        f"concat_dimension = {axis} : i64, {_groups(context)}, "
        f"split_count = {count} : i64, split_dimension = {axis} : i64{_channel(context)}"
    )
    return context.writer.op("all_to_all", [value], value.shape, how)


# XLA:TPU runs a collective beside other work as calls in several fusions. Each has the collective
# in it again, of the same operand: the first starts it, the last returns what it made.


@call("AsyncCollectiveStart")
def _started(context: Context) -> Values:
    """The collective's operands and results, and what the hardware waits for."""
    given = context.translation.collected.get(context.instruction.operands[0])
    if given is None:
        raise NotKnownError("a call of AsyncCollectiveStart")
    known = [*flat_values(given), *flat_values(tuple(context.operands))]
    rest = context.results[len(known) :]
    return *known, *(context.writer.full(0, shape) for shape in rest)


@call("AsyncCollectiveDone")
def _done(context: Context) -> Values:
    for name, value in zip(context.instruction.operands, context.operands, strict=True):
        if name in context.translation.collected:
            return value
    raise NotKnownError("a call of AsyncCollectiveDone")


@rule("collective-broadcast", "ragged-all-to-all")
def _others(context: Context) -> Values:
    if context.translation.devices != 1:
        raise NotKnownError(f"{context.opcode} between {context.translation.devices} devices")
    return _together(context.operands)


@rule("partition-id", "replica-id")
def _which(context: Context) -> Values:
    if context.translation.devices == 1 or context.opcode == "replica-id":  # there is one replica
        return context.writer.full(0, context.result)
    return context.writer.manual("partition_id", context.result)


@rule("send", "recv", "infeed", "outfeed")
def _outside(context: Context) -> Values:
    raise NotKnownError(f"{context.opcode}, which speaks with the host")


def _together(values: Iterable[Values]) -> Values:
    """One array, or a tuple of several, as a collective returns what it takes."""
    made = tuple(values)
    return made[0] if len(made) == 1 else made


def _pairs(context: Context) -> list[tuple[Value, Shape]]:
    """The arrays that a collective takes, each with the shape of what it makes of it."""
    return list(zip(flat_values(tuple(context.operands)), context.results, strict=True))


def _groups(context: Context) -> str:
    groups = groups_of(context.instruction, context.translation.devices)
    return f"replica_groups = {table(groups, len(groups[0]))}"


def _ids(context: Context) -> str:
    is_global = context.attributes.get("use_global_device_ids") == "true"
    return ", use_global_device_ids" if is_global else ""


def _channel(context: Context) -> str:
    """With a channel devices are counted as partitions; without as replicas, of which is one.

    Each operation has its own: what the target runs once may be written here several times.
    """
    if "channel_id" not in context.attributes:
        return ""
    number = next(context.writer.names) + 1
    return f", channel_handle = #stablehlo.channel_handle<handle = {number}, type = 1>"


# --- Which devices an operation joins, in all the ways that HLO writes it -------------------------


_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")


def groups_of(instruction: Instruction, devices: int) -> list[list[int]]:
    """The groups of devices that an operation joins; all in one where none are written.

    Raises:
        ValueError: they are written in a way that is not known.
    """
    text = instruction.attributes.get("replica_groups", "{}")
    if "device_ids" in instruction.attributes:  # after a mesh and a comma, which ends an attribute
        text += f", device_ids={instruction.attributes['device_ids']}"
    if re.fullmatch(r"[{}\d,\s]*", text):
        rows = re.findall(r"\{([\d,\s]+)\}", text)
        found = [[int(number) for number in row.split(",")] for row in rows]
        return found or [list(range(devices))]
    if iota := _IOTA.fullmatch(text):
        return _of_iota(*(_numbers(each) for each in iota.groups()))
    try:
        if (read := parse_mesh(text)) and re.fullmatch(r"\{[^{}]*\}", read[1]):
            mesh, joined = read
            return _rows(mesh.ordered(mesh.parts(joined[1:-1])))
    except ValueError as error:
        raise ValueError(f"groups of devices written as {text}: {error}") from error
    raise ValueError(f"groups of devices written as {text}")


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []


def _of_iota(shape: list[int], given: list[int], axes: list[int]) -> list[list[int]]:
    """``[4,2]<=[2,4]T(1,0)``: all numbers, in a shape, turned, in another shape."""
    numbers = np.arange(math.prod(given)).reshape(given)
    turned = numbers.transpose(axes) if axes else numbers
    return _rows(turned.reshape(shape))


def _rows(numbers: np.ndarray) -> list[list[int]]:
    return [[int(number) for number in row] for row in numbers]
