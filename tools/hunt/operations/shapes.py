"""Operations that move elements: broadcasts, reshapes, transposes, slices, pads, concatenations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.hunt.grammar import MOST_ELEMENTS, Builder, proposal
from tools.hunt.operations.elementwise import operation, unchanged
from tools.hunt.values import Spec

if TYPE_CHECKING:
    from tools.hunt.program import Step

MOST_AXES = 8


def _rows(x: Any, rank: int) -> tuple[int, ...]:
    """The axes in front that a lifted step has more than it was made for."""
    return tuple(x.shape[: x.ndim - rank])


operation(
    "reshape",
    lambda step, x: np.reshape(x, (*_rows(x, step["rank"]), *step.spec.shape)),
    lambda step, x: f"lax.reshape({x}, {step.spec.shape})",
    unchanged,
)


def _reshaped(build: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Another shape with as many elements: axes merged, split, added or dropped."""
    extents = list(shape)
    for _ in range(1 + build.integer(0, 2)):
        way = build.choose(("merge", "split", "add", "drop", "flatten"))
        if way == "merge" and len(extents) > 1:
            at = build.integer(0, len(extents) - 2)
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
        elif way == "split" and extents and len(extents) < MOST_AXES:
            at = build.integer(0, len(extents) - 1)
            factors = [f for f in (2, 3, 4, 5, 8, 16, 32, 128) if extents[at] % f == 0]
            if factors:
                factor = build.choose(factors)
                pair = [factor, extents[at] // factor]
                extents[at : at + 1] = pair if build.sometimes(2) else pair[::-1]
        elif way == "add" and len(extents) < MOST_AXES:
            extents.insert(build.integer(0, len(extents)), 1)
        elif way == "drop" and 1 in extents:
            extents.remove(1)
        elif way == "flatten":
            extents = [math.prod(extents)]
    return tuple(extents)


@proposal(4, liftable=True)
def _reshape(build: Builder) -> object:
    value = build.pick()
    assert value is not None  # noqa: S101
    spec = build.spec(value)
    shape = _reshaped(build, spec.shape)
    return build.add("reshape", [value], replace(spec, shape=shape), rank=spec.rank)


operation(
    "transpose",
    lambda step, x: np.transpose(
        x,
        (
            *range(x.ndim - len(step["order"])),
            *(axis + x.ndim - len(step["order"]) for axis in step["order"]),
        ),
    ),
    lambda step, x: f"lax.transpose({x}, {step['order']})",
    unchanged,
)


@proposal(3, liftable=True)
def _transpose(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 1)
    if value is None:
        return None
    spec = build.spec(value)
    order = build.order(range(spec.rank)[::-1])
    shape = tuple(spec.shape[axis] for axis in order)
    return build.add("transpose", [value], replace(spec, shape=shape), order=order)


def _broadcast(step: Step, x: Any) -> Any:
    rows = _rows(x, len(step["axes"]))
    extents = [1] * len(step.spec.shape)
    for place, axis in enumerate(step["axes"]):
        extents[axis] = x.shape[len(rows) + place]
    return np.broadcast_to(np.reshape(x, (*rows, *extents)), (*rows, *step.spec.shape))


operation(
    "broadcast",
    _broadcast,
    lambda step, x: f"lax.broadcast_in_dim({x}, {step.spec.shape}, {step['axes']})",
    unchanged,
)


def broadcast(build: Builder, value: int, most_axes: int = MOST_AXES) -> int:
    """The value with new axes, and with axes of one element made longer."""
    spec = build.spec(value)
    shape, axes = list(spec.shape), list(range(spec.rank))
    for place, extent in enumerate(shape):
        if extent == 1 and build.sometimes(2):
            shape[place] = build.extent(MOST_ELEMENTS // max(1, math.prod(shape)))
    for _ in range(build.integer(1, 2)):
        if len(shape) >= most_axes:
            break
        at = build.integer(0, len(shape))
        shape.insert(at, build.extent(MOST_ELEMENTS // max(1, math.prod(shape))))
        axes = [axis + (axis >= at) for axis in axes]
    return build.add("broadcast", [value], replace(spec, shape=tuple(shape)), axes=tuple(axes))


@proposal(4, liftable=True)
def _broadcasts(build: Builder) -> object:
    value = build.pick(lambda spec: spec.elements < MOST_ELEMENTS)
    return None if value is None else broadcast(build, value)


operation(
    "reverse",
    lambda step, x: np.flip(x, tuple(axis - step["rank"] for axis in step["axes"])),
    lambda step, x: f"lax.rev({x}, {step['axes']})",
    unchanged,
)


@proposal(2, liftable=True)
def _reverse(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0)
    if value is None:
        return None
    spec = build.spec(value)
    axes = build.subset(range(spec.rank), 1)
    return build.add("reverse", [value], spec, axes=axes, rank=spec.rank)


def _slice(step: Step, x: Any) -> Any:
    slices = tuple(map(slice, step["starts"], step["limits"], step["strides"]))
    return x[(..., *slices)]


operation(
    "slice",
    _slice,
    lambda step, x: f"lax.slice({x}, {step['starts']}, {step['limits']}, {step['strides']})",
    unchanged,
)


def slice_(build: Builder, value: int, *, shape: tuple[int, ...] | None = None) -> int:
    """A part of a value, of a given shape or of any."""
    spec = build.spec(value)
    starts, limits, strides = [], [], []
    for axis, extent in enumerate(spec.shape):
        if shape is not None:
            start, stride = build.integer(0, extent - shape[axis]), 1
            limit = start + shape[axis]
        elif build.sometimes(2):
            start = build.integer(0, min(3, extent - 1))
            limit = extent - build.integer(0, min(2, extent - 1 - start))
            stride = build.choose((1, 1, 2, 3))
        else:
            start, limit, stride = 0, extent, 1
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
    found = tuple(
        -(-(limit - start) // stride)
        for start, limit, stride in zip(starts, limits, strides, strict=True)
    )
    parameters = {"starts": tuple(starts), "limits": tuple(limits), "strides": tuple(strides)}
    return build.add("slice", [value], replace(spec, shape=found), **parameters)


@proposal(4, liftable=True)
def _slices(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0)
    return None if value is None else slice_(build, value)


def padded(x: Any, config: tuple[tuple[int, int, int], ...], fill: int) -> Any:
    """An array with elements put around and between its own, or cropped where negative."""
    ahead = x.ndim - len(config)
    for place, (low, high, interior) in enumerate(config):
        axis = ahead + place
        extent = x.shape[axis]
        wide = extent + max(0, extent - 1) * interior
        shape = list(x.shape)
        shape[axis] = max(low, 0) + wide + max(high, 0)
        made = np.full(shape, fill, np.int64)
        index: list[Any] = [slice(None)] * x.ndim
        index[axis] = slice(max(low, 0), max(low, 0) + wide, interior + 1)
        made[tuple(index)] = x
        index[axis] = slice(max(-low, 0), shape[axis] - max(-high, 0))
        x = made[tuple(index)]
    return x


operation(
    "pad",
    lambda step, x: padded(x, step["config"], step["fill"]),
    lambda step, x: f"lax.pad({x}, jnp.asarray({step['fill']}, {x}.dtype), {step['config']})",
    unchanged,
)


@proposal(3, liftable=True)
def _pad(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0)
    if value is None:
        return None
    spec = build.spec(value)
    config: list[tuple[int, int, int]] = []
    shape: list[int] = []
    for extent in spec.shape:
        one = (0, 0, 0)
        if build.sometimes(2):
            one = (build.integer(-2, 3), build.integer(-2, 3), build.choose((0, 0, 0, 1, 2)))
        wide = extent + max(0, extent - 1) * one[2] + one[0] + one[1]
        crops = max(0, -one[0]) + max(0, -one[1])
        if wide < 1 or crops >= extent or math.prod(shape) * wide > MOST_ELEMENTS:
            one, wide = (0, 0, 0), extent
        config.append(one)
        shape.append(wide)
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    fill = build.choose((0, 1)) if spec.size else 0
    changed = replace(spec, shape=tuple(shape))
    return build.add("pad", [value], changed, config=tuple(config), fill=fill)


operation(
    "concatenate",
    lambda step, *xs: np.concatenate(xs, axis=step["axis"] - step["rank"]),
    lambda step, *xs: f"lax.concatenate([{', '.join(xs)}], {step['axis']})",
    unchanged,
)


@proposal(3, liftable=True)
def _concatenate(build: Builder) -> object:
    first = build.pick(lambda spec: spec.rank > 0 and spec.elements < MOST_ELEMENTS // 3)
    if first is None:
        return None
    spec = build.spec(first)
    axis = build.integer(0, spec.rank - 1)

    def joins(other: Spec) -> bool:
        same = other.dtype == spec.dtype and other.rank == spec.rank
        rest = [*other.shape[:axis], *other.shape[axis + 1 :]]
        small = other.elements < MOST_ELEMENTS // 3
        return same and small and rest == [*spec.shape[:axis], *spec.shape[axis + 1 :]]

    parts = [first]
    for _ in range(build.integer(1, 2)):
        other = build.pick(joins)
        parts.append(build.like(first) if other is None or build.sometimes(3) else other)
    specs = [build.spec(part) for part in parts]
    shape = list(spec.shape)
    shape[axis] = sum(one.shape[axis] for one in specs)
    changed = replace(
        spec,
        shape=tuple(shape),
        size=max(one.size for one in specs),
        negative=any(one.negative for one in specs),
    )
    return build.add("concatenate", parts, changed, axis=axis, rank=spec.rank)


operation(
    "iota",
    lambda step, x: np.broadcast_to(
        np.arange(step.spec.shape[step["axis"]]).reshape(
            [-1 if axis == step["axis"] else 1 for axis in range(step["rank"])]
        ),
        x.shape,
    ),
    lambda step, x: f"lax.broadcasted_iota({step.spec.dtype!r}, {x}.shape, {step['axis']})",
    unchanged,
)


@proposal(1, liftable=True)
def _iota(build: Builder) -> object:
    """As long as a value that is there, so that the two can meet."""
    value = build.pick(lambda spec: spec.rank > 0 and spec.dtype != "bool")
    if value is None:
        return None
    spec = build.spec(value)
    axis = build.integer(0, spec.rank - 1)
    dtype = spec.dtype if Spec(spec.dtype, (), spec.shape[axis], False).is_exact else "int32"  # noqa: FBT003
    made = Spec(dtype, spec.shape, 0, negative=False).with_(size=max(1, spec.shape[axis] - 1))
    return build.add("iota", [value], made, axis=axis, rank=spec.rank)
