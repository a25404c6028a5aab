"""Operations that move numbers and round none: slices, gathers, scatters, sorts."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcount._jax.jaxprs import computes
from jitcount._tolerance.lanes import NEAREST, format_of
from jitcount._tolerance.rules.rule import (
    NotFollowedError,
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
        return lambda lanes, x: x.transpose(axes).reshape(x.shape[0], *shape)
    return lambda lanes, x: x.reshape(x.shape[0], *shape)


@rule("transpose")
def _transpose(equation: Any) -> Compute:
    axes = (0, *(axis + 1 for axis in equation.params["permutation"]))
    return lambda lanes, x: x.transpose(axes)


@rule("broadcast_in_dim")
def _broadcast(equation: Any) -> Compute:
    shape, places = equation.outvars[0].aval.shape, equation.params["broadcast_dimensions"]
    before = equation.invars[0].aval.shape
    inner = [1] * len(shape)
    for place, size in zip(places, before, strict=True):
        inner[place] = size

    def compute(lanes: Lanes, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x.reshape(x.shape[0], *inner), (x.shape[0], *shape))

    return compute


@rule("iota")
def _iota(equation: Any) -> Compute:
    aval, axis = equation.outvars[0].aval, equation.params["dimension"]
    shape = [1] * (aval.ndim + 1)
    shape[axis + 1] = aval.shape[axis]
    counted = np.arange(aval.shape[axis]).astype(stored_dtype(aval)).reshape(shape)
    made = np.broadcast_to(counted, (1, *aval.shape))
    return lambda lanes, *sizes: made


@rule("concatenate")
def _concatenate(equation: Any) -> Compute:
    axis = equation.params["dimension"] + 1
    return lambda lanes, *arrays: np.concatenate(same_lanes(list(arrays)), axis)


@rule("stack")
def _stack(equation: Any) -> Compute:
    axis = equation.params["axis"] + 1
    return lambda lanes, *arrays: np.stack(same_lanes(list(arrays)), axis)


@rule("empty", "empty2")
def _empty(equation: Any) -> Compute:
    aval = equation.outvars[0].aval
    made = np.zeros((1, *aval.shape), stored_dtype(aval))
    return lambda lanes: made


@rule("tile")
def _tile(equation: Any) -> Compute:
    (times,) = [value for value in equation.params.values() if isinstance(value, tuple)]
    return lambda lanes, x: np.tile(x, (1, *times))


@rule("split")
def _split(equation: Any) -> Compute:
    axis = equation.params["axis"] + 1
    ends = list(itertools.accumulate(equation.params["sizes"]))[:-1]
    return lambda lanes, x: np.split(x, ends, axis)


@rule("rev")
def _rev(equation: Any) -> Compute:
    axes = tuple(axis + 1 for axis in equation.params["dimensions"])
    return lambda lanes, x: np.flip(x, axes)


@rule("slice")
def _slice(equation: Any) -> Compute:
    given = equation.params
    strides = given["strides"] or [1] * len(given["start_indices"])
    bounds = zip(given["start_indices"], given["limit_indices"], strides, strict=True)
    index = (slice(None), *(slice(*each) for each in bounds))
    return lambda lanes, x: x[index]


@rule("pad")
def _pad(equation: Any) -> Compute:
    shape, config = equation.outvars[0].aval.shape, equation.params["padding_config"]

    def compute(lanes: Lanes, x: np.ndarray, value: np.ndarray) -> np.ndarray:
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


def _slices(starts: Sequence[int], sizes: Sequence[int]) -> Any:
    pairs = zip(starts, sizes, strict=True)
    return (..., *(slice(start, start + size) for start, size in pairs))


@rule("dynamic_slice")
def _dynamic_slice(equation: Any) -> Compute:
    sizes, shape = equation.params["slice_sizes"], equation.invars[0].aval.shape

    def taken(x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        at = _starts(starts[: len(sizes)], shape, sizes)
        return x[_slices(at, sizes)]

    def compute(lanes: Lanes, x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        if any(start.shape[0] > 1 for start in starts):
            return lane_by_lane(taken, x, *starts)
        return taken(x, *(start[0] for start in starts))

    return compute


@rule("dynamic_update_slice")
def _dynamic_update_slice(equation: Any) -> Compute:
    shape, sizes = equation.invars[0].aval.shape, equation.invars[1].aval.shape

    def updated(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        at = _starts(starts, shape, sizes)
        made = np.array(x)
        made[_slices(at, sizes)] = update
        return made

    def compute(lanes: Lanes, x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        if any(start.shape[0] > 1 for start in starts):
            return lane_by_lane(updated, x, update, *starts)
        x, update = same_lanes([x, update])
        return updated(x, update, *(start[0] for start in starts))

    return compute


# --- Gather and scatter ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Windows:
    """The windows of a gather or scatter: for each index of the windows, a place in the operand."""

    shape: Sequence[int]
    """The operand's."""

    sizes: Sequence[int]
    """Those of a window, along each axis of the operand."""

    index_map: Sequence[int]
    """The axis of the operand that each number of an index is for."""

    without: Sequence[int]
    """The axes that a window does not have in the result, or in the updates."""

    batching: Sequence[int] = ()
    """The axes of the operand that go along with axes of the indices."""

    indices_batching: Sequence[int] = ()
    """Those axes of the indices."""

    @functools.cached_property
    def _kept(self) -> list[int]:
        left_out = {*self.without, *self.batching}
        return [axis for axis in range(len(self.shape)) if axis not in left_out]

    @functools.cached_property
    def _along(self) -> dict[int, int]:
        return dict(zip(self.batching, self.indices_batching, strict=True))

    def places(self, indices: np.ndarray, *, clipped: bool) -> tuple[list[np.ndarray], np.ndarray]:
        """The index of each operand axis, batch axes first, then window axes; and what is inside.

        With `clipped`, windows are moved to where they fit.
        """
        batch = indices.shape[:-1]
        shape = [*batch, *(self.sizes[axis] for axis in self._kept)]
        inside = np.ones(batch, bool)
        found = []
        for axis, (extent, size) in enumerate(zip(self.shape, self.sizes, strict=True)):
            at = np.zeros(batch, np.int64)
            if axis in self.index_map:
                at = indices[..., self.index_map.index(axis)].astype(np.int64)
                if clipped:
                    at = np.clip(at, 0, extent - size)
                inside &= (at >= 0) & (at + size <= extent)
            elif axis in self._along:
                along = [1] * len(batch)
                along[self._along[axis]] = -1
                at = np.broadcast_to(np.arange(batch[self._along[axis]]).reshape(along), batch)
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
        shape=aval.shape,
        sizes=given["slice_sizes"],
        index_map=numbers.start_index_map,
        without=numbers.collapsed_slice_dims,
        batching=numbers.operand_batching_dims,
        indices_batching=numbers.start_indices_batching_dims,
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
            return lane_by_lane(taken, x, indices)
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


