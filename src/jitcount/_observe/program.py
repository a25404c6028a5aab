"""What makes a program the one that it is: all that JAX's caches tell apart, as descriptions.

Two programs of one function differ in some of it, and that is why the second was compiled. A
description keeps no array and no object of the user's alive.
"""

from __future__ import annotations

import weakref
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from jitcount._jax import frames
from jitcount._jax.jaxprs import source_of
from jitcount._jax.settings import times_cleared
from jitcount._observe import transformations
from jitcount._observe.arguments import arguments_of
from jitcount._observe.functions import Function, describe_body, describe_function
from jitcount._observe.statics import Static, describe_static
from jitcount._observe.surroundings import NO_OPTIONS, Options, Settings, options_of, settings_now
from jitcount._observe.trees import Node
from jitcount._observe.values import Leaf, describe_leaf, describe_placed
from jitcount._observe.wrappers import user_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jitcount._jax.transforms import Transformation
    from jitcount._observe.call_site import CallSite
    from jitcount._observe.measuring import LazyMeasure


class Parameter(msgspec.Struct, frozen=True, gc=False):
    """What is compiled into an operation outside of jit."""

    value: Static | Function


Value: TypeAlias = Leaf | Static | Node | Parameter
"""What stands at a place of the arguments."""


@dataclass(slots=True, eq=False, kw_only=True)
class Program:
    """One program that was compiled, or is about to be."""

    group: tuple[object, ...]
    """What it is compared with: programs of the same function, in the same kind of transformation;
    of an operation outside of jit, those of the same line."""

    name: str
    transform: str = ""
    """Its transformations, the outermost first: ``"grad of vmap"``."""

    over: str = ""
    """The same with what they are over, where that can be seen: ``"vmap over axis 0 of x"``."""

    function: Function | None = None
    """None for an operation outside of jit, and where the call is not to be seen."""

    options: Options = NO_OPTIONS
    settings: Settings
    keywords: tuple[str, ...] = ()
    """The names of the arguments that were passed by keyword."""

    places: tuple[str, ...]
    values: tuple[Value, ...]
    """For each place, what stands there."""

    key: bytes = field(init=False)
    """Hashes of all that can differ: `HEAD` of them, then those of the values; 8 bytes each."""

    jaxpr: Callable[[], object] | None = None
    """A weak reference to the jaxpr: JAX's caches know programs by that object."""

    times_cleared: int | None = field(default_factory=times_cleared)
    """How often JAX's caches had been cleared; None where that cannot be told."""

    measured: LazyMeasure | None = None
    """What XLA was handed, where that was looked at."""

    is_known: bool = True
    """Whether all that makes it different from others could be read."""

    def __post_init__(self) -> None:
        head = self.function, self.over, self.options, self.settings, self.keywords
        hashes = map(hash, (*head, *self.values))
        self.key = array("q", hashes).tobytes()

    @property
    def fingerprint(self) -> str:
        """What XLA was handed; empty where that is not known."""
        measure = None if self.measured is None else self.measured.get()
        return "" if measure is None else measure.fingerprint

    @property
    def numbers(self) -> np.ndarray:
        """The hashes, as numbers."""
        return np.frombuffer(self.key, np.int64)

    @property
    def by_place(self) -> dict[str, Value]:
        """What stands at each place."""
        return dict(zip(self.places, self.values, strict=True))

    def is_like(self, other: Program) -> bool:
        """Whether nothing differs between two programs of one function."""
        return self.places == other.places and self.key == other.key

    def is_traced_apart_from(self, earlier: Program) -> bool:
        """Whether JAX has traced the same twice, and has cleared nothing in between.

        Two jaxprs that are there tell that. One that is gone does too, unless it is that of the
        function itself: JAX keeps that for as long as the function, or until it needs the room.
        """
        mine, others = (one.jaxpr and one.jaxpr() for one in (self, earlier))
        if mine is None or others is not None:
            return mine is not None and mine is not others
        is_kept = not (self.transform or self.over) and self.function is not None
        is_cleared = self.times_cleared is None or self.times_cleared != earlier.times_cleared
        return earlier.jaxpr is not None and not is_kept and not is_cleared


KNOWN_AS = {"stage": "asarray"}
"""Operations that people know by another name than JAX's own."""

