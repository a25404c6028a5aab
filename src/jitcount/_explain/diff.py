"""What differs between two programs of the same function, as causes, and how far apart they are.

`differences` goes from the function and what surrounds it to its arguments: how they are passed,
their structure, and what stands at the places that both programs have.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from jitcount._explain.causes.arguments import (
    CallConvention,
    NoEquality,
    Parameter,
    StaticField,
    StaticFunction,
    StaticObject,
    StaticValue,
)
from jitcount._explain.causes.arrays import NO_DEVICE, Dtype, OnDevice, Shape, Sharding, WeakType
from jitcount._explain.causes.cause import Kind, Precedence
from jitcount._explain.causes.functions import JitOption, NewFunction, Setting, Transform
from jitcount._explain.causes.structure import (
    NOT_GIVEN,
    Container,
    Keys,
    Length,
    Optional,
    StaticPart,
)
from jitcount._jax.settings import NAMED_AXES
from jitcount._observe.call_site import argument_in
from jitcount._observe.functions import Function
from jitcount._observe.program import Parameter as ParameterValue
from jitcount._observe.statics import Static
from jitcount._observe.trees import Node
from jitcount._observe.values import Leaf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jitcount._explain.causes import AnyCause
    from jitcount._observe.program import Program, Value
    from jitcount._observe.statics import Part
    from jitcount._observe.surroundings import Options, Settings, TokenisedDict
    from jitcount._observe.values import Placement

# What stands at a place, as far as structure goes: a node, or the type of what is no node.
_Structure: TypeAlias = Node | type | None


def differences(earlier: Program, later: Program) -> list[AnyCause]:
    """The causes that tell two programs apart: all that differs; empty for identical programs."""
    found: list[AnyCause] = []
    if earlier.function != later.function and earlier.function and later.function:
        found.append(_new_function(earlier.function, later.function))
    if (transformed := _transformed(earlier, later)) is not None:
        found.append(transformed)
    found += _options(earlier.options, later.options)
    found += _settings(earlier.settings, later.settings)
    if not any(cause.where in {"static_argnums", "static_argnames"} for cause in found):
        arguments = _arguments(earlier, later)
        # Mapped over another argument, arrays have other ranks: that is one change, not several.
        found += [c for c in arguments if not (transformed and isinstance(c, Shape) and not c.axes)]
    if not found:
        found += _parameters(earlier, later)
    if not found and earlier.settings != later.settings:
        found.append(Transform(later.name, *_surroundings(earlier, later)))
    return found


def distance(found: list[AnyCause], earlier: Program, later: Program) -> tuple[int, ...]:
    """How far apart two programs are, to be compared: the differences of each level, then of all.

    A static value that came with another structure counts like one that changed: that the structure
    hides it makes the other program no nearer.

    Args:
        found: what differs between the two.
        earlier: one program.
        later: the other.
    """
    levels = [cause.precedence for cause in found]
    if any(cause.kind == Kind.PYTREE for cause in found):
        levels += [Precedence.STATIC] * _statics_that_came_with_structure(earlier, later)
    return (*(levels.count(level) for level in _BEFORE_ARRAYS), len(found))


# To iterate over an enum is slow, and every compile is compared with several.
_BEFORE_ARRAYS = tuple(level for level in Precedence if level < Precedence.ARRAY)


# --- The function and its surroundings ------------------------------------------------------------


def _new_function(old: Function, new: Function, operation: str = "") -> NewFunction:
    """The cause that a line of source made another function object."""
    around = new.around if old.inner_token == new.inner_token else ""
    return NewFunction(
        where=new.place or new.name,
        before=f"object {old.token}",
        after=f"object {new.token}",
        name=new.name,
        form=new.kind,
        around=around,
        is_librarys=new.is_librarys and not around,
        operation=operation,
    )


def _transformed(earlier: Program, later: Program) -> Transform | None:
    """The cause that a transformation is done in another way; None where it is the same."""
    sides = [f"under {side.over or side.transform}" for side in (earlier, later)]
    if earlier.over != later.over:
        return Transform(later.name, *sides)
    if later.transform and earlier.function is None is later.function:  # without names
        counts = [sum(isinstance(v, Leaf) for v in side.values) for side in (earlier, later)]
        if counts[0] != counts[1]:
            pairs = zip(sides, counts, strict=True)
            return Transform(later.name, *(f"{side} of {_arrays(count)}" for side, count in pairs))
    return None


def _arrays(count: int) -> str:
    return "1 array" if count == 1 else f"{count} arrays"


def _surroundings(earlier: Program, later: Program) -> tuple[str, str]:
    """Where the two programs are called, as far as JAX's own settings tell."""
    axes = [side.settings.by_name.get(NAMED_AXES, "None") for side in (earlier, later)]
    if axes[0] != axes[1]:
        old, new = (
            "outside of named axes"
            if text == "None"
            else f"inside of vmap with named axes ({text[1:-1]})"
            for text in axes
        )
        return old, new
    outside, inside = "outside of grad and vmap", "inside of grad or vmap"
    is_inside = any(
        later.settings.by_name.get(name) != "None" and later.settings.by_name.get(name) != old
        for name, old in earlier.settings.by_name.items()
        if name in earlier.settings.of_jaxs_own
    )
    return (outside, inside) if is_inside else (inside, outside)