class _Scatter:
    """One scatter: puts updates into an operand, where the windows of its indices are."""

    def __init__(self, equation: Any, combine: Callable[..., None] | None) -> None:
        if combine is None and computes(equation.params.get("update_jaxpr")):
            raise NotFollowedError("scatter with a function of its own")
        numbers = equation.params["dimension_numbers"]
        self._aval, updates = equation.invars[0].aval, equation.invars[2].aval
        self._combine = combine
        inserted, batching = numbers.inserted_window_dims, numbers.operand_batching_dims
        kept = [n for n in range(self._aval.ndim) if n not in inserted and n not in batching]
        sizes = [1] * self._aval.ndim
        for axis, at in zip(kept, numbers.update_window_dims, strict=True):
            sizes[axis] = updates.shape[at]
        self._windows = _Windows(
            shape=self._aval.shape,
            sizes=sizes,
            index_map=numbers.scatter_dims_to_operand_dims,
            without=inserted,
            batching=batching,
            indices_batching=numbers.scatter_indices_batching_dims,
        )
        self._clips = "CLIP" in str(equation.params["mode"]).upper()
        window_axes = numbers.update_window_dims
        batch_axes = [axis for axis in range(updates.ndim) if axis not in window_axes]
        self._order = (*batch_axes, *window_axes)

    def put(self, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        """The operand with the updates, for indices without lanes."""
        lead = x.ndim - self._aval.ndim
        places, inside = self._windows.places(indices, clipped=self._clips)
        safe = tuple(np.where(inside, at, 0) for at in places)
        if safe:
            flat = np.ravel_multi_index(safe, self._aval.shape)[inside]
        else:
            flat = np.zeros(int(inside.sum()), np.int64)
        spread = np.broadcast_to(updates, (*x.shape[:lead], *updates.shape[lead:]))
        moved = spread.transpose(*range(lead), *(axis + lead for axis in self._order))
        values = moved[(slice(None),) * lead + (inside,)]
        made = np.array(x).reshape(*x.shape[:lead], -1)
        if self._combine is None:
            made[..., flat] = values
        else:
            # `ufunc.at` wants the axis that is indexed first.
            self._combine(made.T, flat, values.T)
        return made.reshape(x.shape)


def _scatter_rule(name: str, combine: Callable[..., None] | None, *, adds: bool = False) -> None:
    def make(equation: Any) -> Compute:
        return _scatter(equation, combine, adds=adds)

    for each in (f"scatter-{name}", f"scatter_{name}") if name else ("scatter",):
        rule(each)(make)


def _scatter(equation: Any, combine: Callable[..., None] | None, *, adds: bool) -> Compute:
    scatter, dtype = _Scatter(equation, combine), dtype_of(equation.outvars[0])

    def compute(
        lanes: Lanes, x: np.ndarray, indices: np.ndarray, updates: np.ndarray
    ) -> np.ndarray:
        if indices.shape[0] > 1:
            return lane_by_lane(scatter.put, x, indices, updates)
        x, updates = same_lanes([x, updates])
        made = scatter.put(x, indices[0], updates)
        if not is_inexact(dtype) or combine is None:
            return made
        if adds:
            return _added(lanes, scatter, made, (x, indices[0], updates), dtype)
        return lanes.rounded(made, dtype)

    return compute


def _added(
    lanes: Lanes, scatter: _Scatter, made: np.ndarray, operands: tuple[np.ndarray, ...], dtype: str
) -> np.ndarray:
    """The sums of a scatter, as any order of additions may round them."""
    x, indices, updates = operands
    if _are_small_and_whole(x[-1:], updates[-1:], dtype):
        return made
    terms = np.abs(scatter.put(1.0 * (x[0] != 0), indices, 1.0 * (updates[0] != 0)))
    most = int(terms.max(initial=0))
    if most < 2:
        return made
    squares = np.abs(scatter.put(np.abs(x[0]) ** 2, indices, np.abs(updates[0]) ** 2))
    variance = in_random_order(most, squares, np.square(np.abs(made[0]))) * (terms > 1)
    nearest = made[min(NEAREST, made.shape[0] - 1)].copy()
    moved = lanes.scattered(made, format_of(dtype).unit * np.sqrt(variance / 3))
    moved[NEAREST] = nearest
    return lanes.rounded(moved, dtype)


def _are_small_and_whole(x: np.ndarray, updates: np.ndarray, dtype: str) -> bool:
    room = 2.0 ** (format_of(dtype).mantissa + 1)
    whole = all(bool((each == np.rint(each)).all()) for each in (x, updates) if each.dtype == float)
    total = np.abs(x).max(initial=0) + np.abs(updates).sum()
    return whole and bool(total <= room)


_scatter_rule("", None)
_scatter_rule("add", np.add.at, adds=True)
_scatter_rule("sub", np.subtract.at, adds=True)
_scatter_rule("mul", np.multiply.at)
_scatter_rule("min", np.minimum.at)
_scatter_rule("max", np.maximum.at)


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
        return [_taken_along(one, order, axis) for one in operands]

    return compute


def _taken_along(x: np.ndarray, order: np.ndarray, axis: int) -> np.ndarray:
    """An operand of a sort in its new order, by places along its last axis."""
    column, places = same_lanes([np.moveaxis(x, axis, -1), order])
    return np.moveaxis(np.take_along_axis(column, places, -1), -1, axis)


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
