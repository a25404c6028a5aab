"""Calls of what a target's own libraries do: which are known, and by whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jitcount._emulate.translate import NotKnownError, rule
from jitcount._hlo.parser import flat

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Values, Writer
    from jitcount._hlo.parser import Instruction, Shapes

    Call = Callable[[Translation, Writer, Instruction, list[Any]], Values]

_CALLS: dict[str, Call] = {}


def call(*names: str) -> Callable[[Call], Call]:
    """Declare what a call stands for."""

    def declare(function: Call) -> Call:
        _CALLS.update(dict.fromkeys(names, function))
        return function

    return declare


@rule("custom-call")
def _custom_call(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    name = instruction.attributes["custom_call_target"].strip('"')
    known = _CALLS.get(name)
    if known is None:
        raise NotKnownError(f"a call of {name}")
    return known(translation, writer, instruction, operands)


def config(instruction: Instruction, name: str) -> dict[str, Any]:
    """What a library is told by a call, under a name of its own."""
    found = json.loads(instruction.attributes.get("backend_config", "{}"))
    found = found.get(name, found)
    return found if isinstance(found, dict) else {}


def beside(writer: Writer, made: Value, shapes: Shapes) -> Values:
    """A result as the call gives it: with the memory that the library was lent, if any."""
    if not isinstance(shapes, tuple):
        return made
    return made, *(writer.full(0, shape.of()) for shape in flat(shapes[1:]))
