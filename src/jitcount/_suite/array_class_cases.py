"""Classes of programs on whole arrays, generated: reductions, conversions, windows, many outputs.

They are those in which released compilers went wrong; what was reported itself, `reported_cases`
has. All numbers are whole, and what is rounded anywhere is not drawn.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from itertools import product as combinations
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from jitcount._suite.data import spread, whole
from jitcount._suite.generated import Member, case_of_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


# --- Reductions of every rank ---------------------------------------------------------------------

MOST_AXES = 8
_EXTENTS = (2, 3, 1, 2, 4, 2, 3, 2)

# A compiler of JAX 0.10.2 crashes at products that are summed along one of seven axes or more (jax
# #40412): `reported_cases` has those, in a process of their own.
MOST_AXES_OF_PRODUCTS = 6

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda xp, x, axes: xp.sum(x, axes),
    "max": lambda xp, x, axes: xp.max(x, axes),
    "min": lambda xp, x, axes: xp.min(x, axes),
    "prod": lambda xp, x, axes: xp.prod(xp.where(x > 0, xp.ones_like(x), -xp.ones_like(x)), axes),
    "any": lambda xp, x, axes: xp.any(x > 6, axes).astype("int32"),
    "all": lambda xp, x, axes: xp.all(x > -6, axes).astype("int32"),
    "count": lambda xp, x, axes: xp.sum((x > 0).astype("int32"), axes).astype("int32"),
    "below the largest": lambda xp, x, axes: x - xp.max(x, axes, keepdims=True),
}
PLACES: dict[str, Callable[..., Any]] = {
    "argmax": lambda xp, x, axes: xp.argmax(x, axes[0]).astype("int32"),
    "argmin": lambda xp, x, axes: xp.argmin(x, axes[0]).astype("int32"),
}


def axes_of(rank: int) -> list[tuple[int, ...]]:
    """Each axis by itself, neighbours, the first and the last, every other one, and all."""
    chosen: list[tuple[int, ...]] = [(axis,) for axis in range(rank)]
    chosen += [(axis, axis + 1) for axis in range(rank - 1)]
    chosen += [(0, rank - 1), tuple(range(0, rank, 2)), tuple(range(rank))]
    return list(dict.fromkeys(tuple(sorted(set(axes))) for axes in chosen))


def reductions() -> Iterator[Member]:
    """Of each rank along each choice of axes, one reduction after another, each at least once."""
    number = 0
    for rank in range(1, MOST_AXES + 1):
        chosen = [("argmax", (rank // 2,)), ("argmin", (rank - 1,))]
        times = -(-len(REDUCTIONS) // len(axes_of(rank)))
        axes = [axes for axes in axes_of(rank) for _ in range(times)]
        names = [[*REDUCTIONS][(place + rank) % len(REDUCTIONS)] for place in range(len(axes))]
        for name, along in (*chosen, *zip(names, axes, strict=True)):
            number += 1
            dtype, reduce = ("float32", "int32")[number // 3 % 2], (REDUCTIONS | PLACES)[name]
            yield Member(
                f"{name} of rank {rank} along {', '.join(map(str, along))}, {dtype}",
                partial(_one, _EXTENTS[:rank], dtype, number),
                partial(_reduced, jnp, reduce, along),
                partial(_reduced, np, reduce, along),
            )
    for rank in range(1, MOST_AXES_OF_PRODUCTS + 1):
        for axis in range(rank):
            number += 1
            yield Member(
                f"sum of a product of rank {rank} along {axis}",
                partial(_two, (*_EXTENTS[: rank - 1], 8), number + 1),
                partial(_product, jnp, axis),
                partial(_product, np, axis),
            )


def _one(shape: Sequence[int], dtype: str, seed: int) -> list[np.ndarray]:
    return [whole(*shape, most=9, dtype=dtype, seed=seed)]


def _two(shape: Sequence[int], seed: int) -> list[np.ndarray]:
    return [whole(*shape, most=9, seed=seed), whole(*shape, most=9, seed=seed + 500)]


def _reduced(xp: Any, reduce: Callable[..., Any], axes: tuple[int, ...], x: Any) -> Any:
    found = reduce(xp, x, axes)
    return np.asarray(found).astype(_narrow(found, x)) if xp is np else found


def _narrow(found: Any, x: Any) -> Any:
    """The type that JAX has for what NumPy widens, as for a sum of int32."""
    return x.dtype if np.asarray(found).dtype in (np.int64, np.float64) else np.asarray(found).dtype


def _product(xp: Any, axis: int, a: Any, b: Any) -> Any:
    return xp.sum(a * b, axis)


# --- Conversions in chains ------------------------------------------------------------------------

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
FLOATS = ("float16", "bfloat16", "float32")
TYPES = ("bool", *INTEGERS, *FLOATS)


def dtype_of(name: str) -> np.dtype:
    """The NumPy type of a name, bfloat16 among them."""
    return np.dtype(getattr(ml_dtypes, name, name))


def _bounds(name: str) -> tuple[int, int]:
    """The whole numbers that a type holds exactly, all of them between two."""
    if name in INTEGERS:
        return int(np.iinfo(name).min), int(np.iinfo(name).max)
    most = {"bool": 1, "float16": 2**11, "bfloat16": 2**8, "float32": 2**24}[name]
    return (0 if name == "bool" else -most), most


def numbers_for(chain: Sequence[str], seed: int) -> np.ndarray:
    """Numbers that every type of a chain holds, its ends among them, as the chain's first type.

    What is out of a type's range is left out: what a conversion then returns is not specified.
    Where all types have fractions there are halves, too.
    """
    lows, highs = zip(*map(_bounds, chain), strict=True)
    low, high = max(lows), min(highs)
    drawn = spread(24, dtype="float64", seed=seed) + 0.5
    values = np.concatenate([[low, high, 0, min(1, high)], np.floor(low + drawn * (high - low))])
    if set(chain) <= {*FLOATS}:
        values = np.floor(values / 8) + np.tile([0.0, 0.5], 14)
    return values.astype(dtype_of(chain[0]))


def _converted(chain: Sequence[str], x: Any) -> Any:
    for name in chain[1:]:
        x = x.astype(dtype_of(name))
    # Of narrow types a ledger would have to be told.
    return x.astype("uint32" if chain[-1] == "uint32" else _shown(chain[-1]))


def _shown(name: str) -> str:
    return "float32" if name in FLOATS else "int32"


def _only(make: Callable[..., np.ndarray], chain: Sequence[str], seed: int) -> list[np.ndarray]:
    return [make(chain, seed)]


def conversions() -> Iterator[Member]:
    """Chains of three types, with each pair of types beside each other."""
    for number, (first, second) in enumerate(combinations(TYPES, TYPES)):
        if first == second:
            continue
        third = TYPES[(3 * number + 1) % len(TYPES)]
        chain = (first, second, third)
        yield Member(
            " to ".join(chain),
            partial(_only, numbers_for, chain, number + 1),
            partial(_converted, chain),
            partial(_converted, chain),
        )
    for number, (first, second) in enumerate(combinations(FLOATS, INTEGERS)):
        chain = (first, second, "float32")
        yield Member(
            f"{' to '.join(chain)}, with fractions",
            partial(_only, _with_fractions, chain, number + 500),
            partial(_converted, chain),
            partial(_converted, chain),
        )


def _with_fractions(chain: Sequence[str], seed: int) -> np.ndarray:
    """Numbers with halves and quarters: a conversion to an integer leaves the fraction out."""
    lowest = -31.75 if _bounds(chain[1])[0] else 0.0
    drawn = spread(28, dtype="float64", seed=seed) + 0.5
    values = np.floor(4 * (lowest + drawn * (31.75 - lowest))) / 4
    return values.astype(dtype_of(chain[0]))


# --- Windows --------------------------------------------------------------------------------------

_OPERATIONS: dict[str, tuple[Any, Any, float]] = {
    "sum": (lax.add, np.add, 0),
    "max": (lax.max, np.maximum, -np.inf),
    "min": (lax.min, np.minimum, np.inf),
}


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves over an array; a number for each axis."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"window {self.size}, strides {self.strides}, padding {self.padding}, "
            f"array spread by {self.base_dilation}, window by {self.dilation}"
        )

    @property
    def is_dropped(self) -> bool:
        """Whether XLA:CPU since JAX 0.10.2 forgets how far the array is spread (openxla #48714)."""
        axes = zip(self.size, self.strides, self.base_dilation, strict=True)
        return any(size == stride == 1 < by for size, stride, by in axes)

    def reduce(self, operation: str, x: Any) -> Any:
        """In JAX."""
        combine, _, begin = _OPERATIONS[operation]
        return lax.reduce_window(
            x,
            np.float32(begin),
            combine,
            self.size,
            self.strides,
            self.padding,
            base_dilation=self.base_dilation,
            window_dilation=self.dilation,
        )

    def spread_out(self, x: np.ndarray, filled: float) -> np.ndarray:
        """An array with its holes and its padding."""
        shape = [by * (n - 1) + 1 for n, by in zip(x.shape, self.base_dilation, strict=True)]
        apart = np.full(shape, filled)
        apart[tuple(slice(None, None, by) for by in self.base_dilation)] = x
        return np.pad(apart, self.padding, constant_values=filled)

    def views(self, apart: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Each place in the window, and what all windows have there."""
        axes = list(zip(apart.shape, self.size, self.strides, self.dilation, strict=True))
        counts = [(n - by * (size - 1) - 1) // stride + 1 for n, size, stride, by in axes]
        for place in np.ndindex(*self.size):
            slices = (
                slice(at * by, at * by + (count - 1) * stride + 1, stride)
                for at, count, (_, _, stride, by) in zip(place, counts, axes, strict=True)
            )
            yield place, apart[tuple(slices)]

    def by_hand(self, operation: str, x: np.ndarray) -> np.ndarray:
        """In NumPy."""
        _, combine, begin = _OPERATIONS[operation]
        views = [view for _, view in self.views(self.spread_out(x.astype(np.float64), begin))]
        found = views[0]
        for view in views[1:]:
            found = combine(found, view)
        return found.astype(np.float32)


def drawn_window(rank: int, seed: int) -> Window:
    """A window without a pattern: sizes 1 to 3, strides and dilations 1 or 2, padding 0 to 2.

    Other data are drawn for another seed of the suite, but the programs stay the same.
    """
    drawn = random.Random(seed)  # noqa: S311

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(low + int(drawn.random() * (high + 1 - low)) for _ in range(rank))

    size, strides = numbers(1, 3), numbers(1, 2)
    padding = tuple(zip(numbers(0, 2), numbers(0, 2), strict=True))
    return Window(size, strides, padding, numbers(1, 2), numbers(1, 2))


_SMALL, _LARGE = {1: (40,), 2: (8, 9), 3: (5, 6, 7)}, {1: (9_000,), 2: (64, 128), 3: (16, 20, 24)}


def windows() -> Iterator[tuple[Window, bool, Member]]:
    """Drawn windows over small and large arrays of one to three axes, and whether it is large."""
    for number, (sizes, _) in enumerate(combinations((_SMALL, _LARGE), range(24))):
        rank, operation = 1 + number % 3, [*_OPERATIONS][number // 3 % 3]
        window = drawn_window(rank, 7_000 + number)
        shape = sizes[rank]
        member = Member(
            f"{operation} over {' by '.join(map(str, shape))}, {window}",
            partial(_one, shape, "float32", number + 1),
            partial(window.reduce, operation),
            partial(window.by_hand, operation),
        )
        yield window, sizes is _LARGE, member


def dilated() -> Iterator[Member]:
    """Windows of one element along an axis that is spread out, with large arrays."""
    for number, (rank, operation) in enumerate(combinations((2, 3), _OPERATIONS)):
        ones, last = (1,) * (rank - 1), (*(1,) * (rank - 1), 2)
        window = Window((2, *ones), (2, *ones), ((0, 0),) * rank, last, (1,) * rank)
        yield Member(
            f"{operation}, {window}",
            partial(_one, _LARGE[rank], "float32", number + 1),
            partial(window.reduce, operation),
            partial(window.by_hand, operation),
        )


# --- Convolutions ---------------------------------------------------------------------------------

_CHANNELS = (3, 4)


def _convolved(window: Window, x: Any, kernel: Any) -> Any:
    names = ("NWC", "WIO", "NWC") if len(window.size) == 1 else ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x,
        kernel,
        window.strides,
        window.padding,
        lhs_dilation=window.base_dilation,
        rhs_dilation=window.dilation,
        dimension_numbers=names,
    )


def _convolved_by_hand(window: Window, x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    images = []
    for image in x.astype(np.float64):
        channels = [window.spread_out(image[..., c], 0) for c in range(_CHANNELS[0])]
        found: Any = 0
        for views in zip(*map(window.views, channels), strict=True):
            found = found + np.stack([view for _, view in views], -1) @ kernel[views[0][0]]
        images.append(found)
    return np.stack(images).astype(np.float32)


def _images(window: Window, shape: Sequence[int], seed: int) -> list[np.ndarray]:
    kernel = whole(*window.size, *_CHANNELS, most=9, seed=seed + 50)
    return [whole(*shape, most=9, seed=seed), kernel]


def convolutions() -> Iterator[Member]:
    """Drawn windows of one and two axes, two images and a few channels."""
    for number in range(12):
        rank = 1 + number % 2
        window = drawn_window(rank, 8_000 + number)
        shape = (2, *((12,), (9, 8))[rank - 1], _CHANNELS[0])
        yield Member(
            f"convolution of {' by '.join(map(str, shape))}, {window}",
            partial(_images, window, shape, number + 1),
            partial(_convolved, window),
            partial(_convolved_by_hand, window),
        )


def _distinct(shape: Sequence[int], seed: int) -> list[np.ndarray]:
    """No two numbers are equal, so that each window has one largest."""
    order = np.argsort(spread(*shape, dtype="float64", seed=seed), axis=None)
    return [order.astype(np.float32).reshape(shape)]


def _pooled_gradient(window: Window, x: Any) -> Any:
    def total(x: Any) -> Any:
        found = window.reduce("max", x)
        return jnp.sum(found * (jnp.arange(found.size, dtype="float32").reshape(found.shape) % 7))

    return jax.grad(total)(x)


def _pooled_gradient_by_hand(window: Window, x: np.ndarray) -> np.ndarray:
    """Each window adds its weight where its largest is."""
    places = np.arange(x.size, dtype=np.float64).reshape(x.shape)
    views = [view for _, view in window.views(window.spread_out(x.astype(np.float64), -np.inf))]
    origins = [view for _, view in window.views(window.spread_out(places, -1))]
    largest = np.argmax(np.stack(views), 0)
    chosen = np.take_along_axis(np.stack(origins), largest[None], 0)[0].astype(int)
    found = np.zeros(x.size)
    np.add.at(found, chosen.ravel(), np.arange(chosen.size) % 7)
    return found.reshape(x.shape).astype(np.float32)


def pooled() -> Iterator[Member]:
    """The gradients of largest numbers in windows that overlap, with padding.

    Of two images with three channels: XLA:TPU does not take windows along its last two axes.
    """
    ones = (1,) * 4
    for number, (shape, size, strides) in enumerate(
        combinations(((8, 9), (32, 48)), ((2, 2), (3, 2)), ((1, 1), (2, 2)))
    ):
        padding = ((0, 0), (1, 0), (0, 1), (0, 0))
        window = Window((1, *size, 1), (1, *strides, 1), padding, ones, ones)
        yield Member(
            f"gradient of the largest over {shape[0]} by {shape[1]}, {window}",
            partial(_distinct, (2, *shape, 3), number + 1),
            partial(_pooled_gradient, window),
            partial(_pooled_gradient_by_hand, window),
        )


# --- Several outputs ------------------------------------------------------------------------------


def _sums(xp: Any, x: Any, y: Any) -> list[Any]:
    z = 2 * x + y
    return [z, xp.sum(z, 0), xp.sum(z, 1), xp.max(z)]


def _of_one(xp: Any, x: Any, y: Any) -> list[Any]:
    z = x - y
    places = [xp.argmax(z, 1).astype("int32"), xp.argmin(z, 0).astype("int32")]
    return [xp.sum(z, 1), xp.max(z, 1), xp.min(z, 1), *places]


def _moments(xp: Any, x: Any, _: Any) -> list[Any]:
    return [xp.sum(x, 0), xp.sum(x * x, 0), xp.sum(abs(x), 0), xp.sum((x > 0).astype("int32"))]


def _turned(xp: Any, x: Any, y: Any) -> list[Any]:
    z = x + y
    return [z, z.T, xp.sum(z.T, 0), (2 * z).T.reshape(-1)]


def _pairs(xp: Any, x: Any, y: Any) -> list[Any]:
    return [x + y, x - y, x * y, xp.maximum(x, y), xp.sum(xp.minimum(x, y), 1)]


def _slices(xp: Any, x: Any, y: Any) -> list[Any]:
    z = x * y
    return [z[1:], z[:-1], z[::2], z[1:] - z[:-1], xp.concatenate([z[2:], z[:2]])]


def _branches(xp: Any, x: Any, y: Any) -> list[Any]:
    z = xp.where(x > y, x, -y)
    counts = xp.sum((z > 1).astype("int32"), 1).astype("int32")
    return [z, counts, (z > 0).astype("int32"), xp.max(xp.where(z > 2, z, xp.zeros_like(z)), 0)]


OUTPUTS: dict[str, tuple[Callable[..., Any], int]] = {
    "sums of both axes": (_sums, 4),
    "reductions of one array": (_of_one, 5),
    "sums of powers": (_moments, 4),
    "turned": (_turned, 4),
    "of two arrays": (_pairs, 5),
    "slices": (_slices, 5),
    "branches": (_branches, 4),
}
SHAPES = ((7, 5), (64, 128), (33_000, 3), (3, 33_000))


def outputs() -> Iterator[Member]:
    """Arrays that are made of one another, small and large, long or wide."""
    for number, (kind, shape) in enumerate(combinations(OUTPUTS, SHAPES)):
        compute, count = OUTPUTS[kind]
        yield Member(
            f"{kind}, {shape[0]} by {shape[1]}",
            partial(_two, shape, number + 1),
            partial(compute, jnp),
            partial(_as_jax_has_them, compute),
            outputs=[str(output) for output in range(count)],
        )


def _as_jax_has_them(compute: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    wide = compute(np, x.astype(np.float64), y.astype(np.float64))
    kinds = {"float64": np.float32, "int64": np.int32}
    return [np.asarray(each).astype(kinds.get(each.dtype.name, each.dtype)) for each in wide]


ARRAY_CLASS_CASES = (
    case_of_members(
        "class-reductions", "reductions of every rank, along every axis", [*reductions()]
    ),
    case_of_members(
        "class-conversions", "conversions from each type to each other, in chains", [*conversions()]
    ),
    case_of_members(
        "class-windows",
        "windows with padding, strides and dilation",
        [member for window, _, member in windows() if not window.is_dropped],
    ),
    case_of_members(
        "class-windows-dilated", "windows of one element in an array that is spread", [*dilated()]
    ),
    case_of_members(
        "class-convolutions",
        "convolutions with padding and dilation, and gradients of windows",
        [*convolutions(), *pooled()],
    ),
    case_of_members("class-outputs", "fusions with several outputs", [*outputs()]),
)
