"""Slices and updates at computed places, gathers and scatters, also out of range."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.hunt.grammar import MOST_ELEMENTS, Builder, proposal
from tools.hunt.operations.elementwise import operation
from tools.hunt.operations.shapes import slice_
from tools.hunt.values import FLOATS, Spec

if TYPE_CHECKING:
    from tools.hunt.program import Step


def _clamped(starts: Any, shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """Where a slice is: from the end where negative, then moved until it is within the array."""
    places = [
        min(max(int(start) + (extent if start < 0 else 0), 0), extent - size)
        for start, extent, size in zip(starts, shape, sizes, strict=True)
    ]
    return tuple(slice(place, place + size) for place, size in zip(places, sizes, strict=True))


def _starts(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)},)"


operation(
    "dynamic_slice",
    lambda step, x, *starts: x[_clamped(starts, x.shape, step.spec.shape)],
    lambda step, x, *starts: f"lax.dynamic_slice({x}, {_starts(starts)}, {step.spec.shape})",
)


def _update(_step: Step, x: Any, part: Any, *starts: Any) -> Any:
    found = x.copy()
    found[_clamped(starts, x.shape, part.shape)] = part
    return found


operation(
    "dynamic_update_slice",
    _update,
    lambda _, x, part, *starts: f"lax.dynamic_update_slice({x}, {part}, {_starts(starts)})",
)


def _places(build: Builder, shape: tuple[int, ...]) -> list[int]:
    """Where a slice starts, for each axis: constants, arguments or computed, also out of range."""
    # JAX adds an axis's length to a negative start, in the start's own type.
    narrow = "int8" if max(shape) < 100 else "int32"
    dtype = build.choose(("int32", "int32", "int32", "uint8", narrow, "uint32"))
    starts = []
    for extent in shape:
        computed = build.pick(lambda spec: spec.shape == () and spec.dtype == dtype)
        if computed is not None and build.sometimes(3):
            starts.append(computed)
            continue
        high = 127 if dtype == "int8" else 255
        size = min(build.choose((extent, 1, extent + 3, 3)), high)
        starts.append(build.fresh((), dtype, size, negative=dtype in {"int32", "int8"}))
    return starts


def _part(build: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a part: some axes whole, some a little shorter, some of one element."""
    return tuple(
        build.choose((extent, extent, max(1, extent - 1), 1, max(1, extent // 2)))
        for extent in shape
    )


@proposal(4)
def _slices_there(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0)
    if value is None:
        return None
    spec = build.spec(value)
    sizes = _part(build, spec.shape)
    starts = _places(build, spec.shape)
    return build.add("dynamic_slice", [value, *starts], replace(spec, shape=sizes))


@proposal(4)
def _updates_there(build: Builder) -> object:
    """With a new part, or with a part of an earlier value: also of the one that is updated."""
    value = build.pick(lambda spec: spec.rank > 0)
    if value is None:
        return None
    spec = build.spec(value)
    sizes = _part(build, spec.shape)

    def holds(other: Spec) -> bool:
        same = other.dtype == spec.dtype and other.rank == spec.rank
        return same and all(a >= b for a, b in zip(other.shape, sizes, strict=True))

    way = build.choose(("new", "itself", "sliced", "earlier"))
    if way == "new":
        part = build.fresh(sizes, spec.dtype)
    elif way == "earlier":
        earlier = build.pick(lambda one: one.shape == sizes and one.dtype == spec.dtype)
        part = build.fresh(sizes, spec.dtype) if earlier is None else earlier
    else:
        whole = value if way == "itself" else build.pick(holds)
        assert whole is not None  # noqa: S101 (the value itself is one)
        part = slice_(build, whole, shape=sizes)
    other = build.spec(part)
    made = replace(spec, size=max(spec.size, other.size), negative=spec.negative or other.negative)
    starts = _places(build, spec.shape)
    return build.add("dynamic_update_slice", [value, part, *starts], made)


def _gather(step: Step, x: Any, index: Any) -> Any:
    extent, mode = x.shape[step["axis"]], step["mode"]
    if mode == "clip":
        return np.take(x, np.clip(index, 0, extent - 1), axis=step["axis"])
    if mode == "wrap":
        return np.take(x, np.mod(index, extent), axis=step["axis"])
    index = np.where(index < 0, index + extent, index)  # from the end, as Python counts
    outside = (index < 0) | (index >= extent)
    found = np.take(x, np.where(outside, 0, index), axis=step["axis"])
    after = x.ndim - step["axis"] - 1
    return np.where(outside.reshape((*outside.shape, *[1] * after)), step["fill"], found)


def _gather_source(step: Step, x: str, index: str) -> str:
    fill = f", fill_value={step['fill']}" if step["mode"] == "fill" else ""
    return f"jnp.take({x}, {index}, axis={step['axis']}, mode={step['mode']!r}{fill})"


operation("gather", _gather, _gather_source)


def _index(build: Builder, extent: int, room: int) -> int:
    """Places along an axis: an earlier value or a new one; some repeat, some are out of range."""
    computed = build.pick(lambda spec: spec.dtype == "int32" and spec.elements <= max(1, room))
    if computed is not None and build.sometimes(3):
        return build.fit(computed, 2 * extent + 1)
    shape = build.shape(build.choose((1, 0, 2)), max(1, min(room, build.choose((8, 64, 2000)))))
    size = max(1, build.choose((extent - 1, extent + 2)))
    return build.fresh(shape, "int32", size, negative=build.sometimes(3))


@proposal(4)
def _gathers(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0)
    if value is None:
        return None
    spec = build.spec(value)
    axis = build.integer(0, spec.rank - 1)
    rest = spec.elements // spec.shape[axis]
    index = _index(build, spec.shape[axis], MOST_ELEMENTS // rest)
    places = build.spec(index).shape
    shape = (*spec.shape[:axis], *places, *spec.shape[axis + 1 :])
    if len(shape) > 8:
        return None
    mode = build.choose(("clip", "fill", "wrap"))
    made = replace(spec, shape=shape, size=max(1, spec.size))
    return build.add("gather", [value, index], made, axis=axis, mode=mode, fill=1)


_UPDATES: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "set": None,
}


def _scatter(step: Step, x: Any, index: Any, updates: Any) -> Any:
    found = x.copy()
    extent = x.shape[0]
    index = np.where(index < 0, index + extent, index)  # from the end, as Python counts
    if step["mode"] == "clip":
        index = np.clip(index, 0, extent - 1)
    kept = (index >= 0) & (index < extent)
    if step["way"] == "set":
        found[index[kept]] = updates
    else:
        _UPDATES[step["way"]].at(found, index[kept], updates[kept])
    return found


operation(
    "scatter",
    _scatter,
    lambda step, x, index, updates: (
        f"{x}.at[{index}].{step['way']}({updates}, mode={step['mode']!r})"
    ),
)


@proposal(4)
def _scatters(build: Builder) -> object:
    """Along the first axis. What sets one place twice sets it to the same."""
    value = build.pick(lambda spec: spec.rank > 0 and spec.dtype != "bool")
    if value is None:
        return None
    spec = build.spec(value)
    extent, rest = spec.shape[0], spec.shape[1:]
    index = _index(build, extent, min(4000, MOST_ELEMENTS // max(1, spec.elements // extent)))
    places = build.spec(index)
    way = build.choose(list(_UPDATES))
    mode = build.choose(("drop", "clip"))
    if way == "set":
        updates = build.fresh((), spec.dtype)
    else:
        updates = build.fresh((*places.shape, *rest), spec.dtype)
    if way == "add":
        most = FLOATS.get(spec.dtype, 1 << 62)
        limit = most // (places.elements + 1)
        if limit < 1:
            return None
        value, updates = build.fit(value, limit), build.fit(updates, limit)
    one, other = build.spec(value), build.spec(updates)
    size = max(one.size, other.size)
    if way == "add":
        size = one.size + other.size * places.elements
    made = one.with_(size=size, negative=one.negative or other.negative)
    return build.add("scatter", [value, index, updates], made, way=way, mode=mode)
