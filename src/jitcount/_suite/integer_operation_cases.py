"""Every operation of whole numbers and bits, in every type; and every conversion between types.

What overflows wraps. A division by zero, the smallest number by -1, a shift by the width or more,
and a number that the type it is converted to cannot hold are in none of them: `operations` has the
sentences that leave those to the backend.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from jitcount._numerics.error_bounds import unit_roundoff
from jitcount._numerics.expected import ELEMENTWISE, exactly, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.arguments import binades, extremes, specials
from jitcount._suite.data import spread
from jitcount._suite.jitted import jitted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._numerics.expected import Expected
    from jitcount._suite.case import Case

    Compute = Callable[..., Any]

INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (np.dtype("float32"), np.dtype("float16"), _BFLOAT16)


def bits_of(dtype: str) -> int:
    """The width of a type of whole numbers."""
    return int(np.iinfo(dtype).bits)


def edges_of(dtype: str) -> np.ndarray:
    """The smallest and largest whole numbers of a type, those beside them, and a few more."""
    info = np.iinfo(dtype)
    found = [info.min, info.min + 1, info.max - 1, info.max, info.max // 2, 0, 1, 2, 3, 7, 100, 85]
    if info.min:
        found += [-1, -2, -3, -7, -100, info.min // 2]
    return np.array(found, dtype)


def pairs_of(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the edges of a type, and numbers of each length in bits, of both signs."""
    left, right = np.meshgrid(edges_of(dtype), edges_of(dtype))
    x, y = each_length(dtype), each_length(dtype, seed=32)
    turned = y[np.argsort(spread(len(y), dtype="float64", seed=33))]
    return np.concatenate([left.ravel(), x]), np.concatenate([right.ravel(), turned])


def each_length(dtype: str, seed: int = 31, count: int = 6) -> np.ndarray:
    """Whole numbers of each length in bits, and of both signs if the type has them."""
    info = np.iinfo(dtype)
    most = info.bits - (info.min < 0)
    sizes = np.repeat(np.arange(most), count)
    within_binade = 1 + spread(len(sizes), dtype="float64", seed=seed) + 0.5
    found = np.floor(np.ldexp(within_binade, sizes)).astype(np.int64)
    if info.min:
        found = np.concatenate([found, -found])
    return found.astype(dtype)


