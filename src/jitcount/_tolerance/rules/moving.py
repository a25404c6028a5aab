"""Operations that move numbers and round none: slices, gathers, scatters, sorts."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcount._tolerance.lanes import NEAREST, format_of
from jitcount._tolerance.rules.rule import (
    dtype_of,
    is_inexact,
    lane_by_lane,
    rule,
    same_lanes,
)
from jitcount._tolerance.sums import in_random_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._tolerance.lanes import Lanes
    from jitcount._tolerance.rules.rule import Compute


def stored_dtype(aval: Any) -> Any:
    """The dtype of NumPy's that lanes of an array have."""
    name = aval.dtype.name
    if "complex" in name:
        return np.complex128
    return np.float64 if is_inexact(name) else aval.dtype


# --- Shapes ---------------------------------------------------------------------------------------


@rule("reshape", "squeeze", "expand_dims")
def _reshape(equation: Any) -> Compute:
    shape = equation.outvars[0].aval.shape
    order = equation.params.get("dimensions") if equation.primitive.name == "reshape" else None
    if order is not None:
        axes = (0, *(axis + 1 for axis in order))
        return lambda lanes, x: x.transpose(axes).reshape(x.shape[0], *shape)  # noqa: ARG005
    return lambda lanes, x: x.reshape(x.shape[0], *shape)  # noqa: ARG005


@rule("transpose")
def _transpose(equation: Any) -> Compute:
    axes = (0, *(axis + 1 for axis in equation.params["permutation"]))
    return lambda lanes, x: x.transpose(axes)  # noqa: ARG005


