"""What differs between two programs of the same function, as causes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jitcount.explain.causes.arguments import (
    CallConvention,
    NoEquality,
    Parameter,
    StaticFunction,
    StaticValue,
)
from jitcount.explain.causes.arrays import NO_DEVICE, Dtype, OnDevice, Shape, Sharding, WeakType
from jitcount.explain.causes.cause import Kind
from jitcount.explain.causes.functions import JitOption, NewFunction, Setting
from jitcount.explain.restructured import Restructured
from jitcount.observe.functions import Function
from jitcount.observe.program import Parameter as ParameterValue
from jitcount.observe.values import Leaf, Static

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jitcount.explain.causes import AnyCause
    from jitcount.observe.program import Program, Value
    from jitcount.observe.surroundings import Options, Settings, Texts
    from jitcount.observe.values import Placement

    Values = Mapping[str, Value]


def differences(earlier: Program, later: Program) -> list[AnyCause]:
    """All that differs, and only that; empty for identical programs."""
    found: list[AnyCause] = []
    if earlier.function != later.function and earlier.function and later.function:
        found.append(_new_function(earlier.function, later.function))
    found += _options(earlier.options, later.options)
    found += _settings(earlier.settings, later.settings)
    if not any(cause.where in {"static_argnums", "static_argnames"} for cause in found):
        found += _arguments(earlier, later)
    if not found:
        found += _parameters(earlier, later)
    return found


# What reaches farthest, first; arrays come last. `history` weighs in the same order.
_REACH = (
    (Kind.NEW_FUNCTION,),
    (Kind.STATIC_ARGUMENT,),
    (Kind.JIT_OPTIONS,),
    (Kind.CONFIG,),
    (Kind.PYTREE, Kind.CALL_CONVENTION),
)


def reach(found: list[AnyCause]) -> tuple[int, ...]:
    """How much differs, to be compared: by what reaches farthest, then by how much it is."""
    kinds = [cause.kind for cause in found]
    return (*(sum(map(kinds.count, alike)) for alike in _REACH), len(found))


def _arguments(earlier: Program, later: Program) -> Iterator[AnyCause]:
    before = dict(zip(earlier.places, earlier.values, strict=True))
    after = dict(zip(later.places, later.values, strict=True))
    if earlier.keywords != later.keywords:
        yield from _conventions(earlier, later)
    restructured = Restructured(before, after)
    yield from restructured.causes()
    for place, new in after.items():
        old = before.get(place)
        if old != new and not restructured.covers(place):
            if isinstance(old, Leaf) and isinstance(new, Leaf):
                yield from _leaf(place, old, new)
            elif isinstance(old, Static) and isinstance(new, Static):
                yield _static(place, old, new)


# --- The function and its surroundings ------------------------------------------------------------


def _new_function(old: Function, new: Function) -> NewFunction:
    """A line of source that made another function object."""
    place = new.place or new.name
    objects = f"object {old.token}", f"object {new.token}"
    return NewFunction(place, *objects, new.name, new.kind)


def _options(before: Options, after: Options) -> Iterator[JitOption]:
    pairs = list(_pairs(before, after))
    named = {name for name, _, _ in pairs}
    for name, old, new in pairs:
        if name.endswith("_argnames") and name.replace("names", "nums") in named:
            continue  # JAX works out the names from the numbers
        yield JitOption(name, old, new)


def _settings(before: Settings, after: Settings) -> Iterator[Setting]:
    blocks = before.set_for_a_block | after.set_for_a_block
    for name, old, new in _pairs(before, after):
        yield Setting(name, old, new, name in blocks, name.upper() in os.environ)


def _pairs(before: Texts, after: Texts) -> Iterator[tuple[str, str, str]]:
    """Names, old and new texts of what differs."""
    if before == after:
        return
    for name, text in after.by_name.items():
        old = before.by_name.get(name, text)
        if old != text:
            yield name, old, text


# --- The arguments --------------------------------------------------------------------------------


def _conventions(earlier: Program, later: Program) -> Iterator[CallConvention]:
    old, new = set(earlier.keywords), set(later.keywords)
    there = set(map(_argument, earlier.places)) & set(map(_argument, later.places))
    for name in sorted((old ^ new) & there):
        yield CallConvention(name, by_keyword=name in new)


def _argument(place: str) -> str:
    """The argument that a place is in: ``params`` of ``params['a'].b``."""
    for index, character in enumerate(place):
        if character in "[.":
            return place[:index]
    return place


def _leaf(place: str, old: Leaf, new: Leaf) -> Iterator[AnyCause]:
    if old.shape != new.shape:
        yield Shape(place, old.type, new.type)
    if old.dtype != new.dtype:
        yield Dtype(place, old.dtype, new.dtype)
    elif old.is_weak != new.is_weak and old.shape == new.shape:
        yield WeakType(place, new.dtype, new.is_weak, is_scalar=not new.shape)
    if old.placement != new.placement:
        yield _moved(place, old.placement, new.placement)


def _moved(place: str, old: Placement | None, new: Placement | None) -> OnDevice | Sharding:
    before, after = (NO_DEVICE if side is None else side.text for side in (old, new))
    if any(side is not None and side.is_sharded for side in (old, new)):
        return Sharding(place, before, after)
    return OnDevice(place, before, after)


def _static(place: str, old: Static, new: Static) -> StaticValue | StaticFunction | NoEquality:
    if new.compares_by_identity and old.type_name == new.type_name:
        return NoEquality(place, old.text, new.text, new.type_name)
    if new.is_function:
        return StaticFunction(place, old.text, new.text)
    return StaticValue(place, old.text, new.text)


def _parameters(earlier: Program, later: Program) -> Iterator[Parameter | NewFunction]:
    """Of an operation outside of jit, what is compiled in: told where its operands are the same."""
    before = dict(zip(earlier.places, earlier.values, strict=True))
    for place, new in zip(later.places, later.values, strict=True):
        old = before.get(place)
        if not (isinstance(old, ParameterValue) and isinstance(new, ParameterValue)) or old == new:
            continue
        if isinstance(old.value, Function) and isinstance(new.value, Function):  # a loop's body
            yield _new_function(old.value, new.value)
        elif isinstance(old.value, Static) and isinstance(new.value, Static):
            yield Parameter(place, old.value.text, new.value.text)