def _options(before: Options, after: Options) -> Iterator[JitOption]:
    pairs = list(_pairs(before, after))
    named = {name for name, _, _ in pairs}
    for name, old, new in pairs:
        if name.endswith("_argnames") and name.replace("names", "nums") in named:
            continue  # JAX works out the names from the numbers
        yield JitOption(name, old, new)


def _settings(before: Settings, after: Settings) -> Iterator[Setting]:
    blocks = before.set_for_a_block | after.set_for_a_block
    own = before.of_jaxs_own & after.of_jaxs_own
    for name, old, new in _pairs(before, after):
        if name not in own:
            yield Setting(name, old, new, name in blocks, name.upper() in os.environ)


def _pairs(before: TokenisedDict, after: TokenisedDict) -> Iterator[tuple[str, str, str]]:
    """The name, the old and the new text of each option or setting that differs."""
    if before == after:
        return
    for name, text in after.by_name.items():
        if name in before.by_name and before.tokens[name] != after.tokens[name]:
            yield name, before.by_name[name], text


# --- The arguments --------------------------------------------------------------------------------


def _arguments(earlier: Program, later: Program) -> Iterator[AnyCause]:
    """What differs in the arguments: how they are passed, their structure, their values."""
    if earlier.transform and earlier.function is None and earlier.places != later.places:
        return
    before, after = earlier.by_place, later.by_place
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
                yield from _static(place, old, new)


def _conventions(earlier: Program, later: Program) -> Iterator[CallConvention]:
    old, new = set(earlier.keywords), set(later.keywords)
    there = set(map(argument_in, earlier.places)) & set(map(argument_in, later.places))
    for name in sorted((old ^ new) & there):
        yield CallConvention(name, by_keyword=name in new)


def _leaf(place: str, old: Leaf, new: Leaf) -> Iterator[AnyCause]:
    if old.shape != new.shape:
        yield Shape(place, old.type, new.type)
    if old.dtype != new.dtype:
        yield Dtype(place, old.dtype, new.dtype, is_scalar=not (old.shape or new.shape))
    elif old.is_weak != new.is_weak and old.shape == new.shape:
        yield WeakType(place, new.dtype, new.is_weak, is_scalar=not new.shape)
    if old.placement != new.placement:
        yield _moved(place, old.placement, new.placement)


def _moved(place: str, old: Placement | None, new: Placement | None) -> OnDevice | Sharding:
    before, after = (NO_DEVICE if side is None else side.text for side in (old, new))
    if any(side is not None and side.is_sharded for side in (old, new)):
        return Sharding(place, before, after)
    return OnDevice(place, before, after)


def _static(place: str, old: Static, new: Static) -> Iterator[AnyCause]:
    """What differs in a static argument: a field of it, where one can be named."""
    is_same_type = old.type_name == new.type_name
    if is_same_type and new.form == "object":
        yield NoEquality(place, old.text, new.text, new.type_name)
    elif is_same_type and (changed := _changed_parts(old, new)):
        for before, after in changed:
            where = place + after.path
            if after.form == "function":
                yield StaticFunction(where, before.text, after.text)
            else:
                yield StaticValue(where, before.text, after.text, after.form == "number")
    elif new.form == "function":
        yield StaticFunction(place, old.text, new.text)
    else:
        yield StaticValue(place, old.text, new.text, new.form == old.form == "number")


def _parameters(earlier: Program, later: Program) -> Iterator[Parameter | NewFunction]:
    """What differs in the parameters of an operation outside of jit, which are compiled in."""
    before = earlier.by_place
    for place, new in later.by_place.items():
        old = before.get(place)
        if not (isinstance(old, ParameterValue) and isinstance(new, ParameterValue)) or old == new:
            continue
        if isinstance(old.value, Function) and isinstance(new.value, Function):  # a loop's body
            yield _new_function(old.value, new.value, later.name)
        elif isinstance(old.value, Static) and isinstance(new.value, Static):
            yield Parameter(place, old.value.text, new.value.text)