# --- Functions of one or two whole numbers -------------------------------------------------------


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rounded towards zero."""
    wide = [one.astype(np.int64) for one in (x, y)]
    return np.sign(wide[0]) * np.sign(wide[1]) * (np.abs(wide[0]) // np.abs(wide[1]))


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x.astype(np.int64) - _quotient(x, y) * y.astype(np.int64)


def _bits(x: np.ndarray) -> np.ndarray:
    """Numbers as unsigned ones of the same bits."""
    return x.view(f"uint{8 * x.dtype.itemsize}")


def _logical_shift(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return (_bits(x).astype(np.uint64) >> by.astype(np.uint64)).astype(np.int64)


def _leading_zeros(x: np.ndarray) -> np.ndarray:
    lengths = [int(one).bit_length() for one in _bits(x)]
    return 8 * x.dtype.itemsize - np.array(lengths)


def _ones(x: np.ndarray) -> np.ndarray:
    return np.array([int(one).bit_count() for one in _bits(x)])


# The name of the primitive, how it is called, and its values as wide numbers, which then wrap.
_OF_TWO: tuple[tuple[str, Compute, Compute], ...] = (
    ("add", lax.add, lambda x, y: x.astype(np.int64) + y.astype(np.int64)),
    ("sub", lax.sub, lambda x, y: x.astype(np.int64) - y.astype(np.int64)),
    ("mul", lax.mul, lambda x, y: x.astype(np.int64) * y.astype(np.int64)),
    ("max", lax.max, np.maximum),
    ("min", lax.min, np.minimum),
    ("and", lax.bitwise_and, np.bitwise_and),
    ("or", lax.bitwise_or, np.bitwise_or),
    ("xor", lax.bitwise_xor, np.bitwise_xor),
)
_OF_DIVISORS: tuple[tuple[str, Compute, Compute], ...] = (
    ("div", lax.div, _quotient),
    ("rem", lax.rem, _remainder),
)
_OF_SHIFTS: tuple[tuple[str, Compute, Compute], ...] = (
    ("shift_left", lax.shift_left, lambda x, y: x.astype(np.int64) << y.astype(np.int64)),
    ("shift_right_logical", lax.shift_right_logical, _logical_shift),
    (
        "shift_right_arithmetic",
        lax.shift_right_arithmetic,
        lambda x, y: x.view(f"int{8 * x.dtype.itemsize}").astype(np.int64) >> y.astype(np.int64),
    ),
)
_OF_ONE: tuple[tuple[str, Compute, Compute], ...] = (
    ("not", lax.bitwise_not, np.bitwise_not),
    ("neg", lax.neg, lambda x: -x.astype(np.int64)),
    ("sign", lax.sign, np.sign),
    ("population_count", lax.population_count, _ones),
    ("clz", lax.clz, _leading_zeros),
    ("integer_pow", lambda x: lax.integer_pow(x, 3), lambda x: x.astype(np.int64) ** 3),
    ("square", lax.square, lambda x: x.astype(np.int64) ** 2),
)
_OF_SIGNED = (("abs", lax.abs, lambda x: np.abs(x.astype(np.int64))),)


def _arguments(dtype: str) -> list[np.ndarray]:
    x, y = pairs_of(dtype)
    info = np.iinfo(dtype)
    is_defined = (y != 0) & ~((x == info.min) & (y.astype(np.int64) == -1) & (info.min < 0))
    places = np.arange(info.bits).astype(dtype)
    numbers = np.concatenate([edges_of(dtype), each_length(dtype)])
    shifted, by = (one.ravel() for one in np.meshgrid(numbers, places))
    return [x, y, x[is_defined], y[is_defined], shifted, by, numbers]


def _of_integers(dtype: str) -> Case:
    """All operations of whole numbers of a type."""
    ones = (*_OF_ONE, *(_OF_SIGNED if np.iinfo(dtype).min else ()))

    def compute(*arrays: Any) -> list[Any]:
        x, y, dividend, divisor, shifted, by, numbers = arrays
        return [
            jnp.stack([each(x, y) for _, each, _ in _OF_TWO]),
            jnp.stack([each(dividend, divisor) for _, each, _ in _OF_DIVISORS]),
            jnp.stack([each(shifted, by) for _, each, _ in _OF_SHIFTS]),
            jnp.stack([each(numbers) for _, each, _ in ones]),
        ]

    def expected(*arrays: np.ndarray) -> list[Expected]:
        x, y, dividend, divisor, shifted, by, numbers = arrays
        return [
            _wrapped([each(x, y) for _, _, each in _OF_TWO], dtype),
            _wrapped([each(dividend, divisor) for _, _, each in _OF_DIVISORS], dtype),
            _wrapped([each(shifted, by) for _, _, each in _OF_SHIFTS], dtype),
            _wrapped([each(numbers) for _, _, each in ones], dtype),
        ]

    return jitted(
        f"op-{dtype}",
        f"every operation of {dtype}: of the smallest and largest, of each length, each shift",
        compute,
        lambda: _arguments(dtype),
        expected,
    )


def _wrapped(values: Sequence[np.ndarray], dtype: str) -> Expected:
    with np.errstate(over="ignore"):
        return exactly(np.stack([one.astype(dtype) for one in values]))


_COMPARISONS: tuple[tuple[Compute, Compute], ...] = (
    (lax.eq, np.equal), (lax.ne, np.not_equal), (lax.lt, np.less), (lax.le, np.less_equal),
    (lax.gt, np.greater), (lax.ge, np.greater_equal),
)  # fmt: skip


def _compared_pairs() -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for dtype in FLOATS:
        left, right = np.meshgrid(specials(dtype), specials(dtype))
        x = binades(dtype, count=1, near=2)
        beside = np.nextafter(x, dtype.type(0)) if dtype != _BFLOAT16 else -x
        found += [np.concatenate([left.ravel(), x, x]), np.concatenate([right.ravel(), x, beside])]
    for kind in INTEGERS:
        found += pairs_of(kind)
    return found


def _compared(x: np.ndarray, y: np.ndarray) -> Expected:
    with np.errstate(invalid="ignore"):
        return exactly(np.stack([reference(x, y) for _, reference in _COMPARISONS]))


def _in_pairs(arrays: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(arrays[::2], arrays[1::2], strict=True))


def _rank(x: np.ndarray) -> np.ndarray:
    """Floats as whole numbers in their total order: -0 before 0, and NaN after all."""
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)


_TOTAL: tuple[tuple[Any, Compute], ...] = (
    (lax.eq_to_p, np.equal),
    (lax.lt_to_p, np.less),
    (lax.le_to_p, np.less_equal),
)

# --- High words -----------------------------------------------------------------------------------


def _high(x: np.ndarray, y: np.ndarray) -> Expected:
    products = [int(a) * int(b) >> bits_of(x.dtype.name) for a, b in zip(x, y, strict=True)]
    return exactly(np.array(products, x.dtype))


def _without_mulhi() -> str:
    return "" if hasattr(lax, "mulhi") else "this JAX has no lax.mulhi"


_TRUTH = np.array([False, False, True, True]), np.array([False, True, False, True])


def _logic(x: Any, y: Any) -> list[Any]:
    two = (lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.max, lax.min, lax.eq, lax.ne)
    return [jnp.stack([each(x, y) for each in two]), lax.bitwise_not(x)]


def _logic_by_hand(x: np.ndarray, y: np.ndarray) -> list[Expected]:
    both, either = x & y, x | y
    return [exactly(np.stack([both, either, x ^ y, either, both, x == y, x != y])), exactly(~x)]


# --- Conversions ----------------------------------------------------------------------------------

_TYPES = ("bool", *INTEGERS, "float16", "bfloat16", "float32")


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def _is_float(name: str) -> bool:
    return "float" in name


def numbers_of(name: str) -> np.ndarray:
    """Numbers of a type that a conversion may get wrong: edges, halves, ties, each binade."""
    if name == "bool":
        return np.array([False, True, True])
    if not _is_float(name):
        odd = each_length(name, seed=34, count=8)
        return np.concatenate([edges_of(name), odd, odd | odd.dtype.type(1)])
    dtype = _dtype(name)
    halves = np.arange(-300.5, 300.5, 3.5)
    whole = [2.0**31 - 128, 2.0**31, 2.0**32 - 256, -(2.0**31), 3e9, 65504.0, -128.9, 127.9, 255.9]
    ties = np.concatenate([(1 + (k + 0.5) * 2.0 ** -np.array([7, 10])) for k in range(6)])
    beside = [np.nextafter(ties.astype(np.float32), np.float32(end)) for end in (0, 9)]
    some = np.concatenate([halves, whole, ties, -ties, *beside])
    with np.errstate(over="ignore"):
        near = some.astype(dtype)
    return np.concatenate([near, specials(dtype), binades(dtype, count=2, near=4, seed=35)])


def convertible(x: np.ndarray, name: str) -> np.ndarray:
    """Which numbers a type can hold, at least rounded; the others are a backend's choice."""
    if name == "bool":
        return np.full(x.shape, fill_value=True)
    wide = x.astype(np.float64)
    if _is_float(name):
        # What would be denormal there may be zero.
        smallest = extremes(_dtype(name))[1]
        size = np.abs(wide)
        is_held = ~((size > 0) & (size < smallest * (1 + 2.0**-6)))
        return is_held if _is_float(x.dtype.name) else is_held & (size <= extremes(_dtype(name))[0])
    info = np.iinfo(name)
    with np.errstate(invalid="ignore"):
        cut = np.trunc(wide)
        return np.isfinite(wide) & (cut >= info.min) & (cut <= info.max)


