"""Which axes of a function's arguments are ragged, as users write it and as arrays have it.

Places are written as jitcount's causes name them: ``x``, ``batch['tokens']``, ``graph.nodes``. One
stands for all arrays below it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax

from jitcount._text import did_you_mean

Axes: TypeAlias = "Mapping[str, int | tuple[int, ...]]"
"""The axes with one length, by place."""


@dataclass(frozen=True)
class Parameters:
    """The names of a function's parameters."""

    positional: tuple[str, ...]
    others: tuple[str, ...] = ()
    takes_any: bool = False
    """Whether it takes keyword arguments of any name, or has no signature."""

    def __contains__(self, name: str) -> bool:
        return name in self.positional or name in self.others


class Ragged(NamedTuple):
    """An array of an argument with its ragged axes."""

    leaf: int
    """Its place among the arrays of the argument."""

    axes: tuple[tuple[int, int], ...]
    """Each ragged axis, and the number of the length that it has."""

    fill: Any
    place: str
    """As users write it."""


class _Rule(NamedTuple):
    """What a user says of a place in an argument."""

    below: str
    """Where in the argument: ``"['tokens']"``; empty for all of it."""

    axes: tuple[int, ...]
    dimension: int


@dataclass(frozen=True)
class Argument:
    """An argument with ragged axes."""

    name: str
    position: int
    """Beyond all arguments if it is only given by name."""

    rules: tuple[_Rule, ...]
    fills: tuple[tuple[str, Any], ...]
    """What places below it are padded with."""

    def get(self, called: str, given: list[Any], named: Mapping[str, Any]) -> Any:
        """Its value in a call."""
        if self.position < len(given):
            return given[self.position]
        if self.name not in named:
            raise TypeError(f"{called} is called without {self.name}, which has a ragged axis")
        return named[self.name]

    def put(self, value: Any, given: list[Any], named: dict[str, Any]) -> None:
        """Replace its value in a call."""
        if self.position < len(given):
            given[self.position] = value
        else:
            named[self.name] = value

    def ragged_in(self, called: str, value: Any) -> list[Ragged]:
        """The ragged arrays in a value.

        Raises:
            ValueError: an array does not have the axis, or nothing is at a place.
        """
        leaves = [
            (jax.tree_util.keystr(path), leaf)
            for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]
        ]
        for rule in self.rules:
            if not any(_is_below(where, rule.below) for where, _ in leaves):
                names = [f"{self.name}{where}" for where, _ in leaves]
                place = f"{self.name}{rule.below}"
                remedy = did_you_mean(place, names) or f"there are {_listed(names)}"
                raise ValueError(f"{called} has no array at {place}, which axes names; {remedy}")
        found = [self._ragged(called, number, *leaf) for number, leaf in enumerate(leaves)]
        return [one for one in found if one.axes]

    def _ragged(self, called: str, number: int, where: str, leaf: Any) -> Ragged:
        shape = getattr(leaf, "shape", ())
        place = f"{self.name}{where}"
        axes = []
        for rule in self.rules:
            if not _is_below(where, rule.below):
                continue
            for axis in rule.axes:
                if not -len(shape) <= axis < len(shape):
                    raise ValueError(
                        f"{called} got {place} without axis {axis}, which axes names; "
                        f"{_in_words(leaf)}"
                    )
                axes.append((axis % len(shape), rule.dimension))
        fills = [fill for below, fill in self.fills if _is_below(where, below)]
        return Ragged(number, tuple(axes), fills[-1] if fills else 0, place)


def _in_words(leaf: Any) -> str:
    if not hasattr(leaf, "shape"):
        return f"it is a {type(leaf).__name__}, no array: pass np.asarray of it"
    return f"its shape is {tuple(leaf.shape)}"


def _listed(names: list[str]) -> str:
    few = 6
    return ", ".join([*names[:few], *(["..."] if len(names) > few else [])]) or "none"


def _is_below(where: str, below: str) -> bool:
    rest = where.removeprefix(below)
    return where.startswith(below) and (not rest or not below or rest[0] in ".[")


_PLACE = re.compile(r"([^\W\d]\w*)(.*)", re.DOTALL)


def ragged_arguments(
    called: str, parameters: Parameters, each: list[Any], fill: Any
) -> list[Argument]:
    """The arguments that have ragged axes.

    Args:
        called: the function's name.
        parameters: its parameters.
        each: for each length, which axes have it.
        fill: what to pad with: a number, or a mapping from places to numbers.

    Raises:
        ValueError: what is named is no argument.
    """
    rules: dict[str, list[_Rule]] = {}
    for number, axes in enumerate(each):
        if not isinstance(axes, Mapping) or not axes:
            raise ValueError(
                f"bucketed takes axes as a mapping such as {{'x': 0}}; they are {axes!r}"
            )
        for place, wanted in axes.items():
            name, below = _parsed(called, parameters, place)
            numbers = wanted if isinstance(wanted, tuple) else (wanted,)
            for axis in numbers:
                if isinstance(axis, bool) or not isinstance(axis, int):
                    raise TypeError(f"bucketed takes axes by number; that of {place} is {axis!r}")
            rules.setdefault(name, []).append(_Rule(below, numbers, number))
    fills: dict[str, list[tuple[str, Any]]] = {name: [] for name in rules}
    if isinstance(fill, Mapping):
        for place, value in fill.items():
            name, below = _parsed(called, parameters, place)
            if name not in rules:
                raise ValueError(f"fill names {place}, and axes does not")
            fills[name].append((below, value))
    else:
        for values in fills.values():
            values.append(("", fill))
    beyond = 1 << 30
    return [
        Argument(
            name,
            parameters.positional.index(name) if name in parameters.positional else beyond,
            tuple(of_it),
            tuple(sorted(fills[name], key=lambda one: len(one[0]))),
        )
        for name, of_it in rules.items()
    ]


def _parsed(called: str, parameters: Parameters, place: Any) -> tuple[str, str]:
    """The argument of a place, and where in it that is."""
    found = _PLACE.fullmatch(place) if isinstance(place, str) else None
    if found is None:
        raise ValueError(f"bucketed takes places such as x or batch['x']; {place!r} is none")
    name, below = found.groups()
    if name not in parameters and not parameters.takes_any:
        names = (*parameters.positional, *parameters.others)
        remedy = did_you_mean(name, names) or f"there are {', '.join(names) or 'none'}"
        raise ValueError(f"{called} has no argument {name}; {remedy}")
    return name, below.replace('"', "'")


def disagreement(called: str, number: int, read: list[tuple[list[Any], Any, list[Ragged]]]) -> str:
    """Which axes have which length, where they should all have the same."""
    found: dict[int, list[str]] = {}
    for leaves, _, ragged in read:
        for one in ragged:
            for axis, dimension in one.axes:
                if dimension == number:
                    length = leaves[one.leaf].shape[axis]
                    found.setdefault(length, []).append(f"axis {axis} of {one.place}")
    said = "; ".join(f"{length}: {_listed(places)}" for length, places in found.items())
    return (
        f"{called} got ragged axes that disagree, and axes says that they have one length: {said}"
    )