# --- The structure of the arguments: keys, lengths, containers, None ------------------------------


class Restructured:
    """The places at which the structure of the arguments changed."""

    def __init__(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> None:
        self.places: list[str] = []
        self.sides = old, new = _structure(before), _structure(after)
        if old == new:
            return
        for place in (*new, *(place for place in old if place not in new)):
            if old.get(place) != new.get(place) and not self.covers(place):
                self.places.append(place)

    def covers(self, place: str) -> bool:
        """Whether a place is one that changed, or came or went with one that changed."""
        if place in self.places:
            return True
        if all(place in side for side in self.sides):
            return False  # it can have a change of its own
        return any(place.startswith((f"{changed}[", f"{changed}.")) for changed in self.places)

    def causes(self) -> Iterator[AnyCause]:
        """What changed at each of the places."""
        for place in self.places:
            old, new = (side.get(place) for side in self.sides)
            yield from _restructured(place, old, new)


def _structure(values: Mapping[str, Value]) -> dict[str, _Structure]:
    return {
        place: value if isinstance(value, Node) else type(value)
        for place, value in values.items()
        if isinstance(value, Node | Leaf | Static)
    }


def _restructured(place: str, old: _Structure, new: _Structure) -> Iterator[AnyCause]:
    texts = _structure_text(old), _structure_text(new)
    if old is None or new is None:
        yield Optional(place, *texts)
        return
    if not isinstance(old, Node) or not isinstance(new, Node) or old.type_name != new.type_name:
        yield Container(place, *texts)
        return
    gained = tuple(key for key in new.keys if key not in old.keys)
    lost = tuple(key for key in old.keys if key not in new.keys)
    if (gained or lost) and new.type_name in {"list", "tuple"}:
        yield Length(place, *texts, new.type_name, (len(old.keys), len(new.keys)))
    elif gained or lost:
        yield Keys(place, *texts, gained, lost)
    if old.static != new.static:
        yield from _static_fields(place, old.static, new)


def _static_fields(place: str, old: Static | None, node: Node) -> Iterator[AnyCause]:
    """What differs in what a node keeps beside its children, field by field where it has some."""
    new = node.static
    by_field: dict[str, list[tuple[Part, Part]]] = {}
    for before, after in _changed_parts(old, new) if old and new else ():
        by_field.setdefault(_first_field(after.path), []).append((before, after))
    for name, changed in by_field.items():
        if len(changed) > 1 and {after.form for _, after in changed} <= {"function", "object"}:
            yield StaticObject(place + name, "an object", "another one", node.type_name)
            continue
        for before, after in changed:
            if before.text == after.text or after.form == "object":
                yield StaticObject(place + after.path, before.text, after.text, node.type_name)
            else:
                yield StaticField(place + after.path, before.text, after.text, node.type_name)
    if not by_field:
        before_text, after_text = (side.text if side else "nothing" for side in (old, new))
        yield StaticPart(place, before_text, after_text, node.type_name)


def _first_field(path: str) -> str:
    """The field that a path begins with: ``.tx`` of ``.tx.update``."""
    ends = [end for end in (path.find(".", 1), path.find("[", 1)) if end > 0]
    return path[: min(ends, default=len(path))]


def _changed_parts(old: Static, new: Static) -> list[tuple[Part, Part]]:
    """The fields that two static values both have, and that differ."""
    before = {part.path: part for part in old.parts}
    pairs = [(before[part.path], part) for part in new.parts if part.path in before]
    return [(one, other) for one, other in pairs if one.token != other.token]


def _statics_that_came_with_structure(earlier: Program, later: Program) -> int:
    """How many static values stand where the earlier program has none, or one of another node."""
    before, after = earlier.by_place, later.by_place.items()
    return sum(_holder(value) not in {None, _holder(before.get(place))} for place, value in after)


def _holder(value: Value | None) -> str | None:
    """The type of the node that holds a static value; "" for the place itself, None for none."""
    if isinstance(value, Node) and value.static is not None:
        return value.type_name
    return "" if isinstance(value, Static) else None


def _structure_text(side: _Structure) -> str:
    if side is None:
        return NOT_GIVEN
    if not isinstance(side, Node):
        return "an array" if side is Leaf else "a static value"
    if side.type_name == "None":
        return "None"
    if side.type_name in {"list", "tuple"}:
        return f"a {side.type_name} of {len(side.keys)}"
    if not side.keys:
        return f"an empty {side.type_name}"
    return f"a {side.type_name} with {', '.join(side.keys)}"
