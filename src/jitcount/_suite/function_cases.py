"""Every function of floats, on all classes of arguments: specials, and each binade of its argument.

The reference is NumPy's or SciPy's in double precision; a test compares it with mpmath's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from jitcount._emulate.active_target import active_target
from jitcount._numerics.error_bounds import smallest_normal, unit_roundoff
from jitcount._numerics.expected import DECLARED as DECLARED_BOUND
from jitcount._numerics.expected import ELEMENTWISE, exactly, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.arguments import LONG, binades, extremes, specials, to_a_tile_but_one
from jitcount._suite.data import spread
from jitcount._suite.functions import (
    DECLARED,
    IGAMMA_SLOPE,
    ONE_ARGUMENT,
    POLYGAMMA,
    TWO_ARGUMENTS,
    Function,
)
from jitcount._suite.jitted import jitted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount._numerics.expected import Expected
    from jitcount._suite.case import Case

_NARROW = (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16))

# What XLA's own tests let pass, and why a backend may use it up.
_XLAS_ULPS = 20.0
_MAY = "XLA's exhaustive tests let its functions be 20 ulps off; a CPU's libraries are better"


def may_be_off(*functions: Function) -> str:
    """Why functions may be less exact than a CPU's; empty on a CPU that emulates nothing."""
    if active_target() or jax.devices()[0].platform != "cpu":
        return _MAY
    return next((function.may for function in functions if function.may), "")


def true_values(function: Function, arguments: Sequence[np.ndarray]) -> np.ndarray:
    """What a function of these arguments is, in double precision."""
    with np.errstate(all="ignore"):
        return np.asarray(function.reference(*(one.astype(np.float64) for one in arguments)))


def error_bound(
    function: Function, arguments: Sequence[np.ndarray], ulps: float | None = None
) -> np.ndarray:
    """How far off a result may be; zeros where it is infinite or NaN."""
    dtype = arguments[0].dtype.name
    ulp = 2 * unit_roundoff(dtype)
    wide = [one.astype(np.float64) for one in arguments]
    values = true_values(function, arguments)
    with np.errstate(all="ignore"):
        own = max(function.ulps if ulps is None else ulps, 0.5) * ulp
        bound = np.maximum(own, function.relative) * np.abs(values)
        for place, argument in enumerate(wide):
            for moved in (1 - ulp, 1 + ulp) if function.argument_ulps else ():
                others = [*wide[:place], argument * moved, *wide[place + 1 :]]
                bound = np.maximum(
                    bound, own * np.abs(values) + np.abs(function.reference(*others) - values)
                )
        if function.cancelled:
            bound = bound + own * function.cancelled(*wide)
        # Such a result may be flushed to zero, and so may the half of it on the way.
        tiny = smallest_normal(dtype)
        bound = bound + np.where(np.abs(values) < 4 * tiny, 4 * tiny, 0.0)
    return np.where(np.isfinite(values) & np.isfinite(bound), bound * (1 + 2.0**-40), 0.0)


def _held(values: np.ndarray, dtype: Any) -> np.ndarray:
    """True values in double precision, infinite where a type cannot hold them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(
            np.isinf(values.astype(dtype).astype(np.float64)), np.inf * np.sign(values), values
        )


def has_certain_result(function: Function, arguments: Sequence[np.ndarray]) -> np.ndarray:
    """Whether a result is not about to overflow, and no number on the way to it is."""
    dtype = arguments[0].dtype
    largest, smallest = extremes(dtype)
    values = np.abs(true_values(function, arguments))
    bound = error_bound(function, arguments, _XLAS_ULPS if function.ulps > 1 else None)
    with np.errstate(all="ignore"):
        keep = ~np.isin(arguments[0], function.poles)
        overflows = values - bound > largest * (1 + unit_roundoff(dtype.name))
        is_exact = function.is_ieee or not function.ulps
        keep &= (values + bound < largest) | overflows | is_exact
        if function.is_ieee:
            keep &= (values == 0) | (values >= smallest)
        if function.passes:
            on_the_way = np.abs(function.passes(*(one.astype(np.float64) for one in arguments)))
            keep &= (on_the_way > 4 * smallest) & (on_the_way < largest) | ~np.isfinite(values)
        keep |= np.isnan(values)
    return keep


def certain(function: Function, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arguments that have a certain result."""
    keep = has_certain_result(function, arguments)
    return [one[keep] for one in arguments]


