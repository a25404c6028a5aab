"""What makes a program the one that it is: all that JAX's caches tell apart, as descriptions.

A program is a row of facets. Two programs of one function differ in some of them, and these are the
causes of the second compile. A facet is a pair of a kind and a place, ``("shape", "x")``.
"""

from __future__ import annotations

import functools
import inspect
import operator
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._jax import frames, options, settings
from jitcount._jax.jaxprs import source_of
from jitcount.observe.functions import Function, describe_function, token
from jitcount.observe.paths import shown_path
from jitcount.observe.trees import walk
from jitcount.observe.values import ARRAYS, describe_static, placement, shape_and_dtype, text_of
from jitcount.observe.wrappers import UserCall, user_call

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Facet = tuple[str, str]


@dataclass(slots=True, eq=False)
class Program:
    """One program that was compiled."""

    group: tuple[object, ...]
    """Programs of the same function, in the same transformation, have the same group."""

    name: str
    transform: str
    facets: tuple[Facet, ...]
    values: tuple[object, ...]
    numbers: tuple[int, ...]
    """The hashes of the values."""

    is_known: bool = True
    """Whether all that makes it different from others could be read."""

    @property
    def by_facet(self) -> dict[Facet, object]:
        """The values of the facets."""
        return dict(zip(self.facets, self.values, strict=True))


def describe(seen: frames.Call, name: str) -> Program:
    """Describe a program while its arguments are at hand."""
    if isinstance(seen.call, frames.PrimitiveCall):
        return _describe_primitive(seen.call, name)
    if isinstance(seen.call, frames.JitCall):
        return describe_call(seen.call, name, seen)
    # The backward pass of a jitted function, or a compile whose call is not to be seen.
    avals = seen.avals
    facets: list[tuple[Facet, object]] = [(("config", ""), _config())]
    for index, aval in enumerate(avals or ()):
        facets += _leaf_facets(f"argument {index}", aval)
    group = (name, seen.source, seen.transform)
    is_known = avals is not None and bool(seen.transform)
    return _program(group, name, seen.transform, facets, is_known=is_known)


def describe_call(call: frames.JitCall, name: str, seen: frames.Call | None = None) -> Program:
    """Describe a call of a jitted function."""
    asked = user_call(call)
    function = describe_function(asked.fun, asked.identity)
    transform = seen.transform if seen else ""
    group = (name, function.sources, transform)
    facets: list[tuple[Facet, object]] = [
        (("function", ""), function),
        (("options", ""), _options(call)),
        (("config", ""), _config()),
        (("keywords", ""), tuple(sorted(asked.kwargs))),
    ]
    if transform and seen is not None and seen.avals is not None:
        # The arguments at hand are tracers; what is compiled has more axes, or more arguments.
        names = [place for place, node, _ in _dynamic_leaves(asked) if node is None]
        if len(names) != len(seen.avals):
            names = [f"argument {index}" for index in range(len(seen.avals))]
        for place, aval in zip(names, seen.avals, strict=True):
            facets += _leaf_facets(place, aval)
    else:
        facets += _argument_facets(asked)
    return _program(group, function.name, transform, facets)


def _describe_primitive(call: frames.PrimitiveCall, name: str) -> Program:
    facets: list[tuple[Facet, object]] = [(("config", ""), _config())]
    for index, leaf in enumerate(call.args):
        place = "operand" if len(call.args) == 1 else f"operand {index}"
        facets += _leaf_facets(place, leaf)
    for parameter, value in call.params.items():
        facets.append((("parameter", parameter), _describe_parameter(value)))
    return _program((name, "primitive"), name, "", facets)


def _describe_parameter(value: Any) -> object:
    if (source := source_of(value)) is not None:  # the body of a loop
        place = f"{shown_path(source.file)}:{source.line}"
        kind = "lambda" if source.name == "<lambda>" else "function"
        return Function(source.name, kind, place, (source,), token(value))
    return describe_static(value)