@rule("broadcast_in_dim")
def _broadcast(equation: Any) -> Compute:
    shape, places = equation.outvars[0].aval.shape, equation.params["broadcast_dimensions"]
    before = equation.invars[0].aval.shape
    inner = [1] * len(shape)
    for place, size in zip(places, before, strict=True):
        inner[place] = size

    def compute(lanes: Lanes, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
        del lanes, sizes
        return np.broadcast_to(x.reshape(x.shape[0], *inner), (x.shape[0], *shape))

    return compute


@rule("iota")
def _iota(equation: Any) -> Compute:
    aval, axis = equation.outvars[0].aval, equation.params["dimension"]
    shape = [1] * (aval.ndim + 1)
    shape[axis + 1] = aval.shape[axis]
    counted = np.arange(aval.shape[axis]).astype(stored_dtype(aval)).reshape(shape)
    made = np.broadcast_to(counted, (1, *aval.shape))
    return lambda lanes, *sizes: made  # noqa: ARG005


@rule("concatenate")
def _concatenate(equation: Any) -> Compute:
    axis = equation.params["dimension"] + 1
    return lambda lanes, *arrays: np.concatenate(same_lanes(list(arrays)), axis)  # noqa: ARG005


@rule("stack")
def _stack(equation: Any) -> Compute:
    axis = equation.params["axis"] + 1
    return lambda lanes, *arrays: np.stack(same_lanes(list(arrays)), axis)  # noqa: ARG005


@rule("empty", "empty2")
def _empty(equation: Any) -> Compute:
    aval = equation.outvars[0].aval
    made = np.zeros((1, *aval.shape), stored_dtype(aval))
    return lambda lanes: made  # noqa: ARG005


@rule("split")
def _split(equation: Any) -> Compute:
    axis = equation.params["axis"] + 1
    ends = list(itertools.accumulate(equation.params["sizes"]))[:-1]
    return lambda lanes, x: np.split(x, ends, axis)  # noqa: ARG005


@rule("rev")
def _rev(equation: Any) -> Compute:
    axes = tuple(axis + 1 for axis in equation.params["dimensions"])
    return lambda lanes, x: np.flip(x, axes)  # noqa: ARG005


@rule("slice")
def _slice(equation: Any) -> Compute:
    given = equation.params
    strides = given["strides"] or [1] * len(given["start_indices"])
    bounds = zip(given["start_indices"], given["limit_indices"], strides, strict=True)
    index = (slice(None), *(slice(*each) for each in bounds))
    return lambda lanes, x: x[index]  # noqa: ARG005


@rule("pad")
def _pad(equation: Any) -> Compute:
    shape, config = equation.outvars[0].aval.shape, equation.params["padding_config"]

    def compute(lanes: Lanes, x: np.ndarray, value: np.ndarray) -> np.ndarray:
        del lanes
        return padded(x, value, shape, config)

    return compute


def padded(
    x: np.ndarray, value: np.ndarray, shape: Sequence[int], config: Sequence[tuple[int, int, int]]
) -> np.ndarray:
    """An array with so much before, after and between its elements; negative amounts cut off."""
    count = max(x.shape[0], value.shape[0])
    filled = np.broadcast_to(value.reshape(value.shape[0], *[1] * len(shape)), (count, *shape))
    made = np.array(filled)
    into, taken = [slice(None)], [slice(None)]
    for (low, _, between), size, new in zip(config, x.shape[1:], shape, strict=True):
        step = between + 1
        first = max(0, -(low // step)) if low < 0 else 0
        start = low + first * step
        count_here = max(0, min(size - first, -(-(new - start) // step)))
        into.append(slice(start, start + count_here * step, step) if count_here else slice(0, 0))
        taken.append(slice(first, first + count_here))
    made[tuple(into)] = x[tuple(taken)]
    return made


# --- Slices at places that the program computes ---------------------------------------------------


def _starts(starts: Sequence[np.ndarray], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Where a slice begins: moved, if need be, to where it fits."""
    return [
        int(np.clip(int(start), 0, extent - size))
        for start, extent, size in zip(starts, shape, sizes, strict=True)
    ]


@rule("dynamic_slice")
def _dynamic_slice(equation: Any) -> Compute:
    sizes, shape = equation.params["slice_sizes"], equation.invars[0].aval.shape

    def taken(x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        at = _starts(starts[: len(sizes)], shape, sizes)
        index = tuple(slice(start, start + size) for start, size in zip(at, sizes, strict=True))
        return x[(..., *index)] if index else x

    def compute(lanes: Lanes, x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        if any(start.shape[0] > 1 for start in starts):
            return lane_by_lane(taken, lanes, x, *starts)
        return taken(x, *(start[0] for start in starts))

    return compute


@rule("dynamic_update_slice")
def _dynamic_update_slice(equation: Any) -> Compute:
    shape, sizes = equation.invars[0].aval.shape, equation.invars[1].aval.shape

    def updated(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        at = _starts(starts, shape, sizes)
        made = np.array(x)
        index = tuple(slice(start, start + size) for start, size in zip(at, sizes, strict=True))
        made[(..., *index)] = update
        return made

    def compute(lanes: Lanes, x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        if any(start.shape[0] > 1 for start in starts):
            return lane_by_lane(updated, lanes, x, update, *starts)
        x, update = same_lanes([x, update])
        return updated(x, update, *(start[0] for start in starts))

    return compute


# --- Gather and scatter ---------------------------------------------------------------------------


class _Windows:
    """The windows of a gather or scatter: for each index of the windows, a place in the operand."""

    def __init__(
        self,
        shape: Sequence[int],
        sizes: Sequence[int],
        index_map: Sequence[int],
        without: Sequence[int],
        batching: Sequence[int],
        indices_batching: Sequence[int],
    ) -> None:
        self._shape, self._sizes, self._index_map = shape, sizes, index_map
        left_out = {*without, *batching}
        self._kept = [axis for axis in range(len(shape)) if axis not in left_out]
        self._batching = dict(zip(batching, indices_batching, strict=True))

    def places(self, indices: np.ndarray, *, clipped: bool) -> tuple[list[np.ndarray], np.ndarray]:
        """The index of each operand axis, batch axes first, then window axes; and what is inside.

        With `clipped`, windows are moved to where they fit.
        """
        batch = indices.shape[:-1]
        shape = [*batch, *(self._sizes[axis] for axis in self._kept)]
        inside = np.ones(batch, bool)
        found = []
        for axis, (extent, size) in enumerate(zip(self._shape, self._sizes, strict=True)):
            at = np.zeros(batch, np.int64)
            if axis in self._index_map:
                at = indices[..., self._index_map.index(axis)].astype(np.int64)
                if clipped:
                    at = np.clip(at, 0, extent - size)
                inside &= (at >= 0) & (at + size <= extent)
            elif axis in self._batching:
                along = [1] * len(batch)
                along[self._batching[axis]] = -1
                at = np.broadcast_to(
                    np.arange(batch[self._batching[axis]]).reshape(along), batch
                )
            at = at.reshape((*batch, *[1] * len(self._kept)))
            if axis in self._kept:
                along = [1] * len(shape)
                along[len(batch) + self._kept.index(axis)] = size
                at = at + np.arange(size).reshape(along)
            found.append(np.broadcast_to(at, shape))
        whole = inside.reshape((*batch, *[1] * len(self._kept)))
        return found, np.broadcast_to(whole, shape)


@rule("gather")
def _gather(equation: Any) -> Compute:
    given, numbers = equation.params, equation.params["dimension_numbers"]
    aval, out = equation.invars[0].aval, equation.outvars[0].aval
    windows = _Windows(
        aval.shape,
        given["slice_sizes"],
        numbers.start_index_map,
        numbers.collapsed_slice_dims,
        getattr(numbers, "operand_batching_dims", ()),
        getattr(numbers, "start_indices_batching_dims", ()),
    )
    mode = str(given["mode"])
    fills = "FILL" in mode or "fill" in mode
    fill = given.get("fill_value")
    if fill is None:
        fill = _fill_of(out.dtype)
    # The results have their windows' axes at the places of `offset_dims`, batch axes elsewhere.
    batch_axes = [axis for axis in range(out.ndim) if axis not in numbers.offset_dims]
    order = np.argsort([*batch_axes, *numbers.offset_dims]).tolist() if out.ndim else []

    def taken(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Of arrays whose lanes, if any, come first."""
        places, inside = windows.places(indices, clipped=not fills)
        lead = x.ndim - len(aval.shape)
        if fills and not inside.all():
            safe = tuple(np.where(inside, at, 0) for at in places)
            made = np.where(inside, x[(slice(None),) * lead + safe], np.asarray(fill, x.dtype))
        else:
            made = x[(slice(None),) * lead + tuple(places)]
        return made.transpose(*range(lead), *(axis + lead for axis in order))

    def compute(lanes: Lanes, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if indices.shape[0] > 1:
            return lane_by_lane(taken, lanes, x, indices)
        return taken(x, indices[0])

    return compute


def _fill_of(dtype: Any) -> Any:
    """What JAX returns beyond the end: NaN, the smallest signed number, the largest unsigned."""
    if is_inexact(dtype.name):
        return np.nan
    if dtype == np.bool_:
        return True
    limits = np.iinfo(dtype)
    return limits.max if dtype.kind == "u" else limits.min


def _scatter_rule(name: str, combine: Callable[..., None] | None, *, adds: bool = False) -> None:
    def make(equation: Any) -> Compute:
        return _scatter(equation, combine, adds=adds)

    rule(name)(make)


def _scatter(equation: Any, combine: Callable[..., None] | None, *, adds: bool) -> Compute:
    given, numbers = equation.params, equation.params["dimension_numbers"]
    aval, updates_aval = equation.invars[0].aval, equation.invars[2].aval
    batching = getattr(numbers, "operand_batching_dims", ())
    window_axes = numbers.update_window_dims
    kept = [
        axis
        for axis in range(aval.ndim)
        if axis not in numbers.inserted_window_dims and axis not in batching
    ]
    sizes = [1] * aval.ndim
    for axis, at in zip(kept, window_axes, strict=True):
        sizes[axis] = updates_aval.shape[at]
    windows = _Windows(
        aval.shape,
        sizes,
        numbers.scatter_dims_to_operand_dims,
        numbers.inserted_window_dims,
        batching,
        getattr(numbers, "scatter_indices_batching_dims", ()),
    )
    clips = "CLIP" in str(given["mode"]).upper()
    batch_axes = [axis for axis in range(updates_aval.ndim) if axis not in window_axes]
    order = (*batch_axes, *window_axes)
    dtype = dtype_of(equation.outvars[0])

    def put(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        lead = x.ndim - aval.ndim
        places, inside = windows.places(indices, clipped=clips)
        flat = np.ravel_multi_index(
            tuple(np.where(inside, at, 0) for at in places), aval.shape
        )[inside] if aval.ndim else np.zeros(int(inside.sum()), np.int64)
        given_lanes = np.broadcast_to(updates, (*x.shape[:lead], *updates.shape[lead:]))
        moved = given_lanes.transpose(*range(lead), *(axis + lead for axis in order))
        values = moved[(slice(None),) * lead + (inside,)]
        made = np.array(x).reshape(*x.shape[:lead], -1)
        if combine is None:
            made[..., flat] = values
        else:
            # `ufunc.at` wants the axis that is indexed first.
            combine(made.T, flat, values.T)
        return made.reshape(x.shape)

    def compute(
        lanes: Lanes, x: np.ndarray, indices: np.ndarray, updates: np.ndarray
    ) -> np.ndarray:
        if indices.shape[0] > 1:
            return lane_by_lane(put, lanes, x, indices, updates)
        x, updates = same_lanes([x, updates])
        made = put(x, indices[0], updates)
        if not is_inexact(dtype) or combine is None:
            return made
        if not adds:
            return lanes.rounded(made, dtype)
        return _added(lanes, made, x, indices[0], updates)

    def _added(
        lanes: Lanes, made: np.ndarray, x: np.ndarray, indices: np.ndarray, updates: np.ndarray
    ) -> np.ndarray:
        last = slice(-1, None)
        if _are_small_and_whole(x[last], updates[last], dtype):
            return made
        squares = put(np.square(np.abs(x[0])), indices, np.square(np.abs(updates[0])))
        terms = put(1.0 * (x[0] != 0), indices, 1.0 * (updates[0] != 0))
        most = int(terms.max(initial=0))
        if most < 2:  # noqa: PLR2004
            return made
        square_of_sum = np.square(np.abs(made[0]))
        variance = in_random_order(most, squares, square_of_sum) * (terms > 1)
        unit = format_of(dtype).unit
        nearest = made[min(NEAREST, made.shape[0] - 1)].copy()
        moved = lanes.scattered(made, unit * np.sqrt(variance / 3))
        moved[NEAREST] = nearest
        return lanes.rounded(moved, dtype)

    return compute


def _are_small_and_whole(x: np.ndarray, updates: np.ndarray, dtype: str) -> bool:
    room = 2.0 ** (format_of(dtype).mantissa + 1)
    whole = all(bool((each == np.rint(each)).all()) for each in (x, updates) if each.dtype == float)
    total = np.abs(x).max(initial=0) + np.abs(updates).sum()
    return whole and bool(total <= room)


_scatter_rule("scatter", None)
_scatter_rule("scatter-add", np.add.at, adds=True)
_scatter_rule("scatter_add", np.add.at, adds=True)
_scatter_rule("scatter-sub", np.subtract.at, adds=True)
_scatter_rule("scatter_sub", np.subtract.at, adds=True)
_scatter_rule("scatter-mul", np.multiply.at)
_scatter_rule("scatter_mul", np.multiply.at)
_scatter_rule("scatter-min", np.minimum.at)
_scatter_rule("scatter_min", np.minimum.at)
_scatter_rule("scatter-max", np.maximum.at)
_scatter_rule("scatter_max", np.maximum.at)


# --- Order ----------------------------------------------------------------------------------------


@rule("sort")
def _sort(equation: Any) -> Compute:
    axis = equation.params["dimension"] + 1
    keys = equation.params["num_keys"]

    def compute(lanes: Lanes, *operands: np.ndarray) -> Any:
        if len(operands) == 1:
            return (np.sort(operands[0], axis),)
        spread = same_lanes(list(operands))
        columns = [np.moveaxis(each, axis, -1) for each in spread]
        order = np.lexsort([_as_key(each) for each in reversed(columns[:keys])], -1)
        order = lanes.settled(order, "the order of a sort")
        made = [
            np.moveaxis(np.take_along_axis(*same_lanes([each, order]), -1), -1, axis)
            for each in (np.moveaxis(one, axis, -1) for one in operands)
        ]
        return [each if order.shape[0] > 1 else each[: one.shape[0]]
                for each, one in zip(made, operands, strict=True)]  # fmt: skip

    return compute


def _as_key(values: np.ndarray) -> np.ndarray:
    """Zeros of both signs are equal in a sort of JAX's."""
    return values + 0.0 if values.dtype.kind == "f" else values


@rule("top_k", "approx_top_k")
def _top_k(equation: Any) -> Compute:
    params = equation.params
    count = params["k"]
    axis = params.get("axis", params.get("reduction_dimension", -1))
    largest = params.get("is_max_k", True)

    def compute(lanes: Lanes, x: np.ndarray) -> Any:
        along = axis if axis < 0 else axis + 1
        column = np.moveaxis(x, along, -1)
        descending = np.flip(column, -1) if largest else column
        order = np.argsort(descending, -1, kind="stable")
        if largest:
            order = column.shape[-1] - 1 - np.flip(order, -1)
        places = lanes.settled(order[..., :count], "the order of the largest")
        values = np.take_along_axis(column, order[..., :count], -1)
        back = np.moveaxis(values, -1, along), np.moveaxis(places, -1, along)
        return back[0], back[1].astype(equation.outvars[1].aval.dtype)

    return compute


@rule("argmax", "argmin")
def _argmax(equation: Any) -> Compute:
    find = np.argmax if equation.primitive.name == "argmax" else np.argmin
    (axis,) = equation.params["axes"]
    dtype = equation.outvars[0].aval.dtype
    words = "the place of the largest" if find is np.argmax else "the place of the smallest"
    return lambda lanes, x: lanes.settled(find(x, axis + 1).astype(dtype), words)