def expected_values(function: Function, *arguments: np.ndarray) -> Expected:
    """What a backend must return for these arguments."""
    if function.is_ieee:
        dtype = arguments[0].dtype
        with np.errstate(all="ignore"):
            return exactly(_held(true_values(function, arguments), dtype).astype(dtype))
    kind = DECLARED_BOUND if function.relative else ELEMENTWISE
    return within(kind, _rounded(function, *arguments), may=may_be_off(function))


def _rounded(function: Function, *arguments: np.ndarray) -> Rounded:
    """The true values, and how far off a backend may be."""
    dtype = arguments[0].dtype
    values = _held(true_values(function, arguments), dtype)
    likely = error_bound(function, arguments)
    widest = max(function.ulps, _XLAS_ULPS if function.ulps > 1 else 0.5)
    bound = np.maximum(likely, error_bound(function, arguments, widest))
    scale = np.where(np.isfinite(values), np.abs(values), 0.0) + 2 * bound / 1e-3
    return Rounded(values, bound, likely, scale, dtype.name)


# --- The arguments of a function ------------------------------------------------------------------


def _of_one_argument(function: Function, dtype: Any = np.float32) -> np.ndarray:
    every = binades(dtype) if dtype == np.float32 else binades(dtype, count=2, near=4)
    with np.errstate(over="ignore"):
        edges = _EDGES.astype(dtype)
    return _mixed(function, [np.concatenate([specials(dtype), edges, every])])[0]


# Where functions leave their domain, and where they leave float32: exp at 88.72 and -87.3, sinh at
# 89.4, exp2 at 128 and -126; also past 1e5, where an angle needs more digits than float32 has.
_EDGES = np.array([
    *(sign * (1 + step * 2.0**-24) for sign in (1, -1) for step in (-9, -1, 2, 9)),
    *(87.6, 88.0, 88.3, 88.7, 88.75, 89.1, 89.35, 89.5, 126.5, 127.1, 127.8, 128.5),
    *(-86.6, -87.2, -88.0, -104.0, -125.5, -127.0, -151.0, 1e4, 1e5, 1.2e5, 1e6, 1e7, 1e-8),
])  # fmt: skip

# Arguments that all functions have a value for, or all but acosh, or those of 1 and more.
_ORDINARY = np.array([0.71875, 1.28125, 0.40625, 2.71875, 0.84375, 5.3125])


