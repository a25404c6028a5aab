"""The arguments of a call, place by place: each with the name that it has in the function."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from jitcount._observe.functions import token
from jitcount._observe.safe_inspect import is_a, type_name
from jitcount._observe.statics import Static, describe_static
from jitcount._observe.trees import Node, walk
from jitcount._observe.values import ARRAYS, Leaf, describe_leaf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitcount._observe.wrappers import UserCall


def arguments_of(call: UserCall) -> dict[str, Leaf | Static | Node]:
    """All places of the arguments, and what a program depends on there."""
    found: dict[str, Leaf | Static | Node] = {}
    describe = _array_or_static if call.only_arrays_are_traced else describe_leaf
    for name, value, is_static in _arguments(call):
        if is_static:
            found[name] = describe_static(value)
        else:
            walk(value, name, found, describe)
    return found


def _array_or_static(leaf: Any) -> Leaf | Static:
    return describe_leaf(leaf) if is_a(leaf, *ARRAYS) else describe_static(leaf)


def _arguments(call: UserCall) -> Iterator[tuple[str, Any, bool]]:
    """Each argument with its name, and whether it is static."""
    names, rest = _positional_names(call)
    for index, value in enumerate(call.args):
        name = names[index] if index < len(names) else f"{rest}[{index - len(names)}]"
        yield name, value, index in call.static_argnums
    for name, value in sorted(call.kwargs.items()):
        yield name, value, name in call.static_argnames
    if call.only_arrays_are_traced and not inspect.isroutine(call.fun):
        yield type_name(call.fun), call.fun, False  # a module of equinox's is called


def _positional_names(call: UserCall) -> tuple[list[str], str]:
    number = token(call.fun)
    if number not in _names:
        if len(_names) > _MOST_NAMES:
            _names.clear()
        _names[number] = _names_in(call.signature)
    return _names[number]


# A cache of argument names, by a function's token.
_names: dict[int, tuple[list[str], str]] = {}
_MOST_NAMES = 10_000


def _names_in(signature: inspect.Signature | None) -> tuple[list[str], str]:
    if signature is None:
        return [], "args"
    parameters = signature.parameters.values()
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    names = [p.name for p in parameters if p.kind in positional]
    rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")
    return names, rest
