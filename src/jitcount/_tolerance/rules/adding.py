"""Operations that add up or combine many numbers: sums, products of matrices, windows."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcount._tolerance.lanes import NEAREST, format_of
from jitcount._tolerance.rules.moving import padded
from jitcount._tolerance.rules.rule import dtype_of, is_inexact, rule, same_lanes
from jitcount._tolerance.sums import in_random_order, is_exact_product, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._tolerance.lanes import Lanes
    from jitcount._tolerance.rules.rule import Compute


# --- Reductions -----------------------------------------------------------------------------------


def _columns(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The axes that are reduced, as one axis at the end."""
    inner = [axis + 1 for axis in axes]
    moved = np.moveaxis(x, inner, range(x.ndim - len(inner), x.ndim))
    kept = moved.shape[: x.ndim - len(inner)]
    return moved.reshape(*kept, math.prod(moved.shape[len(kept) :]))


@rule("reduce_sum")
def _reduce_sum(equation: Any) -> Compute:
    axes, dtype = equation.params["axes"], dtype_of(equation.outvars[0])
    if not is_inexact(dtype):
        kept = equation.outvars[0].aval.dtype
        inner = tuple(axis + 1 for axis in axes)
        return lambda lanes, x: x.sum(inner, dtype=kept)
    return lambda lanes, x: summed(lanes, _columns(x, axes), dtype)


@rule("reduce_prod")
def _reduce_prod(equation: Any) -> Compute:
    axes, dtype = equation.params["axes"], dtype_of(equation.outvars[0])
    if not is_inexact(dtype):
        kept = equation.outvars[0].aval.dtype
        inner = tuple(axis + 1 for axis in axes)
        return lambda lanes, x: x.prod(inner, dtype=kept)

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        return _rounded_often(lanes, _columns(x, axes).prod(-1), _extent(equation, axes), dtype)

    return compute


def _extent(equation: Any, axes: Sequence[int]) -> int:
    return math.prod(equation.invars[0].aval.shape[axis] for axis in axes)


def _rounded_often(
    lanes: Lanes, values: np.ndarray, times: np.ndarray | int, dtype: str
) -> np.ndarray:
    """Numbers that were rounded so often on their way; whole numbers pass for exact."""
    room = 2.0 ** (format_of(dtype).mantissa + 1)
    last = values[-1]
    if bool((last == np.rint(last)).all()) and bool((np.abs(last) <= room).all()):
        return values
    size = np.abs(values[:1])
    deviation = np.where(np.isfinite(size), size, 0.0) * np.sqrt(times) * format_of(dtype).unit
    return lanes.rounded(lanes.scattered(values, deviation / math.sqrt(3)), dtype)


def _exact_reduction(name: str, function: Callable[..., np.ndarray]) -> None:
    def make(equation: Any) -> Compute:
        inner = tuple(axis + 1 for axis in equation.params["axes"])
        return lambda lanes, x: function(x, axis=inner)

    rule(name)(make)