def _mixed(function: Function, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Those arguments that have a certain result, in no order, with ordinary ones at the end."""
    kept = certain(function, arguments)
    return [
        to_a_tile_but_one(one, np.roll(_ORDINARY, place).astype(one.dtype))
        for place, one in enumerate(kept)
    ]


_ALL_PAIRS = np.array(np.meshgrid(specials(), specials())).reshape(2, -1).astype(np.float32)


def _of_two_arguments(function: Function, dtype: Any = np.float32) -> list[np.ndarray]:
    """All pairs of specials; each binade of each argument, beside near and far ones."""
    count, near_one = (5, 20) if dtype == np.float32 else (2, 4)
    x, y = (binades(dtype, seed=seed, count=count, near=near_one) for seed in (3, 4))
    turned = y[np.argsort(spread(len(y), dtype="float64", seed=5))]
    wide = x.astype(np.float64)
    largest, smallest = extremes(dtype)
    size = np.exp2(np.round(spread(len(x), dtype="float64", seed=6) * 16))
    near = np.clip(wide * (1 + spread(len(x), dtype="float64", seed=7)) * size, -largest, largest)
    if function.name == "pow":
        # Exponents so that neither zero nor infinity comes out of all of them.
        x, turned = np.abs(x), (spread(len(x), seed=8) * 2).astype(dtype)
        length = np.maximum(np.abs(np.log2(np.abs(wide))), 1)
        near = 64 * spread(len(x), dtype="float64", seed=9) / length
    near[np.abs(near) < smallest] = 1
    left, right = np.meshgrid(specials(dtype), specials(dtype))
    first, second = [left.ravel(), x, x], [right.ravel(), turned, near.astype(dtype)]
    return _mixed(function, [np.concatenate(first), np.concatenate(second)])


# --- The cases ------------------------------------------------------------------------------------


def _case(name: str, functions: Sequence[Function]) -> Case:
    """The case of a primitive of one argument, in all its forms."""
    return jitted(
        f"op-{name.replace('_', '-')}",
        f"{name} of zeros, infinities, NaN and each binade",
        lambda *arrays: [one.compute(x) for one, x in zip(functions, arrays, strict=True)],
        lambda: [_of_one_argument(function) for function in functions],
        lambda *arrays: [expected_values(*each) for each in zip(functions, arrays, strict=True)],
    )


def _case_of_pairs(function: Function) -> Case:
    return jitted(
        f"op-{function.name}",
        f"{function.name} of all pairs of zeros, infinities and NaN, and each binade",
        function.compute,
        lambda: _of_two_arguments(function),
        lambda x, y: expected_values(function, x, y),
    )


# --- Sizes ----------------------------------------------------------------------------------------


def _count(function: Function) -> int:
    return 1 if function in ONE_ARGUMENT else 2


def _single(function: Function) -> np.ndarray:
    """One number that the function has a value other than zero for."""
    values = true_values(function, [_ORDINARY] * _count(function))
    return _ORDINARY[np.isfinite(values) & (values != 0)][:1].astype(np.float32)


def _of_single(*numbers: Any) -> list[Any]:
    """Each function of one number, all in one result."""
    pairs = zip(_SIZED, numbers, strict=True)
    return [jnp.concatenate([each.compute(*[x] * _count(each)) for each, x in pairs])]


def _of_single_by_hand(*numbers: np.ndarray) -> list[Expected]:
    pairs = zip(_SIZED, numbers, strict=True)
    parts = [_rounded(each, *[x] * _count(each)) for each, x in pairs]
    return [_together(parts, may=may_be_off(*_SIZED))]


_SIZED = (*ONE_ARGUMENT, *TWO_ARGUMENTS)
_PERIOD = 331  # a prime: each place of a tile sees each number


def _long_arguments() -> list[np.ndarray]:
    some = np.concatenate([np.resize(_ORDINARY, 200), specials(), binades(count=0, near=4)])
    some = some[:_PERIOD].astype(np.float32)
    return [np.resize(some, LONG), np.resize(np.roll(some, 7), LONG)]


def _unlike_the_first(x: Any, y: Any) -> list[Any]:
    """How many results of a long array are unlike those of its first numbers, which repeat."""
    counts = []
    for function in _SIZED:
        arguments = (x, y)[: _count(function)]
        found = function.compute(*arguments)
        again = jnp.tile(found[:_PERIOD], LONG // _PERIOD + 1)[:LONG]
        is_near = jnp.abs(found - again) <= _LONG_ULPS * 2.0**-23 * jnp.abs(again)
        is_same = (found == again) | is_near | ((found != found) & (again != again))  # noqa: PLR0124
        counts.append(lax.reduce_sum((~is_same).astype(np.int32), (0,)))
    return [jnp.stack(counts)]


# A result may depend on its place in a vector by the error of each.
_LONG_ULPS = 7.0


# The exponents of 16-bit types are rounded by some backends before they are used.
_WIDE_ONLY = ("exp2", "integer_pow")
_OF_16_BITS = tuple(one for one in ONE_ARGUMENT if one.name not in _WIDE_ONLY)


def _narrow_case(dtype: np.dtype) -> Case:
    """All functions of one argument in a type of 16 bits, in one program."""
    name = dtype.name
    return jitted(
        f"op-{name}",
        f"every function in {name}",
        lambda *arrays: [
            jnp.concatenate([one.compute(x) for one, x in group])
            for group in _in_groups(zip(_OF_16_BITS, arrays, strict=True))
        ],
        lambda: [_of_one_argument(function, dtype) for function in _OF_16_BITS],
        lambda *arrays: [
            _together([expected_narrow(one, x) for one, x in group])
            for group in _in_groups(zip(_OF_16_BITS, arrays, strict=True))
        ],
    )


def _narrow_pairs(dtype: np.dtype) -> Case:
    """All functions of two arguments in a type of 16 bits, in one program."""
    name = dtype.name

    def in_pairs(arrays: Sequence[Any]) -> list[tuple[Function, Any, Any]]:
        return list(zip(TWO_ARGUMENTS, arrays[::2], arrays[1::2], strict=True))

    return jitted(
        f"op-{name}-pairs",
        f"every function of two numbers in {name}",
        lambda *arrays: [jnp.concatenate([one.compute(x, y) for one, x, y in in_pairs(arrays)])],
        lambda: [x for each in TWO_ARGUMENTS for x in _of_two_arguments(each, dtype)],
        lambda *arrays: _together([expected_narrow(*each) for each in in_pairs(arrays)]),
    )


def _in_groups(pairs: Iterable[tuple[Function, Any]]) -> list[list[tuple[Function, Any]]]:
    """Ten at a time: a compiler that fuses them needs less than for each by itself."""
    found = list(pairs)
    return [found[at : at + 10] for at in range(0, len(found), 10)]


def expected_narrow(function: Function, *arguments: np.ndarray) -> Rounded:
    """The true values, within an ulp: computed in float32, then rounded."""
    dtype = arguments[0].dtype
    values = _held(true_values(function, arguments), dtype)
    bound = error_bound(replace(function, ulps=_NARROW_ULPS), arguments)
    scale = np.where(np.isfinite(values), np.abs(values), 0.0)
    return Rounded(values, _XLAS_ULPS / _NARROW_ULPS * bound, bound, scale, dtype.name)


# XLA:CPU of 0.7 computes some of them in float16 itself.
_NARROW_ULPS = 2.0


def _together(parts: Sequence[Rounded], kind: str = ELEMENTWISE, may: str = "") -> Expected:
    values, errors, likely, scale = (
        np.concatenate([getattr(one, name) for one in parts])
        for name in ("values", "errors", "likely", "scale")
    )
    joined = Rounded(values, errors, likely, scale, parts[0].dtype)
    return within(kind, joined, may=may or may_be_off())


def _between(ranges: Sequence[tuple[float, float]]) -> list[np.ndarray]:
    """Numbers between the bounds of each argument, as many in each octave."""
    found = []
    for place, (low, high) in enumerate(ranges):
        drawn = spread(895, dtype="float64", seed=20 + place) + 0.5
        found.append(np.exp2(np.log2(low) + drawn * np.log2(high / low)).astype(np.float32))
    return found


def _orders_and_numbers() -> list[np.ndarray]:
    order = np.tile(np.arange(1, 5), 195).astype(np.float32)
    return [order, _between([(0.25, 16.0)])[0][: len(order)]]


def _declared_case(function: Function, data: Any, edges: Sequence[Sequence[float]]) -> Case:
    """The case of a function with a declared bound, and of its values at the edges.

    Both are in one call: such a function takes long to compile.
    """
    *at, values = np.array(edges, np.float32).T

    def expected(*arrays: np.ndarray) -> Expected:
        inside = _rounded(function, *(one[len(values) :] for one in arrays))
        nothing = np.zeros(len(values))
        edge = Rounded(values.astype(np.float64), nothing, nothing, nothing, "float32")
        return _together([edge, inside], DECLARED_BOUND)

    return jitted(
        f"op-{function.name.replace('_', '-')}",
        f"{function.name} within what is declared for it, and at its edges",
        function.compute,
        lambda: [np.concatenate(pair) for pair in zip(at, data(), strict=True)],
        expected,
    )


_NAN, _INF = float("nan"), float("inf")

# Arguments and value at the edges of each.
_AT_EDGES = {
    "igamma": (
        (1, 0, 0),
        (2.5, 0, 0),
        (1, _INF, 1),
        (2, _NAN, _NAN),
        (_NAN, 2, _NAN),
        (2, -1, _NAN),
    ),
    "igammac": (
        (1, 0, 1),
        (2.5, 0, 1),
        (1, _INF, 0),
        (2, _NAN, _NAN),
        (_NAN, 2, _NAN),
        (2, -1, _NAN),
    ),
    "zeta": ((1, 2, _INF), (_NAN, 2, _NAN), (2, _NAN, _NAN), (0.5, 2, _NAN)),
    "regularized_incomplete_beta": (
        (2, 3, 0, 0),
        (2, 3, 1, 1),
        (2, 3, _NAN, _NAN),
        (2, 3, -1, _NAN),
    ),
    "polygamma": ((1, 0, _INF), (1, _NAN, _NAN), (2, _NAN, _NAN)),
}

# --- Functions with another type or with parameters -----------------------------------------------

_BITS = ((5, 10), (8, 7), (8, 10), (4, 3), (8, 1), (8, 23))


def reduced(x: np.ndarray, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """Numbers rounded to fewer bits, ties to even; none of them is denormal then."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(wide)
        steps = 2.0 ** (mantissa_bits + 1)
        rounded = np.ldexp(np.rint(mantissa * steps) / steps, exponent)
        most = 2 ** (exponent_bits - 1)
        rounded = np.where(np.abs(rounded) >= 2.0**most, np.copysign(np.inf, wide), rounded)
        is_special = ~np.isfinite(wide) | (wide == 0)
        return np.where(is_special, wide, rounded).astype(np.float32)


def _kept(x: np.ndarray, exponent_bits: int) -> np.ndarray:
    """Numbers that are not denormal with so many bits of an exponent."""
    size = np.abs(x)
    return x[(size == 0) | (size >= 2.0 ** (2 - 2 ** (exponent_bits - 1))) | np.isnan(x)]


def _ties() -> np.ndarray:
    """Numbers halfway between two of a type with few bits, and the ones beside them."""
    halves = [
        (1 + (k + 0.5) / 2**bits) * sign
        for bits in (1, 3, 7, 10)
        for k in range(6)
        for sign in (1, -1)
    ]
    exact = np.array(halves, np.float32)
    return np.concatenate(
        [exact, np.nextafter(exact, np.float32(9)), np.nextafter(exact, np.float32(-9))]
    )


def _polynomial(x: Any, coefficients: Sequence[Any]) -> Any:
    if hasattr(lax, "polynomial"):
        return lax.polynomial(x, coefficients)
    return jnp.polyval(jnp.stack(coefficients[::-1]), x)


OTHER_FUNCTIONS = (
    jitted(
        "op-polynomial",
        "polynomials of whole numbers, and of none",
        lambda x, *each: [_polynomial(x, each), _polynomial(x, each[:1])],
        lambda: [np.arange(-6, 7, dtype=np.float32), *np.array([3, -2, 0, 5, 1, -4], np.float32)],
        lambda x, *each: [
            exactly(np.polynomial.Polynomial(each)(x).astype(np.float32)),
            exactly(np.full_like(x, each[0])),
        ],
    ),
    jitted(
        "op-is-finite",
        "whether a number is neither infinite nor NaN",
        lambda *arrays: [lax.is_finite(x) for x in arrays],
        lambda: [
            np.concatenate([specials(dtype), binades(dtype, count=1, near=3)])
            for dtype in (np.dtype("float32"), *_NARROW)
        ],
        lambda *arrays: [exactly(np.isfinite(x.astype(np.float32))) for x in arrays],
    ),
    jitted(
        "op-nextafter",
        "the next number in the direction of another",
        lambda x, y, a, b: [lax.nextafter(x, y), lax.nextafter(a, b)],
        lambda: [
            *_normal_steps(_ALL_PAIRS),
            *_normal_steps(np.stack([binades(seed=11), binades(seed=12)[::-1]])),
        ],
        lambda x, y, a, b: [exactly(_next(x, y)), exactly(_next(a, b))],
    ),
    jitted(
        "op-reduce-precision",
        "numbers rounded to fewer bits, ties to even, infinite where they are too large",
        lambda *arrays: [
            lax.reduce_precision(x, *bits) for x, bits in zip(arrays, _BITS, strict=True)
        ],
        lambda: [
            _kept(np.concatenate([specials(), _ties(), binades(seed=13)]), exponent_bits)
            for exponent_bits, _ in _BITS
        ],
        lambda *arrays: [exactly(reduced(x, *bits)) for x, bits in zip(arrays, _BITS, strict=True)],
    ),
    jitted(
        "op-clamp",
        "numbers between bounds; the upper one where they cross; NaN stays NaN",
        lax.clamp,
        lambda: [one.astype(np.float32) for one in _triples()],
        lambda low, x, high: exactly(np.minimum(np.maximum(x, low), high)),
    ),
    jitted(
        "op-select-n",
        "one of several values for each place",
        lambda where, which, a, b, c: [lax.select_n(where, a, b), lax.select_n(which, a, b, c)],
        lambda: [
            spread(129, seed=41) > 0,
            np.abs(spread(129, seed=42) * 6).astype(np.int32),
            *(np.roll(np.resize(specials(), 129), by) for by in (0, 1, 5)),
        ],
        lambda where, which, a, b, c: [
            exactly(np.asarray(np.where(where, b, a))),
            exactly(np.asarray(np.where(which == 0, a, np.where(which == 1, b, c)))),
        ],
    ),
)


def _next(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.nextafter(x, y)


def _normal_steps(pairs: np.ndarray) -> list[np.ndarray]:
    """Pairs whose first one steps to no denormal."""
    smallest = extremes(np.float32)[1]
    with np.errstate(all="ignore"):
        after = np.abs(np.nextafter(pairs[0], pairs[1]))
    keep = ~((after > 0) & (after < smallest))
    return [one[keep] for one in pairs]


def _triples() -> np.ndarray:
    """All triples of a few numbers, and each binade between bounds."""
    some = np.array([0.0, np.inf, -np.inf, 1.0, -1.0, 2.5, -3e38, 3e38, np.nan])
    every = binades(count=1, near=3, seed=15).astype(np.float64)
    bounds = np.resize([np.inf, 2.0**60], len(every))
    triples = np.array(np.meshgrid(some[:-1], some, some[:-1])).reshape(3, -1)
    return np.concatenate([triples, [-bounds, every, bounds]], 1)


def _names(functions: Sequence[Function]) -> list[str]:
    return list(dict.fromkeys(function.name for function in functions))


FUNCTION_CASES = (
    jitted(
        "op-single",
        "every function of an array of one number",
        _of_single,
        lambda: [_single(function) for function in _SIZED],
        _of_single_by_hand,
    ),
    jitted(
        "op-functions-long",
        "every function of more than 2**20 numbers, which repeat: so do the results",
        _unlike_the_first,
        _long_arguments,
        lambda *_: exactly(np.zeros(len(_SIZED), np.int32)),
    ),
    *(
        _case(name, [one for one in ONE_ARGUMENT if one.name == name])
        for name in _names(ONE_ARGUMENT)
    ),
    *(_case_of_pairs(function) for function in TWO_ARGUMENTS),
    *(
        _declared_case(function, lambda ranges=ranges: _between(ranges), _AT_EDGES[function.name])
        for function, ranges in DECLARED
    ),
    jitted(
        "op-igamma-grad-a",
        "the derivative of igamma by its first argument",
        IGAMMA_SLOPE[0].compute,
        lambda: [one[:299] for one in _between(IGAMMA_SLOPE[1])],
        lambda *arrays: expected_values(IGAMMA_SLOPE[0], *arrays),
    ),
    _declared_case(POLYGAMMA, _orders_and_numbers, _AT_EDGES["polygamma"]),
    *(_narrow_case(dtype) for dtype in _NARROW),
    *(_narrow_pairs(dtype) for dtype in _NARROW),
    *OTHER_FUNCTIONS,
)