HEAD = 5
"""How many numbers of a program stand before those of its places."""


def describe(seen: frames.Call, name: str, site: CallSite) -> Program:
    """Describe a program while its arguments are at hand."""
    where = ("eager", site.file, site.line) if seen.made_by_jax else ()
    if isinstance(seen.call, frames.PrimitiveCall):
        name = KNOWN_AS.get(name, name)
        program = _describe_primitive(seen.call, name, seen.transforms, where)
    elif isinstance(seen.call, frames.JitCall):
        program = describe_call(seen.call, name, seen, where)
    else:
        # The backward pass of a jitted function, or a compile whose call is not to be seen.
        leaves = _numbered("argument", _run_with(seen))
        program = Program(
            group=(name, seen.source, *transformations.kinds(seen.transforms), *where),
            name=name,
            transform=transformations.in_short(seen.transforms),
            over=transformations.in_full(seen.transforms)[0],
            settings=settings_now(),
            places=tuple(leaves),
            values=tuple(leaves.values()),
            is_known=seen.avals is not None and bool(seen.transforms),
        )
    if seen.jaxpr is not None:
        program.jaxpr = weakref.ref(seen.jaxpr)
    return program


def describe_call(
    call: frames.JitCall,
    name: str,
    seen: frames.Call | None = None,
    where: tuple[object, ...] = (),
) -> Program:
    """Describe a call of a jitted function."""
    asked = user_call(call)
    function = describe_function(asked.fun, asked.identity)
    found = arguments_of(asked)
    transforms = () if seen is None else seen.transforms
    over = ""
    if seen is not None and transforms:
        leaves = [place for place, value in found.items() if isinstance(value, Leaf)]
        over, run_with = transformations.in_full(transforms, leaves)
        # The arguments at hand are tracers; what is compiled has more axes, or more arguments.
        if seen.avals is not None and len(run_with) == len(seen.avals):
            pairs = zip(run_with, _run_with(seen), strict=True)
            found.update((place, leaf) for place, leaf in pairs if place in found)
    return Program(
        group=(name, function.sources, *transformations.kinds(transforms), *where),
        name=function.name,
        transform=transformations.in_short(transforms),
        over=over,
        function=function,
        options=options_of(call.info, call.pmap_options),
        settings=settings_now(),
        keywords=tuple(sorted(asked.kwargs)),
        places=tuple(found),
        values=tuple(found.values()),
    )


def _run_with(seen: frames.Call) -> list[Leaf]:
    """What a transformed function is run with; the arguments of its call are tracers."""
    avals = seen.avals or ()
    return list(map(describe_placed, avals, seen.arrays or avals))


def _describe_primitive(
    call: frames.PrimitiveCall,
    name: str,
    transforms: tuple[Transformation, ...],
    where: tuple[object, ...],
) -> Program:
    found: dict[str, Value] = {}
    if len(call.args) == 1:
        found["operand"] = describe_leaf(call.args[0])
    else:
        found.update(_numbered("operand", map(describe_leaf, call.args)))
    traced_from = []
    for parameter, value in call.params.items():
        bodies = _bodies(value)
        traced_from += [body.sources for body in bodies]
        found |= {f"{parameter}[{n}]": Parameter(body) for n, body in enumerate(bodies)}
        if not bodies:
            found[parameter] = Parameter(describe_static(value))
    return Program(
        group=(name, "primitive", *transformations.kinds(transforms), *where, *traced_from),
        name=name,
        transform=transformations.in_short(transforms),
        settings=settings_now(),
        places=tuple(found),
        values=tuple(found.values()),
    )


def _bodies(value: Any) -> list[Function]:
    """The functions that were traced into a parameter: a loop's body, the branches of a `cond`."""
    jaxprs = value if isinstance(value, list | tuple) else (value,)
    found = ((jaxpr, source_of(jaxpr)) for jaxpr in jaxprs)
    return [describe_body(jaxpr, source) for jaxpr, source in found if source is not None]


def _numbered(what: str, leaves: Iterable[Leaf]) -> dict[str, Leaf]:
    """Leaves without names of their own."""
    return {f"{what} {index}": leaf for index, leaf in enumerate(leaves)}
