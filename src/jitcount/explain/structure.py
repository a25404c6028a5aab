"""What differs in the structure of the arguments: keys, lengths, containers, None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from jitcount.explain import advice
from jitcount.explain import cause as kinds
from jitcount.explain.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jitcount.observe.program import Facet
    from jitcount.observe.trees import Node

    Values = Mapping[Facet, Any]

NOT_GIVEN = "not given"


class Restructured:
    """The places at which the structure of the arguments changed."""

    def __init__(self, before: Values, after: Values) -> None:
        self.places: list[str] = []
        self.sides = old, new = _structure(before), _structure(after)
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
            yield _restructured(place, old, new)


def _structure(values: Values) -> dict[str, object]:
    """For each place a node, "static" or the text of an array."""
    found: dict[str, object] = {}
    for (kind, place), value in values.items():
        if kind == "node":
            found[place] = value
        elif kind == "shape":
            found[place] = "array"
        elif kind == "static":
            found[place] = "static"
    return found


def _restructured(place: str, old: object, new: object) -> Cause:
    texts = [_structure_text(side) for side in (old, new)]
    if isinstance(old, tuple) and isinstance(new, tuple) and old[0] == new[0] != "None":
        sentence, hint = _same_container(place, cast("Node", old), cast("Node", new))
    elif old is None:
        sentence = f"{place} was given, and was not before: {texts[1]}"
        hint = advice.optional(place)
    elif new is None:
        sentence = f"{place} was not given, and was before: {texts[0]}"
        hint = advice.optional(place)
    else:
        sentence = f"{place} went from {texts[0]} to {texts[1]}"
        is_none = "None" in texts
        hint = advice.none_or_array(place) if is_none else advice.container(place, texts[0])
    return Cause(kinds.PYTREE, place, texts[0], texts[1], sentence, hint)


def _same_container(place: str, old: Node, new: Node) -> tuple[str, str]:
    gained = [key for key in new[1] if key not in old[1]]
    lost = [key for key in old[1] if key not in new[1]]
    if not gained and not lost:
        return (
            f"the static part of {place} changed: {old[2]} became {new[2]}",
            advice.static_field(place, new[0]),
        )
    if new[0] in {"list", "tuple"}:
        sentence = f"{place} went from a {new[0]} of {len(old[1])} to one of {len(new[1])}"
        return sentence, advice.length(place)
    parts = [
        f"{verb} {', '.join(keys)}" for verb, keys in (("gained", gained), ("lost", lost)) if keys
    ]
    return f"{place} {' and '.join(parts)}", advice.keys(place, [*gained, *lost])


def _structure_text(side: object) -> str:
    if side is None:
        return NOT_GIVEN
    if isinstance(side, tuple):
        name, keys = side[0], side[1]
        if name == "None":
            return "None"
        if name in {"list", "tuple"}:
            return f"a {name} of {len(keys)}"
        return f"a {name} with {', '.join(keys)}" if keys else f"an empty {name}"
    return "an array" if side == "array" else "a static value"