def _converted(x: np.ndarray, name: str) -> Expected:
    """Exact where the type holds the number; else a neighbour, of floats the nearest."""
    dtype = _dtype(name)
    with np.errstate(over="ignore", invalid="ignore"):
        if not _is_float(name) or _is_float(x.dtype.name) or x.dtype == bool:
            return exactly(x.astype(dtype))
        # The specification says nothing of whole numbers that a float cannot hold: a neighbour.
        wide = x.astype(np.float64)
        nearest = wide.astype(dtype).astype(np.float64)
        is_held = (nearest == wide) | np.isinf(nearest)
        off = np.where(is_held, 0.0, 2 * unit_roundoff(name) * np.abs(wide))
        size = np.abs(wide) + (wide == 0)
        values = np.where(np.isinf(nearest), nearest, wide)
        return within(ELEMENTWISE, Rounded(values, off, off, size, name))


def _conversions(source: str) -> Case:
    targets = [name for name in _TYPES if name != source]
    return jitted(
        f"op-convert-{source}",
        f"{source} converted to every other type: edges, halves, ties, each binade",
        lambda *arrays: [
            lax.convert_element_type(x, _dtype(name))
            for x, name in zip(arrays, targets, strict=True)
        ],
        lambda: [_kept(source, name) for name in targets],
        lambda *arrays: [_converted(*each) for each in zip(arrays, targets, strict=True)],
    )


