"""Many causes in few sentences.

What is one event to a reader is said once. A batch that is shorter in three arrays has three causes
and is one event. A function that was compiled for three hundred lengths has as many causes, and one
sentence says them all.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._explain.causes.arguments import StaticValue
from jitcount._explain.causes.arrays import Shape
from jitcount._explain.causes.cause import REDACTED, Kind, in_a_list
from jitcount._observe.call_site import argument_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount._explain.causes import Cause
    from jitcount._explain.compile import Compile

# So many values are written out; more are counted.
_MOST_VALUES = 4


# --- The causes of one compile --------------------------------------------------------------------


def events(causes: Iterable[Cause]) -> list[tuple[Cause, tuple[str, ...]]]:
    """The causes of a compile, each event once, with all the places at which it happened."""
    found: dict[Any, tuple[Cause, list[str]]] = {}
    for cause in causes:
        _, places = found.setdefault(_event(cause), (cause, []))
        if cause.where not in places:
            places.append(cause.where)
    return [(cause, tuple(places)) for cause, places in found.values()]


def _event(cause: Cause) -> Any:
    """What happened, whatever the place: equal for causes that are one event."""
    if (axis := one_axis(cause)) is not None:
        return Shape, *axis
    fields: dict[str, Any] = msgspec.structs.asdict(cause)
    del fields["where"]
    return type(cause), *fields.values()


def one_axis(cause: Cause) -> tuple[Any, ...] | None:
    """The axis that changed, its old and its new length; None unless an axis alone changed."""
    if not isinstance(cause, Shape) or len(cause.axes) != 1:
        return None
    (axis,) = cause.axes
    return axis, cause.old.shape[axis], cause.new.shape[axis]


def sentences(causes: Iterable[Cause]) -> list[str]:
    """Why a program was compiled, each event in brief; ``str(cause)`` says more."""
    return [_sentence(cause, places) for cause, places in events(causes)]


def with_codes(causes: Iterable[Cause]) -> list[str]:
    """The same sentences, each with the code of its kind: ``"axis 0 of x: 3 → 4 [JC101]"``."""
    return [f"{_sentence(cause, places)}{_code(cause)}" for cause, places in events(causes)]


def _code(cause: Cause) -> str:
    """The code of a cause, in brackets; a first call is nothing to look up."""
    return "" if cause.kind == Kind.FIRST_CALL else f" [{cause.kind.code}]"


def _sentence(cause: Cause, places: tuple[str, ...], between: str = ": ") -> str:
    if len(places) == 1:
        return cause.brief(between)
    if (axis := one_axis(cause)) is not None:
        return f"axis {axis[0]} of {_together(places, between + cause.changed[1])}"
    return cause.brief_at(places, between)


def in_a_line(causes: Iterable[Cause]) -> str:
    """Why a program was compiled, after a colon: ``axis 0 of x 3 → 4; y float32 → int32``."""
    return "; ".join(
        f"{_sentence(cause, places, ' ')}{_code(cause)}" for cause, places in events(causes)
    )


def advice_of(causes: Iterable[Cause]) -> list[str]:
    """What to do, once for each event; nothing where there is nothing to do."""
    found = (cause.advice_at(places) for cause, places in events(causes))
    return [advice for advice in found if advice]


def _together(places: tuple[str, ...], what: str) -> str:
    """Several places and what happened at them: ``batch: 32 → 7 (x, y, mask)``."""
    root, *others = {argument_in(place) for place in places}
    if others or len(places) == 1:
        return f"{_list(places)}{what}"
    return f"{root}{what} ({_list(tuple(_short(place, root) for place in places))})"


def _short(place: str, root: str) -> str:
    """A place without its argument: ``x`` for ``batch['x']``."""
    rest = place.removeprefix(root)
    key = re.fullmatch(r"\['([^']*)'\]|\.(\w+)", rest)
    return next(filter(None, key.groups())) if key else rest


def _list(places: Sequence[str]) -> str:
    return in_a_list(places, ", ")


# --- The causes of many compiles ------------------------------------------------------------------


def sentences_of_many(
    compiles: Sequence[Sequence[Cause]], *, counted: bool = True, coded: bool = False
) -> list[str]:
    """Why several programs of one function were compiled; most often first.

    An axis that took many lengths, a static argument that took many values, is said once.

    Args:
        compiles: the causes of each.
        counted: whether to say how often something happened.
        coded: whether to say the code of each kind.
    """
    if len(compiles) == 1:
        return with_codes(compiles[0]) if coded else sentences(compiles[0])
    said: Counter[tuple[str, str]] = Counter()
    taken: dict[tuple[str, str], list[Any]] = {}
    for causes in compiles:
        for cause, places in events(causes):
            name, values = _taken(cause, places)
            change = name, _code(cause) if coded else ""
            said[change] += 1
            taken.setdefault(change, []).extend(values)
    return [
        _said(change[0], count if counted else 1, list(dict.fromkeys(taken[change]))) + change[1]
        for change, count in said.most_common()
    ]


def _taken(cause: Cause, places: tuple[str, ...]) -> tuple[str, list[Any]]:
    """What took other values, and which; a sentence and no values if it cannot be summed up."""
    if (axis := one_axis(cause)) is not None:
        number, *lengths = axis
        return f"axis {number} of {_together(places, '')}", lengths
    if isinstance(cause, Shape) and cause.axes:
        return _list(places), [cause.before, cause.after]
    if isinstance(cause, StaticValue) and cause.after != REDACTED:
        return f"static argument {_list(places)}", [cause.before, cause.after]
    return _sentence(cause, places), []


def _said(name: str, count: int, values: list[Any]) -> str:
    if not values:
        return f"{name} ({count} times)" if count > 1 else name
    ordered = sorted(values) if all(isinstance(value, int) for value in values) else values
    if len(ordered) <= _MOST_VALUES:
        return f"{name}: {', '.join(map(str, ordered))}"
    return f"{name}: {ordered[0]} … {ordered[-1]}, {len(ordered)} of them"


def is_first(compiled: Compile) -> bool:
    """Whether a compile is a first call, and no recompile."""
    return all(cause.kind == Kind.FIRST_CALL for cause in compiled.causes)
