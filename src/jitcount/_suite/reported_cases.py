"""Classes of programs that a released compiler got wrong, as reported in public.

Each case is wider than the program of its report: all starts, sizes and types around it. Where a
release is known to be wrong, `jitcount._miscompiles.known` names these cases.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jitcount._suite.case import Case, exactly_these
from jitcount._suite.data import floats, spread, whole
from jitcount._suite.generated import Member, case_of_members
from jitcount._suite.jitted import jitted, same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# --- Slices and updates ---------------------------------------------------------------------------

_ROW = whole(10, most=100, dtype="int32", seed=1)
_STARTS = np.array(list(itertools.product((-3, 0, 3, 6, 9, 12), (-1, 0, 1, 2, 5))), np.int32)


def _slice(x: Any, start: Any, size: int) -> Any:
    return lax.dynamic_slice(x, (start,), (size,))


def _slice_by_hand(x: np.ndarray, start: int, size: int) -> np.ndarray:
    start = min(max(start + len(x) * (start < 0), 0), len(x) - size)
    return x[start : start + size]


def _slices_of_slices(x: jax.Array, starts: jax.Array) -> list[jax.Array]:
    """Slices of slices, and of rolled arrays, from many starts, which the compiler does not know.

    With `vmap` they would be gathers.
    """
    return [
        lax.map(lambda ij: _slice(_slice(x, ij[0], 4), ij[1], 2), starts),
        lax.map(lambda ij: _slice(jnp.roll(x, ij[0]), ij[1], 4), starts),
    ]


def _slices_of_slices_by_hand(x: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    pairs = starts.tolist()
    return [
        np.stack([_slice_by_hand(_slice_by_hand(x, i, 4), j, 2) for i, j in pairs]),
        np.stack([_slice_by_hand(np.roll(x, i), j, 4) for i, j in pairs]),
    ]


def _shifted_updates(x: jax.Array) -> list[jax.Array]:
    """An array with a part of itself written over it, one place or more further on."""
    base = x + 1
    moved = [base.at[by:].set(base[:-by]) for by in (1, 2, 7)]
    back = [base.at[:-by].set(base[by:]) for by in (1, 2, 7)]
    return [each.reshape(1, *each.shape) for each in (*moved, *back)]


def _shifted_updates_by_hand(x: np.ndarray) -> list[np.ndarray]:
    base = x + 1
    moved = [np.concatenate([base[:by], base[:-by]]) for by in (1, 2, 7)]
    back = [np.concatenate([base[by:], base[-by:]]) for by in (1, 2, 7)]
    return [each[None] for each in (*moved, *back)]


# --- Indices --------------------------------------------------------------------------------------

_TABLE = whole(300, most=10_000, dtype="int32", seed=2)
_LONG_TABLE = whole(1_025, most=10_000, dtype="int32", seed=3)
_WIDE_INDICES = np.array([0, 127, 128, 200, 255], np.uint8)


def _constant_indices(x: jax.Array) -> list[jax.Array]:
    """Elements at places that are constants of narrow types, with and without their top bit."""
    picked = [_slice(x, jnp.uint8(place), 1) for place in _WIDE_INDICES.tolist()]
    return [jnp.concatenate(picked), x[jnp.asarray(_WIDE_INDICES)]]


_TOKENS = np.broadcast_to(np.arange(5, dtype=np.int32), (2, 5))


def _constant_gathers() -> list[jax.Array]:
    """Programs without arguments: everything is known when they are compiled."""
    with jax.ensure_compile_time_eval():
        tokens = jax.device_put(_TOKENS)
    return [tokens[:, jnp.arange(5)] + 1, tokens[:, jnp.arange(4, -1, -1)] * 2]


def _scatters_of_narrow_indices(x: jax.Array, places: jax.Array) -> list[jax.Array]:
    """One update each, at a place whose type cannot count all places."""
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    kinds = ("int8", "uint8", "int16")
    return [
        lax.scatter_add(x, place.astype(kind)[None, None], jnp.ones(1, x.dtype), numbers)
        for kind in kinds
        for place in places
    ]


def _updates_at_narrow_places(x: jax.Array, update: jax.Array, *places: Any) -> list[jax.Array]:
    """Updates that begin at a place whose type cannot count all places."""
    return [lax.dynamic_update_slice(x, update, (place,)) for place in places]


def _narrow_updates_by_hand(x: np.ndarray, update: np.ndarray, *places: Any) -> list[np.ndarray]:
    found = []
    for begin in map(int, places):
        found.append(x.copy())
        found[-1][begin : begin + len(update)] = update
    return found


# Arithmetic of 8 bits that wraps around.
_WRAPPED: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: x * x,
    "double": lambda x: x + x,
    "less 100": lambda x: x - x.dtype.type(100),
    "less 1": lambda x: x - x.dtype.type(1),
    "negative": lambda x: -x,
}


def _extremes_of_wrapped() -> list[Member]:
    """The largest and the smallest after each, of all numbers and of each column."""
    found = []
    kinds = itertools.product(("uint8", "int8"), _WRAPPED.items(), ("max", "min"), (None, 0))
    for seed, (dtype, (name, wrap), most, axis) in enumerate(kinds):
        numbers = (np.arange(4096 * 9) * (37 + seed) % 251 - 125 * (dtype == "int8")).astype(dtype)

        def operands(numbers: np.ndarray = numbers) -> list[np.ndarray]:
            return [numbers.reshape(4096, 9)]

        def compute(x: Any, wrap: Any = wrap, most: str = most, axis: int | None = axis) -> Any:
            module = np if isinstance(x, np.ndarray) else jnp
            return getattr(module, most)(wrap(x), axis)

        def reference(x: np.ndarray, compute: Any = compute) -> np.ndarray:
            with np.errstate(over="ignore"):
                return np.asarray(compute(x))

        where = "of all" if axis is None else "of columns"
        found.append(
            Member(f"{most} of the {name} of {dtype}, {where}", operands, compute, reference)
        )
    return found


def _scatters_by_hand(x: np.ndarray, places: np.ndarray) -> list[np.ndarray]:
    return [x + (np.arange(len(x)) == place) for place in places] * 3


def _scatter_without_index(x: jax.Array, updates: jax.Array) -> jax.Array:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=()
    )
    return lax.scatter_add(x, jnp.zeros((3, 0), "int32"), updates, numbers)


# --- Windows --------------------------------------------------------------------------------------

_TABLES = [whole(*shape, most=100, seed=3) for shape in ((8, 8), (64, 128))]


def _dilated_maxima(*tables: jax.Array) -> list[jax.Array]:
    """The larger of two rows, in columns that are moved apart."""
    return [
        lax.reduce_window(
            x, -jnp.inf, lax.max, (2, 1), (2, 1), ((0, 0), (0, 0)), base_dilation=(1, 2)
        )
        for x in tables
    ]


def _dilated_maxima_by_hand(*tables: np.ndarray) -> list[np.ndarray]:
    found = []
    for x in tables:
        apart = np.full((len(x) // 2, 2 * x.shape[1] - 1), -np.inf)
        apart[:, ::2] = np.maximum(x[::2], x[1::2])
        found.append(apart)
    return found


def _cropped_windows(x: jax.Array) -> list[jax.Array]:
    """Sums of two neighbours, with a zero in front, where columns are cut off before."""
    cropped = [lax.pad(x, jnp.int32(0), [(0, 0, 1), (-by, 0, 0)]) for by in (1, 2)]
    return [
        lax.reduce_window(each, jnp.int32(0), lax.add, (1, 2), (1, 1), ((0, 0), (1, 0)))
        for each in cropped
    ]


def _cropped_windows_by_hand(x: np.ndarray) -> list[np.ndarray]:
    apart = np.zeros((2 * len(x) - 1, x.shape[1]), x.dtype)
    apart[::2] = x
    cropped = [apart[:, by:] for by in (1, 2)]
    return [each + np.pad(each, ((0, 0), (1, 0)))[:, :-1] for each in cropped]


_IMAGE = whole(1, 15, 6, 8, most=200, seed=5)


def _cropped_convolution(x: jax.Array) -> jax.Array:
    """A convolution with the identity that leaves out five columns, and adds one of zeros."""
    kernel = jnp.eye(8, dtype=x.dtype).reshape(1, 1, 8, 8)
    return lax.conv_general_dilated(
        x, kernel, (1, 1), ((0, 0), (-5, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


# --- Loops and folded functions -------------------------------------------------------------------

_LOOPS = ((0, 1, 2), (0, 5, 3), (0, 7, 4), (3, 4, 100), (0, 6, 3))


def _stepped_loop(x: Any, begin: int, end: int, by: int) -> Sequence[jax.Array]:
    first = jnp.int32(begin), x
    return lax.while_loop(lambda at: at[0] < end, lambda at: (at[0] + by, at[1] + 1), first)


def _stepped_loops(x: jax.Array) -> list[jax.Array]:
    """Loops whose step does not divide the distance, both known when they are compiled."""
    return [each for loop in _LOOPS for each in _stepped_loop(x[0], *loop)]


def _stepped_loops_by_hand(x: np.ndarray) -> list[np.ndarray]:
    found = []
    for begin, end, by in _LOOPS:
        steps = max(-(-(end - begin) // by), 0)
        found += [np.array(begin + steps * by), x[0] + steps]
    return found


def _angle_of_zeros(x: jax.Array) -> jax.Array:
    """The angle of a zero that the compiler finds out."""
    zero = (x != x[0]).astype("float32") * 0
    never = lax.bitwise_xor(x > 0, x > 0).astype("float32")
    return jnp.stack([lax.atan2(never, never), lax.atan2(zero, zero + 1)])


_LARGEST = float(np.finfo(np.float32).max)


def _inverses(x: jax.Array) -> list[jax.Array]:
    """Functions and their inverses, where the value between is infinite."""
    return [jnp.log(jnp.exp(x[0])), jnp.sqrt(jnp.square(x[1])), jnp.exp(x[0]) * jnp.exp(-2 * x[0])]


_FUNCTIONS = (
    jnp.exp,
    jnp.exp2,
    jnp.expm1,
    jnp.sinh,
    jnp.cosh,
    jnp.tanh,
    jnp.log,
    jnp.sin,
    jnp.sqrt,
)


def _functions_of_nan(x: jax.Array) -> list[jax.Array]:
    """Functions of a NaN that the compiler finds out."""
    return [function(x * jnp.nan) for function in _FUNCTIONS]


# Squares that do not fit in their type, and some that do.
_SQUARED = (
    np.array([12, 7, 20, 15, 11, -3, 0], np.int8),
    np.array([181, 182, 300, -200, 5, 0], np.int16),
    np.array([46_341, 65_535, -50_000, 9, 0], np.int32),
)


def _squares(*numbers: jax.Array) -> list[jax.Array]:
    """Sizes and signs of squares, which wrap around as all integers of JAX do."""
    squares = [each * each for each in numbers]
    return [function(each) for each in squares for function in (jnp.abs, lambda x: x < 0)]


def _squares_by_hand(*numbers: np.ndarray) -> list[np.ndarray]:
    squares = [(each.astype(np.int64) ** 2).astype(each.dtype) for each in numbers]
    return [function(each) for each in squares for function in (np.abs, lambda x: x < 0)]


def _softmaxes(x: jax.Array) -> list[jax.Array]:
    """The softmax of numbers so far apart that one is everything, after a product that rounds."""
    return [jax.nn.softmax(x * np.float32(factor), axis=-1) for factor in (0.3, 1 / 3)]


def _softmaxes_by_hand(x: np.ndarray) -> list[np.ndarray]:
    largest = (x == x.max(-1, keepdims=True)).astype(np.float64)
    return [largest, largest]


# --- Reductions -----------------------------------------------------------------------------------


def _with_nans() -> list[np.ndarray]:
    """Rows of lengths around those where compilers change their way, each with one NaN."""
    rows = []
    for length in (1_025, 4_096, 40_000):
        for place in (0, length - 1):
            row = whole(length, most=1_000, seed=length)
            row[place] = np.nan
            rows.append(row)
    return rows


def _extrema(*rows: jax.Array) -> list[jax.Array]:
    """The smallest and the largest number of each row, and of three equal columns."""
    columns = [jnp.stack([row] * 3, 1) for row in rows]
    return [
        jnp.stack([jnp.min(row) for row in rows]),
        jnp.stack([jnp.max(row) for row in rows]),
        jnp.stack([jnp.min(each, 0) for each in columns]),
        jnp.stack([jnp.max(each, 0) for each in columns]),
    ]


def _all_nan(*rows: np.ndarray) -> list[np.ndarray]:
    one, three = np.full(len(rows), np.nan), np.full((len(rows), 3), np.nan)
    return [one, one, three, three]


# Each product has its own factors: what is shared is computed before, and not with a reduction.
_FACTORS = [whole(128, 64, most=2, seed=seed) for seed in range(20, 26)]


def _reduced_products(*factors: jax.Array) -> list[jax.Array]:
    """One number of each row of a product."""
    wide = [jnp.broadcast_to(each, (3, *each.shape)) for each in factors]
    products = [jnp.einsum("bnk,bmk->bnm", *wide[at : at + 2]) for at in (0, 2, 4)]
    return [jnp.max(products[0], -1), jnp.min(products[1], -1), jnp.sum(products[2], -1)]


def _reduced_products_by_hand(*factors: np.ndarray) -> list[np.ndarray]:
    products = [factors[at] @ factors[at + 1].T for at in (0, 2, 4)]
    reduced = [products[0].max(1), products[1].min(1), products[2].sum(1)]
    return [np.broadcast_to(each, (3, *each.shape)) for each in reduced]


def _products_with_one_number(left: jax.Array, right: jax.Array, number: jax.Array) -> list[Any]:
    """One number of each row of a product whose other factor has one number everywhere."""
    known = jnp.full((left.shape[1], 256), 3, left.dtype)
    unknown = jnp.broadcast_to(number, (right.shape[1], 200))
    return [jnp.max(left @ known, -1), jnp.sum(right @ unknown, -1)]


def _products_with_one_number_by_hand(
    left: np.ndarray, right: np.ndarray, number: np.ndarray
) -> list[np.ndarray]:
    return [3 * left.sum(1), 200 * number * right.sum(1)]


# --- Arrays spread over devices -------------------------------------------------------------------

# Eight devices can share the columns; no slice but the last ones would be moved inside.
_COLUMNS = whole(2, 48, most=100, dtype="int32", seed=13)
_SPREAD_STARTS = (-60, -3, 0, 23, 24, 40, 47, 48, 60)


def _updates_past_the_end(x: jax.Array, starts: jax.Array) -> list[jax.Array]:
    """An array with a column written over, in it or past its ends."""
    column = jnp.full((len(x), 1), 1_000, x.dtype)
    return [lax.dynamic_update_slice(x, column, (np.int32(0), start)) for start in starts]


def _updates_by_hand(x: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    found = []
    for start in starts.tolist():
        written = x.copy()
        written[:, _inside(start, x.shape[1], 1)] = 1_000
        found.append(written)
    return found


def _slices_past_the_end(x: jax.Array, starts: jax.Array) -> list[jax.Array]:
    """Half of an array, spread over the devices again, from places in it or past its ends."""
    size = x.shape[1] // 2
    columns = NamedSharding(_all_devices(), PartitionSpec(None, "data"))
    slices = [lax.dynamic_slice(x, (np.int32(0), start), (len(x), size)) for start in starts]
    return [lax.with_sharding_constraint(each, columns) for each in slices]


def _slices_by_hand(x: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    size = x.shape[1] // 2
    places = [_inside(start, x.shape[1], size) for start in starts.tolist()]
    return [x[:, place : place + size] for place in places]


def _inside(start: int, length: int, size: int) -> int:
    """Where a slice starts: a negative start counts from the end, and none is left outside."""
    return min(max(start + length * (start < 0), 0), length - size)


def _all_devices() -> Mesh:
    return Mesh(np.array(jax.devices()), ("data",))


def _spread_case(
    id: str,  # noqa: A002
    claim: str,
    compute: Callable[..., list[jax.Array]],
    by_hand: Callable[..., list[np.ndarray]],
) -> Case:
    """The case of an array whose columns are spread over all devices, and of starts of slices."""
    starts = np.array(_SPREAD_STARTS, np.int32)

    def program(x: jax.Array, starts: jax.Array) -> list[jax.Array]:
        return compute(x, starts)

    def run() -> Sequence[jax.Array]:
        mesh = _all_devices()
        columns = NamedSharding(mesh, PartitionSpec(None, "data"))
        spread_out = jax.make_array_from_callback(
            _COLUMNS.shape, columns, lambda index: _COLUMNS[index]
        )
        everywhere = NamedSharding(mesh, PartitionSpec())
        return jax.jit(program, out_shardings=everywhere)(spread_out, starts)

    def unsupported() -> str:
        count = jax.device_count()
        if count == 1:
            return "it needs several devices"
        return "" if _COLUMNS.shape[1] // 2 % count == 0 else f"24 do not divide by {count} devices"

    return Case(
        id=id,
        claim=claim,
        program=run,
        expected=lambda: same_bits(by_hand)(_COLUMNS, starts),
        compiles={"program": 1},
        unsupported=unsupported,
    )


REPORTED_CASES = (
    jitted(
        "slice-of-slice",
        "a dynamic slice of a dynamic slice: each start is moved inside by itself",
        _slices_of_slices,
        (_ROW, _STARTS),
        same_bits(_slices_of_slices_by_hand),
    ),
    jitted(
        "update-of-itself",
        "an array with a shifted part of itself written over it",
        _shifted_updates,
        (whole(8, 16, most=100, dtype="int32", seed=8),),
        same_bits(_shifted_updates_by_hand),
    ),
    jitted(
        "constant-index",
        "elements at constant places of a narrow unsigned type",
        _constant_indices,
        (_TABLE,),
        same_bits(lambda x: [x[_WIDE_INDICES], x[_WIDE_INDICES]]),
    ),
    jitted(
        "constant-gather",
        "gathers that are known when they are compiled",
        _constant_gathers,
        (),
        same_bits(lambda: [_TOKENS + 1, _TOKENS[:, ::-1] * 2]),
    ),
    jitted(
        "narrow-index-scatter",
        "an update at a place of 8 or 16 bits, among more places than 8 bits count",
        _scatters_of_narrow_indices,
        (_TABLE, np.array([3, 45, 100, 127], np.int32)),
        same_bits(_scatters_by_hand),
    ),
    jitted(
        "narrow-index-update",
        "an update of a part, from a place of 8 bits on, among more places than 8 bits count",
        _updates_at_narrow_places,
        (
            _LONG_TABLE,
            _LONG_TABLE[:512][::-1].copy(),
            *(np.array(at, kind) for kind in ("int8", "uint8") for at in (3, 45, 100)),
        ),
        same_bits(_narrow_updates_by_hand),
    ),
    case_of_members(
        "extremes-of-wrapped-bytes",
        "the largest and smallest of many numbers of 8 bits, after arithmetic that wraps around",
        _extremes_of_wrapped(),
    ),
    jitted(
        "scatter-without-index",
        "all updates of a scatter that says no place",
        _scatter_without_index,
        (np.array([10], np.int32), np.array([[1], [2], [4]], np.int32)),
        same_bits(lambda x, updates: [x + updates.sum()]),
    ),
    jitted(
        "window-dilated",
        "maxima of windows in an array that is spread out",
        _dilated_maxima,
        _TABLES,
        same_bits(_dilated_maxima_by_hand),
    ),
    jitted(
        "window-dilated-large",
        "maxima of windows in a larger array that is spread out",
        _dilated_maxima,
        (whole(256, 256, most=100, seed=4),),
        same_bits(_dilated_maxima_by_hand),
    ),
    jitted(
        "window-of-cropped",
        "sums of windows in an array that was cut before",
        _cropped_windows,
        (whole(1, 9, most=1000, dtype="int32", seed=9),),
        same_bits(_cropped_windows_by_hand),
    ),
    jitted(
        "convolution-cropped",
        "a convolution with negative padding in front",
        _cropped_convolution,
        (_IMAGE,),
        same_bits(lambda x: [np.pad(x[:, :, 5:], ((0, 0), (0, 0), (0, 1), (0, 0)))]),
    ),
    jitted(
        "loop-steps",
        "loops whose step does not divide the distance",
        _stepped_loops,
        (whole(1, most=9, dtype="int32", seed=11),),
        same_bits(_stepped_loops_by_hand),
    ),
    jitted(
        "angle-of-zeros",
        "the angle of a zero that the compiler finds out is zero",
        _angle_of_zeros,
        (whole(5, most=9, seed=10),),
        same_bits(lambda x: [np.zeros((2, len(x)))]),
    ),
    jitted(
        "inverse-past-overflow",
        "the inverse of what is infinite is infinite, and not what it began with",
        _inverses,
        (floats(89.0, _LARGEST),),
        lambda _: exactly_these(np.inf, np.inf, np.nan)(),
    ),
    jitted(
        "extrema-of-nan",
        "the smallest and the largest of numbers with a NaN is NaN, however many they are",
        _extrema,
        _with_nans,
        same_bits(_all_nan),
    ),
    jitted(
        "function-of-known-nan",
        "a function of a NaN that the compiler finds out is NaN",
        _functions_of_nan,
        (spread(5, seed=12),),
        same_bits(lambda x: [np.full(x.shape, np.nan)] * len(_FUNCTIONS)),
    ),
    jitted(
        "squares-of-integers",
        "the sizes and signs of squares that wrap around",
        _squares,
        _SQUARED,
        same_bits(_squares_by_hand),
    ),
    jitted(
        "softmax-of-far-numbers",
        "the softmax of scaled numbers that are far apart is 1 at the largest, and not NaN",
        _softmaxes,
        (whole(6, 40, most=1_000_000, seed=14) * np.float32(1e6),),
        same_bits(_softmaxes_by_hand),
    ),
    jitted(
        "product-of-repeated-reduced",
        "what is left of products of arrays that are repeated along a batch",
        _reduced_products,
        _FACTORS,
        same_bits(_reduced_products_by_hand),
    ),
    jitted(
        "product-with-one-number-reduced",
        "what is left of products with an array of one number",
        _products_with_one_number,
        (
            whole(256, 4, most=9, seed=26),
            whole(300, 3, most=9, seed=27),
            np.full((), 2, np.float32),
        ),
        same_bits(_products_with_one_number_by_hand),
    ),
    _spread_case(
        "sharded-update-past-the-end",
        "a column written past the end of an array that is spread over devices is its last one",
        _updates_past_the_end,
        _updates_by_hand,
    ),
    _spread_case(
        "sharded-slice-past-the-end",
        "a slice from past the end of an array that is spread over devices is its last part",
        _slices_past_the_end,
        _slices_by_hand,
    ),
)
