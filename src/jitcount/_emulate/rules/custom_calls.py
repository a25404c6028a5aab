"""Calls of a target's own libraries: which are known, and what they have in common."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jitcount._emulate.translate import NotKnownError, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._emulate.translate import Context, Rule
    from jitcount._emulate.writer import Value, Values

_CALLS: dict[str, Rule] = {}


def call(*names: str) -> Callable[[Rule], Rule]:
    """Declare a rule for custom calls of these names."""

    def declare(function: Rule) -> Rule:
        _CALLS.update(dict.fromkeys(names, function))
        return function

    return declare


@rule("custom-call")
def _custom_call(context: Context) -> Values:
    name = called_name(context)
    known = _CALLS.get(name)
    if known is None:
        raise NotKnownError(f"a call of {name}")
    return known(context)


def called_name(context: Context) -> str:
    """The name of what a custom call calls."""
    return context.attributes["custom_call_target"].strip('"')


def config(context: Context, name: str) -> dict[str, Any]:
    """The configuration of a library's call, which the library keeps under a name of its own."""
    found = json.loads(context.attributes.get("backend_config", "{}"))
    found = found.get(name, found)
    return found if isinstance(found, dict) else {}


def with_scratch(context: Context, made: Value) -> Values:
    """A call's result, with zeros for the scratch memory that the call returns too, if any."""
    if not isinstance(context.instruction.shapes, tuple):
        return made
    return made, *(context.writer.full(0, shape) for shape in context.results[1:])
