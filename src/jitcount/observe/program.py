"""What makes a program the one that it is: all that JAX's caches tell apart, as descriptions.

Two programs of one function differ in some of it, and that is why the second was compiled. A
description keeps no array and no object of the user's alive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from jitcount._jax import frames
from jitcount._jax.jaxprs import source_of
from jitcount.observe.arguments import arguments_of, dynamic_places
from jitcount.observe.functions import Function, describe_body, describe_function
from jitcount.observe.surroundings import NO_OPTIONS, Options, Settings, options_of, settings_now
from jitcount.observe.trees import Node
from jitcount.observe.values import Leaf, Static, describe_leaf, describe_static
from jitcount.observe.wrappers import user_call

if TYPE_CHECKING:
    from collections.abc import Iterable


class Parameter(msgspec.Struct, frozen=True, gc=False):
    """What is compiled into an operation outside of jit."""

    value: Static | Function


Value: TypeAlias = Leaf | Static | Node | Parameter
"""What stands at a place of the arguments."""


@dataclass(slots=True, eq=False, kw_only=True)
class Program:
    """One program that was compiled, or is about to be."""

    group: tuple[object, ...]
    """Programs of the same function, in the same transformation, have the same group."""

    name: str
    transform: str = ""
    function: Function | None = None
    """None for an operation outside of jit, and where the call is not to be seen."""

    options: Options = NO_OPTIONS
    settings: Settings
    keywords: tuple[str, ...] = ()
    """The names of the arguments that were passed by keyword."""

    places: tuple[str, ...]
    values: tuple[Value, ...]
    """For each place, what stands there."""

    numbers: np.ndarray = field(init=False)
    """Hashes of all that can differ: `HEAD` of them, then those of the values."""

    is_known: bool = True
    """Whether all that makes it different from others could be read."""

    def __post_init__(self) -> None:
        head = self.function, self.options, self.settings, self.keywords
        hashes = map(hash, (*head, *self.values))
        self.numbers = np.fromiter(hashes, np.int64, len(head) + len(self.values))

    def is_like(self, other: Program) -> bool:
        """Whether nothing differs between two programs of one function."""
        return self.places == other.places and self.numbers.tobytes() == other.numbers.tobytes()


HEAD = 4
"""How many numbers of a program stand before those of its places."""


def describe(seen: frames.Call, name: str) -> Program:
    """Describe a program while its arguments are at hand."""
    if isinstance(seen.call, frames.PrimitiveCall):
        return _describe_primitive(seen.call, name)
    if isinstance(seen.call, frames.JitCall):
        return describe_call(seen.call, name, seen)
    # The backward pass of a jitted function, or a compile whose call is not to be seen.
    leaves = _numbered("argument", seen.avals or ())
    return Program(
        group=(name, seen.source, seen.transform),
        name=name,
        transform=seen.transform,
        settings=settings_now(),
        places=tuple(leaves),
        values=tuple(leaves.values()),
        is_known=seen.avals is not None and bool(seen.transform),
    )


def describe_call(call: frames.JitCall, name: str, seen: frames.Call | None = None) -> Program:
    """Describe a call of a jitted function."""
    asked = user_call(call)
    function = describe_function(asked.fun, asked.identity)
    transform = seen.transform if seen else ""
    found: dict[str, Value]
    if transform and seen is not None and seen.avals is not None:
        # The arguments at hand are tracers; what is compiled has more axes, or more arguments.
        places = dynamic_places(asked)
        if len(places) == len(seen.avals):
            found = dict(zip(places, map(describe_leaf, seen.avals), strict=True))
        else:
            found = dict(_numbered("argument", seen.avals))
    else:
        found = dict(arguments_of(asked))
    return Program(
        group=(name, function.sources, transform),
        name=function.name,
        transform=transform,
        function=function,
        options=options_of(call.info),
        settings=settings_now(),
        keywords=tuple(sorted(asked.kwargs)),
        places=tuple(found),
        values=tuple(found.values()),
    )


def _describe_primitive(call: frames.PrimitiveCall, name: str) -> Program:
    found: dict[str, Value] = {}
    if len(call.args) == 1:
        found["operand"] = describe_leaf(call.args[0])
    else:
        found.update(_numbered("operand", call.args))
    for parameter, value in call.params.items():
        source = source_of(value)
        described = describe_static(value) if source is None else describe_body(value, source)
        found[parameter] = Parameter(described)
    return Program(
        group=(name, "primitive"),
        name=name,
        settings=settings_now(),
        places=tuple(found),
        values=tuple(found.values()),
    )


def _numbered(what: str, leaves: Iterable[Any]) -> dict[str, Leaf]:
    """Leaves without names of their own."""
    return {f"{what} {index}": describe_leaf(leaf) for index, leaf in enumerate(leaves)}
