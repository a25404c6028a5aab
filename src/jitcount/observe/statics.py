"""Values that are compiled in, as descriptions: what they are, and what tells them apart.

JAX tells static values apart by `==` and their type. A description keeps none of the user's objects
alive, and calls no more of the user's code than JAX does itself: their ``__hash__`` and ``__eq__``.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from jitcount.observe.functions import next_token, token
from jitcount.observe.texts import (
    DEEPEST,
    MOST_FIELDS,
    PLAIN,
    fields_of,
    is_function,
    text_of,
    type_name,
)
from jitcount.observe.values import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    Fields = tuple[tuple[str, int], ...]

_MOST_KEYS = 100_000
_LONGEST_KEPT = 1000

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


class Part(msgspec.Struct, frozen=True, gc=False):
    """A field of a static value, or a field of a field."""

    path: str
    """As it is written behind the value's name: ``.optimizer.rate``."""

    token: int
    text: str
    form: str


class Static(msgspec.Struct, frozen=True, gc=False):
    """A value that is compiled in; equal ones are those that JAX takes as equal."""

    token: int
    text: str
    type_name: str
    form: str
    """"number", "function", "value", or "object": one that is known by its identity alone."""

    parts: tuple[Part, ...] = ()
    """What it is made of, as far as that can be looked into."""

    def __hash__(self) -> int:
        return self.token

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.token == other.token


def describe_static(value: Any) -> Static:
    """Describe a value that is compiled in.

    >>> describe_static(3).text, describe_static((1, "a")).text, describe_static(len).form
    ('3', "(1, 'a')", 'function')
    """
    left = itertools.repeat(None, MOST_FIELDS)
    parts = tuple(_parts(value, "", DEEPEST, left))
    number = equal_token(value, parts)
    return Static(number, text_of(value), type_name(value), _form(value), parts)


def _form(value: Any) -> str:
    if isinstance(value, _NUMBERS):
        return "number"
    if is_function(value):
        return "function"
    return "object" if _is_known_by_identity(value) else "value"


def _is_known_by_identity(value: Any) -> bool:
    kind: Any = type(value)
    return kind.__eq__ is object.__eq__


def _parts(value: Any, path: str, depth: int, left: Iterator[None]) -> Iterator[Part]:
    """The fields of an object, and theirs, as many as are `left` to be told."""
    fields = None if not depth or _is_plain_tuple(value) else fields_of(value)
    if fields is None:
        if path and next(left, 0) is None:
            yield Part(path, _token_of_part(value), text_of(value), _form(value))
        return
    for key, inner in fields:
        yield from _parts(inner, path + key, depth - 1, left)


# Numbers for values that can be kept as they are, and for what is left of others.
_keys: dict[Any, int] = {}
# By type and hash, objects that are still there, each with its number and its fields.
_alive: dict[tuple[type, int], list[tuple[weakref.ref[Any], int, Fields]]] = {}


def equal_token(value: Any, parts: tuple[Part, ...] = ()) -> int:
    """A number that two values share where JAX takes them as equal.

    >>> equal_token(-1) == equal_token(-1), equal_token(-1) == equal_token(-2)
    (True, False)
    """
    if isinstance(value, PLAIN) or _is_plain_tuple(value):
        return _number_of(_kept(value))
    if is_function(value) or isinstance(value, ARRAYS) or _is_known_by_identity(value):
        return token(value)
    try:
        return _token_among_equals(value, _all_fields(parts))
    except Exception:  # noqa: BLE001 (it has no hash, or the user's own code failed)
        return _number_of((type(value), _all_fields(parts) or text_of(value)))


def _token_among_equals(value: Any, fields: Fields) -> int:
    """The number of an equal object that is still there, or that was, as far as its fields tell."""
    bucket = _alive.setdefault((type(value), hash(value)), [])
    bucket[:] = [seen for seen in bucket if seen[0]() is not None]
    for reference, number, _ in bucket:
        other = reference()
        if other is value or other == value:
            return number
    is_new = not fields or any(fields == others for _, _, others in bucket)
    number = next_token() if is_new else _number_of((type(value), fields))
    try:
        bucket.append((weakref.ref(value), number, fields))
    except TypeError:  # it cannot be referred to weakly: its fields are all there is to tell it by
        return _number_of((type(value), hash(value), fields))
    return number


def _all_fields(parts: tuple[Part, ...]) -> Fields:
    """The fields of an object, where they are all known."""
    return tuple((part.path, part.token) for part in parts) if len(parts) < MOST_FIELDS else ()


def _is_plain_tuple(value: Any) -> bool:
    if type(value) not in {tuple, frozenset} or len(value) > MOST_FIELDS:
        return False
    return all(isinstance(inner, PLAIN) or _is_plain_tuple(inner) for inner in value)


def _token_of_part(value: Any) -> int:
    """The same for what a value holds, of which `==` alone decides: ``(1,) == (True,)``."""
    if isinstance(value, PLAIN) or _is_plain_tuple(value):
        return _number_of(("part", _content(value)))
    return equal_token(value)


def _kept(value: Any) -> Any:
    """A key that is equal where the values and their types are, and keeps little."""
    return type(value), _content(value)


def _content(value: Any) -> Any:
    """What is equal where the values are: 0.0 and -0.0, but not two that are not a number."""
    if isinstance(value, tuple):
        return tuple(map(_content, value))
    if isinstance(value, frozenset):
        return frozenset(map(_content, value))
    if isinstance(value, str | bytes) and len(value) > _LONGEST_KEPT:
        return type(value), len(value), hash(value)
    return value


def _number_of(key: Any) -> int:
    number = _keys.get(key)
    if number is None:
        if len(_keys) >= _MOST_KEYS:
            return -abs(hash(key)) - 2
        number = _keys[key] = next_token()
    return number