def _kept(source: str, target: str) -> np.ndarray:
    x = numbers_of(source)
    return x[convertible(x, target)]


# --- Bits as they are -----------------------------------------------------------------------------


def _recast(f: Any, i: Any, h: Any, b: Any) -> list[Any]:
    return [
        lax.bitcast_convert_type(f, jnp.int32),
        lax.bitcast_convert_type(f, jnp.uint8),
        lax.bitcast_convert_type(i, jnp.float32),
        lax.bitcast_convert_type(i, jnp.uint16),
        lax.bitcast_convert_type(h, jnp.int16),
        lax.bitcast_convert_type(b.reshape(-1, 2), jnp.int16),
    ]


def _recast_by_hand(f: np.ndarray, i: np.ndarray, h: np.ndarray, b: np.ndarray) -> list[Expected]:
    return [
        exactly(f.view(np.int32)),
        exactly(f.view(np.uint8).reshape(-1, 4)),
        exactly(i.view(np.float32)),
        exactly(i.view(np.uint16).reshape(-1, 2)),
        exactly(h.view(np.int16)),
        exactly(b.view(np.int16)),
    ]


def _without_nan(x: np.ndarray) -> np.ndarray:
    """Numbers that keep their bits: a NaN's may change."""
    return x[~np.isnan(x.astype(np.float32))]


INTEGER_OPERATION_CASES = (
    *(_of_integers(dtype) for dtype in INTEGERS),
    jitted("op-bool", "every operation of truth values", _logic, _TRUTH, _logic_by_hand),
    jitted(
        "op-compare",
        "all comparisons of all pairs of specials, and of the largest whole numbers of each type",
        lambda *arrays: [
            jnp.stack([compute(*pair) for compute, _ in _COMPARISONS]) for pair in _in_pairs(arrays)
        ],
        _compared_pairs,
        lambda *arrays: [_compared(*pair) for pair in _in_pairs(arrays)],
    ),
    jitted(
        "op-total-order",
        "floats in their total order, which sorts use",
        lambda x, y: jnp.stack([primitive.bind(x, y) for primitive, _ in _TOTAL]),
        lambda: _compared_pairs()[:2],
        lambda x, y: exactly(np.stack([each(_rank(x), _rank(y)) for _, each in _TOTAL])),
    ),
    replace(
        jitted(
            "op-mulhi",
            "the high words of products",
            lambda *arrays: [lax.mulhi(*pair) for pair in _in_pairs(arrays)],
            lambda: [*pairs_of("int32"), *pairs_of("uint32"), *pairs_of("int16")],
            lambda *arrays: [_high(*pair) for pair in _in_pairs(arrays)],
        ),
        unsupported=_without_mulhi,
    ),
    *(_conversions(source) for source in _TYPES),
    jitted(
        "op-bitcast",
        "bits taken for those of another type, of the same width and of narrower ones",
        _recast,
        lambda: [
            _without_nan(np.concatenate([specials(), binades(count=1, near=2)])),
            _without_nan(np.concatenate([specials(), binades(count=1, near=2)])).view(np.int32),
            _without_nan(
                np.concatenate([specials(_BFLOAT16), binades(_BFLOAT16, count=1, near=2)])
            ),
            np.arange(256, dtype=np.uint8),
        ],
        _recast_by_hand,
    ),
)
