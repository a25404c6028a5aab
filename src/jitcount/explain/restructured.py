"""What differs in the structure of the arguments: keys, lengths, containers, None."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from jitcount.explain.causes.structure import (
    NOT_GIVEN,
    Container,
    Keys,
    Length,
    Optional,
    StaticPart,
)
from jitcount.observe.trees import Node
from jitcount.observe.values import Leaf, Static

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jitcount.observe.program import Value

    Cause: TypeAlias = Keys | Length | StaticPart | Optional | Container

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
            yield _cause(place, old, new)


def _structure(values: Mapping[str, Value]) -> dict[str, _Shape]:
    return {
        place: value if isinstance(value, Node) else type(value)
        for place, value in values.items()
        if isinstance(value, Node | Leaf | Static)
    }


def _cause(place: str, old: _Shape, new: _Shape) -> Cause:
    texts = _text(old), _text(new)
    if old is None or new is None:
        return Optional(place, *texts)
    if not isinstance(old, Node) or not isinstance(new, Node) or old.type_name != new.type_name:
        return Container(place, *texts)
    gained = tuple(key for key in new.keys if key not in old.keys)
    lost = tuple(key for key in old.keys if key not in new.keys)
    if not gained and not lost:
        return StaticPart(place, *texts, new.type_name, (old.static, new.static))
    if new.type_name in {"list", "tuple"}:
        return Length(place, *texts, new.type_name, (len(old.keys), len(new.keys)))
    return Keys(place, *texts, gained, lost)


def _text(side: _Shape) -> str:
    if side is None:
        return NOT_GIVEN
    if not isinstance(side, Node):
        return "an array" if side is Leaf else "a static value"
    if side.type_name == "None":
        return "None"
    if side.type_name in {"list", "tuple"}:
        return f"a {side.type_name} of {len(side.keys)}"
    return f"a {side.type_name} with {', '.join(side.keys)}" if side.keys else _empty(side)


def _empty(node: Node) -> str:
    return f"an empty {node.type_name}"