def _reduce_xor(x: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    for each in sorted(axis, reverse=True):
        x = np.bitwise_xor.reduce(x, axis=each)
    return x


def _of_axes(ufunc: Any) -> Callable[..., np.ndarray]:
    return lambda x, axis: ufunc.reduce(x, axis=axis)


def _extreme(ufunc: Any, sign: int) -> Callable[..., np.ndarray]:
    """The largest or smallest; of nothing the other end of what the dtype has."""

    def reduced(x: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
        if x.size:
            return np.asarray(ufunc.reduce(x, axis=axis))
        limits = None if x.dtype.kind in "fb" else np.iinfo(x.dtype)
        ends = (-np.inf, np.inf) if limits is None else (limits.min, limits.max)
        return np.asarray(ufunc.reduce(x, axis=axis, initial=ends[sign > 0]))

    return reduced


for _name, _function in {
    "reduce_max": _extreme(np.maximum, -1),
    "reduce_min": _extreme(np.minimum, 1),
    "reduce_and": _of_axes(np.bitwise_and),
    "reduce_or": _of_axes(np.bitwise_or),
    "reduce_xor": _reduce_xor,
}.items():
    _exact_reduction(_name, _function)


# --- Running sums ---------------------------------------------------------------------------------


def _running(equation: Any, function: Callable[[np.ndarray], np.ndarray]) -> Compute:
    """A function of arrays whose last axis runs, in the direction of the equation."""
    axis, reverse = equation.params["axis"] + 1, equation.params["reverse"]

    def along(x: np.ndarray) -> np.ndarray:
        column = np.moveaxis(x, axis, -1)
        made = function(column[..., ::-1])[..., ::-1] if reverse else function(column)
        return np.moveaxis(made, -1, axis)

    return lambda lanes, x: along(x)


@rule("cumsum")
def _cumsum(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    if not is_inexact(dtype):
        kept = equation.outvars[0].aval.dtype
        return _running(equation, lambda x: np.cumsum(x, -1, dtype=kept))
    total = _running(equation, lambda x: np.cumsum(x, -1))
    unit = format_of(dtype).unit

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        made = total(lanes, x)
        last = made[-1:]
        room = 2.0 ** (format_of(dtype).mantissa + 1)
        if (x[-1] == np.rint(x[-1])).all() and np.abs(last).max(initial=0) <= room:
            return np.array(made)
        squares = _running(equation, lambda x: np.cumsum(np.square(np.abs(x)), -1))
        moved = lanes.scattered(np.array(made), unit * np.sqrt(squares(lanes, made[:1]) / 3))
        return lanes.rounded(moved, dtype)

    return compute


@rule("cumprod")
def _cumprod(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    if not is_inexact(dtype):
        kept = equation.outvars[0].aval.dtype
        return _running(equation, lambda x: np.cumprod(x, -1, dtype=kept))
    product = _running(equation, lambda x: np.cumprod(x, -1))
    counted = _running(equation, lambda x: np.cumsum(np.ones(x.shape), -1))

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        return _rounded_often(lanes, np.array(product(lanes, x)), counted(lanes, x[:1]), dtype)

    return compute


@rule("cummax")
def _cummax(equation: Any) -> Compute:
    return _running(equation, lambda x: np.maximum.accumulate(x, -1))


@rule("cummin")
def _cummin(equation: Any) -> Compute:
    return _running(equation, lambda x: np.minimum.accumulate(x, -1))


@rule("cumlogsumexp")
def _cumlogsumexp(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    total = _running(equation, lambda x: np.logaddexp.accumulate(x, -1))
    largest = _running(equation, lambda x: np.maximum.accumulate(np.abs(x), -1))

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        made = np.array(total(lanes, x))
        size = largest(lanes, np.where(np.isfinite(x[:1]), x[:1], 0.0)) + 1
        return lanes.rounded(lanes.scattered(made, 4 * format_of(dtype).unit * size), dtype)

    return compute


# --- Products -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of two arrays, each element of which is a sum."""

    of: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """Multiplies arrays of lanes."""

    terms: int
    """How many terms each sum has."""

    dtype: str

    def rounded(self, lanes: Lanes, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The product, as any order of additions may round it."""
        made = self.of(left, right)
        if not made.size or not self.terms:
            return made
        if self.terms == 1:
            return lanes.rounded(made, self.dtype)
        last = left[-1:], right[-1:]

        def magnitude() -> float:
            return float(self.of(np.abs(last[0]), np.abs(last[1])).max())

        if is_exact_product(*last, self.dtype, magnitude):
            return made
        deviation = np.sqrt(self._variance(left[:1], right[:1], made[:1]))
        moved = lanes.scattered(made, deviation)
        if self.dtype == "float32":
            nearest = (each[min(NEAREST, len(each) - 1)][None] for each in (left, right))
            moved[NEAREST] = self.of(*(each.astype(np.float32) for each in nearest))[0]
        return lanes.rounded(moved, self.dtype)

    def _variance(self, left: np.ndarray, right: np.ndarray, made: np.ndarray) -> np.ndarray:
        squares = self.of(np.square(np.abs(left)), np.square(np.abs(right)))
        sums = in_random_order(self.terms, squares, np.square(np.abs(made)))
        variance = format_of(self.dtype).unit ** 2 / 3 * np.maximum(sums + squares, 0.0)
        alone = self._is_alone(left, right)
        return variance if alone is None else np.where(alone, 0.0, variance)

    def _is_alone(self, left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
        """Which sums have one term that is not zero; None where there are few zeros."""
        if all(np.count_nonzero(each) > _MANY * each.size for each in (left, right)):
            return None
        terms = self.of(1.0 * (left != 0), 1.0 * (right != 0))
        return np.asarray(terms < 1.5)


# An array with fewer numbers that are not zero may be a selection of others' rows.
_MANY = 0.6


@rule("dot_general")
def _dot_general(equation: Any) -> Compute:
    (contract, _), dtype = equation.params["dimension_numbers"], dtype_of(equation.outvars[0])
    terms = math.prod(equation.invars[0].aval.shape[axis] for axis in contract[0])
    product = _dot(equation)
    if not is_inexact(dtype):
        kept = equation.outvars[0].aval.dtype
        return lambda lanes, a, b: product(a.astype(kept), b.astype(kept))
    rounding, multiplied = input_rounding(equation), _Product(product, terms, dtype)

    def compute(lanes: Lanes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        wide: Any = np.complex128 if "complex" in dtype else np.float64
        a, b = (each if each.dtype == wide else each.astype(wide) for each in (a, b))
        if lanes.products is not None:
            a, b = (lanes.products(lanes, each, rounding) for each in (a, b))
        return multiplied.rounded(lanes, a, b)

    return compute


def input_rounding(equation: Any) -> str:
    """The precision that a product is asked for at: "default", "high", "highest"."""
    asked = equation.params.get("precision")
    first = asked[0] if isinstance(asked, tuple) else asked
    return "default" if first is None else str(getattr(first, "name", first)).lower()


@dataclass(frozen=True, slots=True)
class _Operand:
    """How an operand of a product becomes a matrix for each lane and batch."""

    order: tuple[int, ...]
    matrices: tuple[int, ...]

    def of(self, x: np.ndarray) -> np.ndarray:
        return x.transpose(self.order).reshape(x.shape[0], *self.matrices)


def _dot(equation: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The function that multiplies the operands of an equation."""
    contract, batch = equation.params["dimension_numbers"]
    avals = [atom.aval for atom in equation.invars]
    out = equation.outvars[0].aval.shape
    one = _operand(avals[0].shape, contract[0], batch[0], sums_last=True)
    other = _operand(avals[1].shape, contract[1], batch[1], sums_last=False)

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        left, right = one.of(a), other.of(b)
        if right.shape[:2] == (1, 1) and left.shape[:2] != (1, 1):
            # Many rows times one matrix: one product of NumPy's, not one for each lane.
            made = left.reshape(-1, left.shape[-1]) @ right[0, 0]
        else:
            made = left @ right
        return made.reshape(max(len(a), len(b)), *out)

    return multiply


def _operand(
    shape: Sequence[int], sums: Sequence[int], batch: Sequence[int], *, sums_last: bool
) -> _Operand:
    free = [axis for axis in range(len(shape)) if axis not in sums and axis not in batch]
    inner = (free, sums) if sums_last else (sums, free)
    axes = (*batch, *inner[0], *inner[1])
    sizes = (math.prod(shape[axis] for axis in each) for each in (batch, *inner))
    return _Operand((0, *(axis + 1 for axis in axes)), tuple(sizes))


@rule("conv_general_dilated")
def _convolution(equation: Any) -> Compute:
    given, dtype = equation.params, dtype_of(equation.outvars[0])
    numbers = given["dimension_numbers"]
    kernel = equation.invars[1].aval
    terms = int(kernel.size) // max(kernel.shape[numbers.rhs_spec[0]], 1)
    product = functools.partial(_convolved, params=given, out=equation.outvars[0].aval)
    rounding, multiplied = input_rounding(equation), _Product(product, terms, dtype)

    def compute(lanes: Lanes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if lanes.products is not None:
            a, b = (lanes.products(lanes, each, rounding) for each in (a, b))
        if not is_inexact(dtype):
            return product(a, b).astype(equation.outvars[0].aval.dtype)
        return multiplied.rounded(lanes, a, b)

    return compute


def _convolved(a: np.ndarray, b: np.ndarray, params: Any, out: Any) -> np.ndarray:
    """A convolution as a product of matrices: of all windows with all kernels."""
    numbers = params["dimension_numbers"]
    a, b = same_lanes([a, b])
    x = a.transpose(0, *(n + 1 for n in numbers.lhs_spec))  # lane, batch, feature, places
    w = b.transpose(0, *(n + 1 for n in numbers.rhs_spec))  # lane, out, feature, places
    dilated = [(low, high, between - 1) for (low, high), between in
               zip(params["padding"], params["lhs_dilation"], strict=True)]  # fmt: skip
    config = [(0, 0, 0), (0, 0, 0), *dilated]
    shape = [
        size + low + high + max(size - 1, 0) * between
        for size, (low, high, between) in zip(x.shape[1:], config, strict=True)
    ]
    x = padded(x, np.zeros(1, x.dtype), shape, config)
    windows = _windows(x, w.shape[3:], params["window_strides"], params["rhs_dilation"], 3)
    # lane, batch, feature, places of the result, places of the window
    places = windows.ndim - 3 - (w.ndim - 3)
    result_places = windows.shape[3 : 3 + places]
    groups, batches = params["feature_group_count"], params["batch_group_count"]
    lanes, outs = w.shape[:2]
    count = math.prod(result_places)
    inner = windows.transpose(0, 1, *range(3, 3 + places), 2, *range(3 + places, windows.ndim))
    made = []
    split = batches if batches > 1 else groups
    for group, kernels in enumerate(np.split(w, split, 1)):
        if batches > 1:
            part = np.split(inner, batches, 1)[group]
        else:
            part = np.split(inner, groups, 2 + places)[group]
        rows = part.reshape(lanes, part.shape[1] * count, -1)
        weights = kernels.reshape(lanes, outs // split, -1).transpose(0, 2, 1)
        made.append((rows @ weights).reshape(lanes, part.shape[1], count, outs // split))
    joined = np.concatenate(made, -1).reshape(lanes, -1, *result_places, outs)
    ordered = np.moveaxis(joined, -1, 2)  # lane, batch, feature, places
    back = np.argsort(numbers.out_spec).tolist()
    return ordered.transpose(0, *(n + 1 for n in back)).reshape(lanes, *out.shape)


def _windows(
    x: np.ndarray,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    first: int,
) -> np.ndarray:
    """All windows over the axes from `first` on: their places at those axes, they at the end."""
    spans = [(size - 1) * apart + 1 for size, apart in zip(sizes, dilation, strict=True)]
    axes = tuple(range(first, first + len(spans)))
    if not axes:
        return x
    short = any(x.shape[axis] < span for axis, span in zip(axes, spans, strict=True))
    if short or 0 in spans:
        places = [
            max(0, (x.shape[a] - s) // t + 1) for a, s, t in zip(axes, spans, strides, strict=True)
        ]
        return np.zeros((*x.shape[:first], *places, *sizes), x.dtype)
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps = [slice(None)] * first + [slice(None, None, each) for each in strides]
    return seen[(*steps, *(slice(None, None, each) for each in dilation))]


# --- Windows --------------------------------------------------------------------------------------


def _window_rule(name: str, start: float, reduce: Any) -> None:
    def make(equation: Any) -> Compute:
        dtype = dtype_of(equation.outvars[0])

        def compute(lanes: Lanes, x: np.ndarray, *initial: np.ndarray) -> np.ndarray:
            columns = _windows_of(equation, x, start)
            if reduce is None and is_inexact(dtype):
                return summed(lanes, columns, dtype)
            return np.asarray((np.add if reduce is None else reduce).reduce(columns, -1))

        return compute

    rule(name)(make)


def _windows_of(equation: Any, x: np.ndarray, start: float) -> np.ndarray:
    """The windows of an equation, each as one axis at the end."""
    given = equation.params
    base = given.get("base_dilation") or [1] * (x.ndim - 1)
    config = [
        (low, high, between - 1)
        for (low, high), between in zip(given["padding"], base, strict=True)
    ]
    shape = [
        size + low + high + max(size - 1, 0) * between
        for size, (low, high, between) in zip(x.shape[1:], config, strict=True)
    ]
    if x.dtype.kind in "iu" and np.isinf(start):
        limits = np.iinfo(x.dtype)
        start = limits.max if start > 0 else limits.min
    x = padded(x, np.full(1, start, x.dtype), shape, config)
    apart = given.get("window_dilation") or [1] * (x.ndim - 1)
    seen = _windows(x, given["window_dimensions"], given["window_strides"], apart, 1)
    return seen.reshape(*seen.shape[: x.ndim], -1)


_window_rule("reduce_window_sum", 0.0, None)
_window_rule("reduce_window_max", -math.inf, np.maximum)
_window_rule("reduce_window_min", math.inf, np.minimum)


@rule("select_and_scatter_add")
def _select_and_scatter_add(equation: Any) -> Compute:
    """The gradient of a maximum over windows: each goes to the place that it came from."""
    given = equation.params
    picks_smallest = "le" in str(getattr(given["select_prim"], "name", ""))
    aval, dtype = equation.outvars[0].aval, dtype_of(equation.outvars[0])

    def scattered(source: np.ndarray, operand: np.ndarray) -> np.ndarray:
        start = math.inf if picks_smallest else -math.inf
        columns = _windows_of(equation, operand[None], start)[0]
        numbers = np.arange(1, operand.size + 1, dtype=np.float64).reshape(operand.shape)
        places = _windows_of(equation, numbers[None], 0.0)[0].astype(np.int64)
        at = (np.argmin if picks_smallest else np.argmax)(columns, -1)
        chosen = np.take_along_axis(places, at[..., None], -1)[..., 0]
        made = np.zeros(aval.size + 1, source.dtype)
        np.add.at(made, chosen.ravel(), source.ravel())
        return made[1:].reshape(aval.shape)

    def compute(lanes: Lanes, source: np.ndarray, operand: np.ndarray) -> np.ndarray:
        spread = same_lanes([source, operand])
        made = np.stack([scattered(*each) for each in zip(*spread, strict=True)])
        return lanes.rounded(made, dtype, 1)

    return compute
