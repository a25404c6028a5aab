"""What differs in the structure of the arguments: keys, lengths, containers, None."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from jitcount.explain.causes.arguments import StaticField, StaticObject
from jitcount.explain.causes.structure import (
    NOT_GIVEN,
    Container,
    Keys,
    Length,
    Optional,
    StaticPart,
)
from jitcount.observe.statics import Static
from jitcount.observe.trees import Node
from jitcount.observe.values import Leaf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jitcount.observe.program import Program, Value
    from jitcount.observe.statics import Part

    Cause: TypeAlias = (
        Keys | Length | StaticPart | StaticField | StaticObject | Optional | Container
    )

# What stands at a place, as far as structure goes: a node, or the type of what is no node.
_Shape: TypeAlias = Node | type | None


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

    def causes(self) -> Iterator[Cause]:
        """A cause for each place."""
        for place in self.places:
            old, new = (side.get(place) for side in self.sides)
            yield from _causes(place, old, new)


def _structure(values: Mapping[str, Value]) -> dict[str, _Shape]:
    return {
        place: value if isinstance(value, Node) else type(value)
        for place, value in values.items()
        if isinstance(value, Node | Leaf | Static)
    }


def _causes(place: str, old: _Shape, new: _Shape) -> Iterator[Cause]:
    texts = _text(old), _text(new)
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


def _static_fields(place: str, old: Static | None, node: Node) -> Iterator[Cause]:
    """What differs in what a node keeps beside its children, field by field if that can be told."""
    new = node.static
    by_field: dict[str, list[tuple[Part, Part]]] = {}
    for before, after in changed_parts(old, new) if old and new else ():
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


def changed_parts(old: Static, new: Static) -> list[tuple[Part, Part]]:
    """The fields that two static values both have, and that differ."""
    before = {part.path: part for part in old.parts}
    pairs = [(before[part.path], part) for part in new.parts if part.path in before]
    return [(one, other) for one, other in pairs if one.token != other.token]


def came_with_structure(earlier: Program, later: Program) -> int:
    """How many static values stand where there was none, or one of another kind of node."""
    before, after = earlier.by_place, later.by_place.items()
    return sum(_holder(value) not in {None, _holder(before.get(place))} for place, value in after)


def _holder(value: Value | None) -> str | None:
    """What holds a static value: a node of a type, or the place itself."""
    if isinstance(value, Node) and value.static is not None:
        return value.type_name
    return "" if isinstance(value, Static) else None


def _text(side: _Shape) -> str:
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
