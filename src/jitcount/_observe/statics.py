"""Values that are compiled in, as descriptions: what they are, and what tells them apart.

JAX tells static values apart by `==` and their type. A description keeps none of the user's objects
alive, and runs none of the user's code.
"""

from __future__ import annotations

import enum
import itertools
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from jitcount._jax.origin import is_module_of_jax
from jitcount._observe.functions import next_token, token
from jitcount._observe.safe_inspect import (
    in_type,
    instance_dict,
    is_a,
    module_of_type,
    owner_of,
    type_name,
)
from jitcount._observe.texts import (
    DEEPEST,
    MOST_FIELDS,
    PLAIN,
    fields_of,
    is_function,
    plain,
    text_of,
)
from jitcount._observe.values import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_KEYS = 100_000
_LONGEST_KEPT = 1000

# Of so many fields, so deep, objects are compared; beyond that, each is like itself only.
_MOST_COMPARED = 10_000
_DEEPEST_COMPARED = 32

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)

# Packages, beside JAX's, whose own ``__eq__`` and ``__hash__`` are quick, and raise nothing.
_KNOWN = frozenset({"builtins", "numpy", "ml_dtypes", *sys.stdlib_module_names})


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
    return Static(equal_token(value), text_of(value), type_name(value), _form(value), parts)


def _form(value: Any) -> str:
    if is_a(value, *_NUMBERS):
        return "number"
    if is_function(value):
        return "function"
    return "object" if _is_known_by_identity(value) else "value"


def _is_known_by_identity(value: Any) -> bool:
    return owner_of(value, "__eq__") is object


def _parts(value: Any, path: str, depth: int, left: Iterator[None]) -> Iterator[Part]:
    """The fields of an object, and theirs, as many as are `left` to be told."""
    fields = None if not depth or _is_plain_tuple(value) else fields_of(value)
    if fields is None:
        if path and next(left, 0) is None:
            yield Part(path, _token_of_part(value), text_of(value), _form(value))
        return
    for key, inner in fields:
        yield from _parts(inner, path + key, depth - 1, left)


# A cache of tokens, by value: at most `_MOST_KEYS`, none of which holds more than `_LONGEST_KEPT`
# bytes of a text.
_keys: dict[Any, int] = {}
# Tokens of objects that are alive, by type and hash; an entry goes with its object.
_alive: dict[tuple[int, int], list[tuple[weakref.ref[Any], int]]] = {}


def equal_token(value: Any, depth: int = _DEEPEST_COMPARED) -> int:  # noqa: PLR0911 (a kind each)
    """A number that two values share where JAX takes them as equal.

    JAX asks their ``__eq__``. That is the user's code, and is not run again here: objects are equal
    whose fields are, of those that their ``__eq__`` speaks of.

    >>> equal_token(-1) == equal_token(-1), equal_token(-1) == equal_token(-2)
    (True, False)
    """
    if is_a(value, *PLAIN) or _is_plain_tuple(value):
        return _number_of((token(type(value)), _content(value)))
    if is_function(value) or is_a(value, *ARRAYS) or _is_known_by_identity(value) or not depth:
        return token(value)
    if is_a(value, set, frozenset):
        base = set if is_a(value, set) else frozenset
        inside = frozenset(_token_of_part(each, depth - 1) for each in base.__iter__(value))
        return _number_of((token(type(value)), inside))
    if _is_compared_by_others(value):
        try:
            return _token_among_equals(value)
        except Exception:  # noqa: BLE001 (it has no hash)
            return _number_of((token(type(value)), text_of(value)))
    fields = _compared(value, fields_of(value, _MOST_COMPARED))
    if fields is None:
        return token(value)
    tokens = tuple((key, _token_of_part(inner, depth - 1)) for key, inner in fields)
    kept = tokens if len(tokens) <= MOST_FIELDS else (len(tokens), hash(tokens))
    return _number_of((token(type(value)), kept))


def _is_compared_by_others(value: Any) -> bool:
    """Whether neither ``__eq__`` nor ``__hash__`` is of a class in Python, but for known ones."""
    if is_a(value, dict, list, tuple):  # these ask what they hold
        return False
    return all(
        type(in_type(value, name)) is types.WrapperDescriptorType
        or is_module_of_jax(module := module_of_type(owner_of(value, name)))
        or module.partition(".")[0] in _KNOWN
        for name in ("__eq__", "__hash__")
    )


def _compared(value: Any, fields: list[tuple[str, Any]] | None) -> list[tuple[str, Any]] | None:
    """The fields of an object that its ``__eq__`` mentions, or all; None where identity decides."""
    compare = in_type(value, "__eq__")
    if fields is None or len(fields) >= _MOST_COMPARED:
        return None
    if type(compare) is not types.FunctionType:
        return fields
    names = _names_in(compare.__code__)
    for name in tuple(names):  # a method or property that it calls, and what that speaks of
        called = in_type(value, name)
        called = called.fget if type(called) is property else called
        if type(called) is types.FunctionType:
            names |= _names_in(called.__code__)
    spoken_of = [(key, inner) for key, inner in fields if key.lstrip(".") in names]
    if not spoken_of and not names:  # return self is other
        return None
    return spoken_of or fields


def _names_in(code: types.CodeType) -> set[str]:
    inner = (const for const in code.co_consts if type(const) is types.CodeType)
    return set(code.co_names).union(*map(_names_in, inner))


def _token_among_equals(value: Any) -> int:
    """The number of an equal object that is still there, or else what its hash tells."""
    hashed = hash(value)
    bucket = _alive.setdefault((token(type(value)), hashed), [])
    bucket[:] = [seen for seen in bucket if seen[0]() is not None]
    for reference, number in bucket:
        other = reference()
        if other is value or other == value:
            return number
    parts = tuple(_parts(value, "", DEEPEST, itertools.repeat(None, MOST_FIELDS)))
    fields = tuple((part.path, part.token) for part in parts)
    key = (token(type(value)), hashed, fields)
    number = next_token() if bucket else _number_of(key)
    try:
        bucket.append((weakref.ref(value), number))
    except TypeError:  # it cannot be referred to weakly: its hash and fields are all there is
        return _number_of(key)
    return number


def _is_plain_tuple(value: Any) -> bool:
    if type(value) is not tuple and type(value) is not frozenset:
        return False
    if len(value) > MOST_FIELDS:
        return False
    return all(is_a(inner, *PLAIN) or _is_plain_tuple(inner) for inner in value)


def _token_of_part(value: Any, depth: int = _DEEPEST_COMPARED) -> int:
    """The token of a part of a value, which `==` alone compares: ``(1,) == (True,)``."""
    if is_a(value, *PLAIN) or _is_plain_tuple(value):
        return _number_of(("part", _content(value)))
    return equal_token(value, depth)


def _content(value: Any) -> Any:
    """What is equal where the values are: 0.0 and -0.0, but not two that are not a number."""
    if type(value) is tuple:
        return tuple(map(_content, value))
    if type(value) is frozenset:
        return frozenset(map(_content, value))
    content = plain(value)
    if type(content) in {str, bytes} and len(content) > _LONGEST_KEPT:
        return token(type(content)), len(content), hash(content)
    if is_a(content, enum.Enum):
        return token(type(content)), instance_dict(content).get("_name_")
    return content


def _number_of(key: Any) -> int:
    number = _keys.get(key)
    if number is None:
        if len(_keys) >= _MOST_KEYS:
            return -abs(hash(key)) - 2
        number = _keys[key] = next_token()
    return number
