"""Operations along axes: sums, extrema and their places, cumulative ones, sorts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.hunt.grammar import Builder, ending, proposal
from tools.hunt.operations.elementwise import operation, unchanged
from tools.hunt.values import FLOATS, Spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.hunt.program import Step

_REDUCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "sum": ("jnp.sum({}, axis={}, dtype={}.dtype)", np.sum),
    "max": ("jnp.max({}, axis={})", np.max),
    "min": ("jnp.min({}, axis={})", np.min),
    "prod": ("jnp.prod({}, axis={}, dtype={}.dtype)", np.prod),
}
_OF_BOOLS: dict[str, tuple[str, Callable[..., Any]]] = {
    "any": ("jnp.any({}, axis={})", np.any),
    "all": ("jnp.all({}, axis={})", np.all),
}
_PLACES: dict[str, Callable[..., Any]] = {"argmax": np.argmax, "argmin": np.argmin}
_CUMULATIVE: dict[str, Callable[..., Any]] = {
    "cumsum": np.cumsum,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}


def _axes(step: Step) -> tuple[int, ...]:
    return tuple(axis - step["rank"] for axis in step["axes"])


def _reduction(name: str, form: str, function: Callable[..., Any]) -> None:
    operation(
        f"reduce_{name}",
        lambda step, x: function(x, axis=_axes(step)),
        lambda step, x: form.format(x, step["axes"], x),
        unchanged,
    )


def _place(name: str, function: Callable[..., Any]) -> None:
    operation(
        name,
        lambda step, x: function(x, axis=step["axis"] - step["rank"]),
        lambda step, x: f"lax.{name}({x}, {step['axis']}, {step.spec.dtype!r})",
        unchanged,
    )


def _cumulative(name: str, function: Callable[..., Any]) -> None:
    def compute(step: Step, x: Any) -> Any:
        axis = step["axis"] - step["rank"]
        if step["reverse"]:
            return np.flip(function(np.flip(x, axis), axis=axis), axis)
        return function(x, axis=axis)

    operation(
        name,
        compute,
        lambda step, x: f"lax.{name}({x}, {step['axis']}, reverse={step['reverse']})",
        unchanged,
    )


for _name, (_form, _function) in (_REDUCTIONS | _OF_BOOLS).items():
    _reduction(_name, _form, _function)
for _name, _function in _PLACES.items():
    _place(_name, _function)
for _name, _function in _CUMULATIVE.items():
    _cumulative(_name, _function)


@proposal(26, liftable=True)
def _reduce(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0)
    return None if value is None else reduce(build, value)


@ending
def reduce(build: Builder, value: int) -> object:
    """Reduce a value along some of its axes."""
    spec = build.spec(value)
    axes = build.subset(range(spec.rank), 1)
    count = math.prod(spec.shape[axis] for axis in axes)
    shape = tuple(extent for axis, extent in enumerate(spec.shape) if axis not in axes)
    if spec.dtype == "bool":
        name = build.choose(list(_OF_BOOLS))
    else:
        name = build.choose(("sum", "sum", "max", "min", "prod" if count <= 4 else "sum"))
    most = FLOATS.get(spec.dtype, 1 << 62)
    if name == "sum":
        if most // count < 1:
            return None
        value = build.fit(value, most // count)
        size = build.spec(value).size * count
    elif name == "prod":
        value = build.fit(value, max(1, int(most ** (1 / count)) - 1))
        size = max(1, build.spec(value).size) ** count
    else:
        size = spec.size
    made = replace(build.spec(value), shape=shape).with_(size=size)
    return build.add(f"reduce_{name}", [value], made, axes=axes, rank=spec.rank)


@proposal(2, liftable=True)
def _place_of_extremum(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0 and spec.dtype != "bool")
    if value is None:
        return None
    spec = build.spec(value)
    axis = build.integer(0, spec.rank - 1)
    shape = spec.shape[:axis] + spec.shape[axis + 1 :]
    made = Spec("int32", shape, max(1, spec.shape[axis] - 1), negative=False)
    return build.add(build.choose(list(_PLACES)), [value], made, axis=axis, rank=spec.rank)


@proposal(3, liftable=True)
def _accumulate(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0 and spec.dtype != "bool")
    if value is None:
        return None
    spec = build.spec(value)
    axis = build.integer(0, spec.rank - 1)
    name = build.choose(list(_CUMULATIVE))
    if name == "cumsum":
        most = FLOATS.get(spec.dtype, 1 << 62) // spec.shape[axis]
        if most < 1:
            return None
        value = build.fit(value, most)
        spec = build.spec(value)
        spec = spec.with_(size=spec.size * spec.shape[axis])
    reverse = build.sometimes(3)
    return build.add(name, [value], spec, axis=axis, rank=spec.rank, reverse=reverse)


operation(
    "sort",
    lambda step, x: np.sort(x, axis=step["axis"] - step["rank"]),
    lambda step, x: f"lax.sort({x}, dimension={step['axis']}, is_stable={step['stable']})",
    unchanged,
)
operation(
    "argsort",
    lambda step, x: np.argsort(x, axis=step["axis"] - step["rank"], kind="stable"),
    lambda step, x: f"jnp.argsort({x}, axis={step['axis']}, stable=True).astype('int32')",
    unchanged,
)


def _sort_with(step: Step, keys: Any, values: Any) -> Any:
    axis = step["axis"] - step["rank"]
    return np.take_along_axis(values, np.argsort(keys, axis=axis, kind="stable"), axis)


operation(
    "sort_with",
    _sort_with,
    lambda step, keys, values: (
        f"lax.sort(({keys}, {values}), dimension={step['axis']}, is_stable=True, num_keys=1)[1]"
    ),
    unchanged,
)


def _top(step: Step, x: Any) -> Any:
    places = np.argsort(-x, axis=-1, kind="stable")[..., : step["count"]]
    return places if step["places"] else np.take_along_axis(x, places, -1)


operation(
    "top_k",
    _top,
    lambda step, x: f"lax.top_k({x}, {step['count']})[{int(step['places'])}]",
    unchanged,
)


@proposal(2, liftable=True)
def _sort(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0 and spec.dtype != "bool")
    if value is None:
        return None
    spec = build.spec(value)
    axis = build.integer(0, spec.rank - 1)
    extent = spec.shape[axis]
    places = replace(spec, dtype="int32", size=max(1, extent - 1), negative=False)
    way = build.choose(("sort", "argsort", "sort_with", "top_k"))
    if way == "sort":
        stable = build.sometimes(2)
        return build.add("sort", [value], spec, axis=axis, rank=spec.rank, stable=stable)
    if way == "argsort":
        return build.add("argsort", [value], places, axis=axis, rank=spec.rank)
    if way == "sort_with":
        other = build.pick(lambda one: one.shape == spec.shape)
        assert other is not None  # noqa: S101 (the value itself is one)
        made = build.spec(other)
        return build.add("sort_with", [value, other], made, axis=axis, rank=spec.rank)
    count = build.integer(1, min(5, spec.shape[-1]))
    of_places = build.sometimes(2)
    shape = (*spec.shape[:-1], count)
    made = replace(places, size=max(1, spec.shape[-1] - 1)) if of_places else spec
    return build.add("top_k", [value], replace(made, shape=shape), count=count, places=of_places)