def _program(
    group: tuple[object, ...],
    name: str,
    transform: str,
    facets: Sequence[tuple[Facet, object]],
    *,
    is_known: bool = True,
) -> Program:
    keys, values = zip(*facets, strict=True)
    return Program(group, name, transform, keys, values, tuple(map(hash, values)), is_known)


def _argument_facets(call: UserCall) -> Iterator[tuple[Facet, object]]:
    for place, value, is_static in _arguments(call):
        if is_static:
            yield ("static", place), describe_static(value)
            continue
        for inner, node, leaf in walk(value, place):
            if node is not None:
                yield ("node", inner), node
            elif call.only_arrays_are_traced and not isinstance(leaf, ARRAYS):
                yield ("static", inner), describe_static(leaf)
            else:
                yield from _leaf_facets(inner, leaf)


def _leaf_facets(place: str, leaf: Any) -> Iterator[tuple[Facet, object]]:
    shape, dtype, weak = shape_and_dtype(leaf)
    yield ("shape", place), shape
    yield ("dtype", place), (dtype, weak)
    yield ("placement", place), placement(leaf)


def _dynamic_leaves(call: UserCall) -> Iterator[tuple[str, object, Any]]:
    for place, value, is_static in _arguments(call):
        if not is_static:
            yield from walk(value, place)


def _arguments(call: UserCall) -> Iterator[tuple[str, Any, bool]]:
    """Each argument with the name that it has in the function, and whether it is static."""
    names, rest = _positional_names(call)
    for index, value in enumerate(call.args):
        name = names[index] if index < len(names) else f"{rest}[{index - len(names)}]"
        yield name, value, index in call.static_argnums
    for name, value in sorted(call.kwargs.items()):
        yield name, value, name in call.static_argnames
    if call.only_arrays_are_traced and not inspect.isroutine(call.fun):
        yield type(call.fun).__name__, call.fun, False  # a module of equinox's is called


def _positional_names(call: UserCall) -> tuple[list[str], str]:
    number = token(call.fun)
    if number not in _names:
        if len(_names) > _MOST_NAMES:
            _names.clear()
        _names[number] = _names_in(call.signature)
    return _names[number]


# The names of a function's arguments, by its token, so that they are looked up once.
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


def _options(call: frames.JitCall) -> tuple[tuple[str, str], ...]:
    kind: Any = type(call.info)
    values = options.option_values(call.info)
    try:
        return _written_options(kind, values)
    except TypeError:  # one is not hashable
        return _written_options.__wrapped__(kind, values)


@functools.lru_cache(maxsize=1024)
def _written_options(kind: Any, values: tuple[object, ...]) -> tuple[tuple[str, str], ...]:
    texts = map(text_of, values)
    written = ("unspecified" if "Unspecified" in text else text for text in texts)
    return tuple(zip(options.option_names(kind), written, strict=True))


class Settings:
    """The settings that a program was compiled with; equal ones have equal values."""

    __slots__ = ("_hash", "set_for_a_block", "texts")

    def __init__(self, texts: tuple[tuple[str, str], ...], set_for_a_block: frozenset[str]) -> None:
        self.texts = texts
        self.set_for_a_block = set_for_a_block
        self._hash = hash(texts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Settings) and self.texts == other.texts)

    def __hash__(self) -> int:
        return self._hash


class _SeenConfig(threading.local):
    """The settings of the last program: nearly always the same, and long to write out."""

    values: tuple[object, ...] = ()
    settings: Settings = Settings((), frozenset())


_seen = _SeenConfig()

# The axes of an enclosing `vmap` are a setting for JAX, but not for a user.
_NO_SETTING = {"axis_env_state"}


def _config() -> Settings:
    values = settings.values()
    if len(values) != len(_seen.values) or any(map(operator.is_not, values, _seen.values)):
        _seen.values = values
        named = zip(settings.names(), values, strict=True)
        texts = tuple((name, text_of(v)) for name, v in named if name not in _NO_SETTING)
        blocks = frozenset(name for name, _ in texts if settings.is_set_for_a_block(name))
        _seen.settings = Settings(texts, blocks)
    return _seen.settings
