"""Operations on each element by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from scipy import special

from jitcount._jax.jaxprs import eval_in_doubles
from jitcount._numerics.error_bounds import EXPECTED_ULPS
from jitcount._tolerance.lanes import REFERENCE, format_of
from jitcount._tolerance.rules.rule import (
    dtype_of,
    is_inexact,
    of_same_rank,
    rule,
    same_lanes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._tolerance.lanes import Lanes
    from jitcount._tolerance.rules.rule import Compute

    Function = Callable[..., np.ndarray]

_iinfo: Any = ml_dtypes.iinfo

# What is computed by series and continued fractions, of which nothing is published.
_ULPS_OF_SERIES = 16.0

# A bound may be passed by this much: seven deviations of a uniform noise are more than its range.
_SPARE = 0.95


def _coarser(ulps: float) -> int:
    """How many bits are not right where a function is off by so many ulps."""
    if ulps <= _NEAREST:
        return 0
    # Seven deviations of a noise of 2**bits ulps, and of the rounding that follows.
    bits = 1
    while 7 * math.sqrt((4**bits + 1) / 12) < _SPARE * ulps:
        bits += 1
    return bits


_NEAREST = 0.5


def _unary(name: str, function: Function, ulps: float, bounds: tuple[float, float] | None) -> None:
    coarser, steps = _coarser(ulps), _STEPS.get(name, 0.0)
    everywhere = name != "sqrt"  # of a square it is the root

    def make(equation: Any) -> Compute:
        dtype = dtype_of(equation.outvars[0])

        def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
            y = function(x)
            if steps:
                relative = np.where(np.isfinite(x[:1]), np.abs(x[:1]) * steps, 0.0)
                y = lanes.scattered(y, relative * np.abs(y[:1]) * format_of(dtype).unit)
            if y.dtype.kind == "c" and name in _WITH_A_CUT:
                lanes.settled((x.real < 0) & np.signbit(x.imag), "the side of a branch cut")
            y = lanes.rounded(y, dtype, coarser, everywhere=everywhere)
            if bounds is not None and y.dtype.kind == "f":
                np.clip(y, *bounds, out=y)
            return y

        return compute

    rule(name)(make)


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else np.asarray(special.expit(x))


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def _cbrt(x: np.ndarray) -> np.ndarray:
    return np.cbrt(x)


_WITH_A_CUT = frozenset({"log", "sqrt"})

# Functions that backends compute as an exponential of a multiple of their argument, which is
# rounded first: by how much of the argument that moves them, relative to their size.
_STEPS = {"exp2": 0.15, "sinh": 0.15, "cosh": 0.15}

_ANY = None
_UNIT = (-1.0, 1.0)
_FUNCTIONS: tuple[tuple[str, Function, tuple[float, float] | None], ...] = (
    ("exp", np.exp, _ANY),
    ("exp2", np.exp2, _ANY),
    ("expm1", np.expm1, (-1.0, np.inf)),
    ("log", np.log, _ANY),
    ("log1p", np.log1p, _ANY),
    ("sqrt", np.sqrt, _ANY),
    ("rsqrt", _rsqrt, _ANY),
    ("cbrt", _cbrt, _ANY),
    ("sin", np.sin, _UNIT),
    ("cos", np.cos, _UNIT),
    ("tan", np.tan, _ANY),
    ("asin", np.arcsin, _ANY),
    ("acos", np.arccos, _ANY),
    ("atan", np.arctan, _ANY),
    ("sinh", np.sinh, _ANY),
    ("cosh", np.cosh, (1.0, np.inf)),
    ("tanh", np.tanh, _UNIT),
    ("asinh", np.arcsinh, _ANY),
    ("acosh", np.arccosh, _ANY),
    ("atanh", np.arctanh, _ANY),
    ("logistic", _logistic, (0.0, 1.0)),
    ("erf", special.erf, _UNIT),
    ("erfc", special.erfc, (0.0, 2.0)),
)
_ULPS = EXPECTED_ULPS | {
    "erf": 6.0,
    "expm1": 6.0,  # between 0.1 and 0.25 XLA:CPU of 0.10.2 is off by 4.7
    "exp2": 4.0,
    "cbrt": 6.0,
    **dict.fromkeys(("asin", "acos", "atan"), 8.0),
    **dict.fromkeys(("sinh", "cosh", "asinh", "acosh", "atanh", "erfc"), 12.0),
}
for _name, _function, _bounds in _FUNCTIONS:
    _unary(_name, _function, _ULPS[_name], _bounds)


# --- Functions by series --------------------------------------------------------------------------


def _by_series(name: str, function: Function, steps: Function) -> None:
    """A function that backends compute in many steps: its arguments are moved, too.

    `steps` is how far these move the result, in roundings: of its reference, from its arguments'.
    """
    coarser = _coarser(_ULPS_OF_SERIES)

    def make(equation: Any) -> Compute:
        out = dtype_of(equation.outvars[0])

        def compute(lanes: Lanes, *operands: np.ndarray) -> np.ndarray:
            ranked = of_same_rank(equation, operands)
            given = [
                _nudged(lanes, x, dtype_of(atom))
                for x, atom in zip(ranked, equation.invars, strict=True)
            ]
            y = np.asarray(function(*given))
            moved = steps(y[:1], *(x[:1] for x in ranked)) * format_of(out).unit
            return lanes.rounded(lanes.scattered(y, moved), out, coarser, everywhere=True)

        return compute

    rule(name)(make)


def _nudged(lanes: Lanes, x: np.ndarray, dtype: str) -> np.ndarray:
    """An argument moved by about half an ulp; whole numbers and what is exact are left alone."""
    if x.dtype.kind != "f" or not x.size:
        return x
    x = x.astype(np.float64)
    deviation = np.where(x[:1] == np.rint(x[:1]), 0.0, np.abs(x[:1]) * format_of(dtype).unit)
    return lanes.scattered(x, np.where(np.isfinite(deviation), deviation, 0.0))


def _polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    zeta = special.gamma(n + 1) * special.zeta(n + 1, x)
    return np.where(n == 0, special.digamma(x), np.where(n % 2 == 0, -zeta, zeta))


# Terms of a Lanczos series: near a zero of the function nothing is left of its size but these.
_LANCZOS = 8.0

for _series, _function, _steps in (
    ("erf_inv", special.erfinv, lambda y, x: np.abs(y)),
    ("lgamma", special.gammaln, lambda y, x: 1.5 * (np.abs(x) + _LANCZOS)),
    ("digamma", special.digamma, lambda y, x: 2.0 * np.minimum(np.abs(x), 1.0) + 6.0),
    ("polygamma", _polygamma, lambda y, n, x: _LANCZOS * np.abs(y)),
    ("zeta", special.zeta, lambda y, x, q: 4.0 * np.abs(y)),
    ("igamma", special.gammainc, lambda y, a, x: 2.0 * (a + _LANCZOS) * y),
    ("igammac", special.gammaincc, lambda y, a, x: 2.0 * (a + _LANCZOS) * y),
    (
        "regularized_incomplete_beta",
        special.betainc,
        lambda y, a, b, x: 3.0 * (a + b + 2 * _LANCZOS) * y,
    ),
    ("bessel_i0e", special.i0e, lambda y, x: np.abs(y)),
    ("bessel_i1e", special.i1e, lambda y, x: 4.0 * np.abs(y)),
):
    _by_series(_series, _function, _steps)


# --- Arithmetic -----------------------------------------------------------------------------------


def _binary(equation: Any, compute: Compute) -> Compute:
    """A computation whose operands have the rank of its result."""
    rank = equation.outvars[0].aval.ndim
    if all(atom.aval.ndim == rank for atom in equation.invars):
        return compute
    return lambda lanes, *operands: compute(lanes, *of_same_rank(equation, operands))


def _rounding(equation: Any, function: Function, ulps: float = 0.5) -> Compute:
    """A function of two arguments that rounds its result, if it has floats."""
    dtype, coarser = dtype_of(equation.outvars[0]), _coarser(ulps)
    if not is_inexact(dtype):
        return _binary(equation, lambda lanes, a, b: function(a, b))
    return _binary(equation, lambda lanes, a, b: lanes.rounded(function(a, b), dtype, coarser))


@rule("mul")
def _mul(equation: Any) -> Compute:
    return _rounding(equation, np.multiply)


# Bits that a sum or difference loses are worth a word from so many on.
_CANCELLED_BITS = 3.0


def _adding(equation: Any, function: Function) -> Compute:
    """A sum or difference, which remembers how many bits it has lost."""
    dtype = dtype_of(equation.outvars[0])
    if not is_inexact(dtype):
        return _binary(equation, lambda lanes, a, b: function(a, b))

    def compute(lanes: Lanes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = function(a, b)
        if lanes.is_watching:
            _remember_cancelled(lanes, a, b, total)
        return lanes.rounded(total, dtype)

    return _binary(equation, compute)


def _remember_cancelled(lanes: Lanes, a: np.ndarray, b: np.ndarray, total: np.ndarray) -> None:
    sizes = [float(np.sqrt(np.mean(np.abs(each[REFERENCE]) ** 2))) for each in (a, b, total)]
    if total.size and 0 < sizes[2] < max(sizes[:2]) < np.inf:
        bits = math.log2(max(sizes[:2]) / sizes[2])
        if bits >= _CANCELLED_BITS and bits > lanes.cancelled.get(lanes.step, (0.0,))[0]:
            lanes.cancelled[lanes.step] = bits, max(sizes[:2]), sizes[2]


@rule("add", "add_any")
def _add(equation: Any) -> Compute:
    return _adding(equation, np.add)


@rule("sub")
def _sub(equation: Any) -> Compute:
    return _adding(equation, np.subtract)


@rule("div")
def _div(equation: Any) -> Compute:
    if is_inexact(dtype_of(equation.outvars[0])):
        return _rounding(equation, np.divide, EXPECTED_ULPS["divide"])
    return _binary(equation, lambda lanes, a, b: _whole_quotient(a, b))


def _whole_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rounded towards zero; by zero it is all ones, as in XLA."""
    safe = np.where(b == 0, np.ones_like(b), b)
    with np.errstate(over="ignore"):
        quotient = (a - np.fmod(a, safe)) // safe
    return np.where(b == 0, np.asarray(-1).astype(a.dtype), quotient).astype(a.dtype)


@rule("rem")
def _rem(equation: Any) -> Compute:
    def compute(lanes: Lanes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind == "f":
            quotient = np.trunc(np.divide(a, b))
            lanes.settled(np.where(np.isfinite(quotient), quotient, 0.0), "the quotient of %")
            return np.fmod(a, b)
        return np.where(b == 0, a, np.fmod(a, np.where(b == 0, np.ones_like(b), b)))

    return _binary(equation, compute)


_ULPS_OF_POWERS = 16.0


@rule("pow")
def _pow(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    if not dtype.startswith("complex"):
        return _rounding(equation, np.power, _ULPS_OF_POWERS)

    def compute(lanes: Lanes, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        power = np.power(x, y)
        lanes.settled((x.real < 0) & np.signbit(x.imag), "the side of a branch cut")
        # An exponential of a logarithm: what that is rounded by counts as often as it is large.
        steps = np.abs(y[:1] * np.log(x[:1])) + 1
        moved = lanes.scattered(power, steps * np.abs(power[:1]) * format_of(dtype).unit)
        return lanes.rounded(moved, dtype, _coarser(_ULPS_OF_POWERS))

    return _binary(equation, compute)


@rule("integer_pow")
def _integer_pow(equation: Any) -> Compute:
    power, dtype = equation.params["y"], dtype_of(equation.outvars[0])
    if not is_inexact(dtype):
        return lambda lanes, x: np.power(x, np.asarray(power, x.dtype))
    # Repeated squares double what they were off before, and so do products one after another.
    products = max(abs(power) - 1, 1) * 0.5
    coarser = _coarser(products + (EXPECTED_ULPS["divide"] if power < 0 else 0.0))

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        y = np.power(x, power) if power >= 0 else 1 / np.power(x, -power)
        return lanes.rounded(y, dtype, coarser)

    return compute


@rule("square")
def _square(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    if not is_inexact(dtype):
        return lambda lanes, x: np.multiply(x, x)
    return lambda lanes, x: lanes.rounded(np.multiply(x, x), dtype)


@rule("atan2")
def _atan2(equation: Any) -> Compute:
    dtype, coarser = dtype_of(equation.outvars[0]), _coarser(8.0)

    def compute(lanes: Lanes, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        lanes.settled((x < 0) & np.signbit(y), "the side of a branch cut")
        return lanes.rounded(np.arctan2(y, x), dtype, coarser, everywhere=True)

    return _binary(equation, compute)


@rule("nextafter")
def _nextafter(equation: Any) -> Compute:
    dtype: Any = equation.outvars[0].aval.dtype

    def compute(lanes: Lanes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if dtype == np.float64:
            return np.nextafter(a, b)
        return np.nextafter(a.astype(dtype), b.astype(dtype)).astype(np.float64)

    return _binary(equation, compute)


# --- What is exact --------------------------------------------------------------------------------


def _exact(name: str, function: Function) -> None:
    def make(equation: Any) -> Compute:
        return _binary(equation, lambda lanes, *operands: function(*operands))

    rule(name)(make)


def _sign(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    return np.sign(x)


def _shift(function: Function, *, is_arithmetic: bool = False) -> Function:
    def shifted(x: np.ndarray, by: np.ndarray) -> np.ndarray:
        bits = 8 * x.dtype.itemsize
        unsigned = np.dtype(f"uint{bits}")
        beyond = by.astype(unsigned) >= bits
        kept = np.where(beyond, 0, by).astype(x.dtype)
        if is_arithmetic:
            signed = x.view(f"int{bits}")
            kept = np.where(beyond, bits - 1, by).astype(signed.dtype)
            return function(signed, kept).view(x.dtype)
        made = function(x.view(unsigned), kept.view(unsigned))
        return np.where(beyond, np.zeros_like(made), made).view(x.dtype)

    return shifted


_EXACT: dict[str, Function] = {
    "neg": np.negative,
    "conj": np.conj,
    "real": lambda x: x.real.copy(),
    "imag": lambda x: x.imag.copy(),
    "complex": lambda a, b: a + 1j * b,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shift_left": _shift(np.left_shift),
    "shift_right_logical": _shift(np.right_shift),
    "shift_right_arithmetic": _shift(np.right_shift, is_arithmetic=True),
}
for _name, _function in _EXACT.items():
    _exact(_name, _function)


@rule("abs")
def _abs(equation: Any) -> Compute:
    dtype = dtype_of(equation.outvars[0])
    if dtype_of(equation.invars[0]).startswith("complex"):
        return lambda lanes, x: lanes.rounded(np.abs(x), dtype, 1)
    return lambda lanes, x: np.abs(x)


@rule(
    "copy", "copy_p", "stop_gradient", "optimization_barrier", "device_put", "pvary", "pcast",
    "sharding_constraint", "mesh_cast", "reshard",
)  # fmt: skip
def _same(equation: Any) -> Compute:
    return lambda lanes, *operands: operands if len(operands) > 1 else operands[0]


@rule("sign")
def _sign_of(equation: Any) -> Compute:
    if dtype_of(equation.outvars[0]).startswith("complex"):
        dtype = dtype_of(equation.outvars[0])
        return lambda lanes, x: lanes.rounded(_sign(x), dtype, 1)
    return lambda lanes, x: lanes.settled(_sign(x), "the sign")


# --- Decisions ------------------------------------------------------------------------------------


def _decision(name: str, function: Function, words: str) -> None:
    def make(equation: Any) -> Compute:
        compute = _binary(equation, lambda lanes, *operands: function(*operands))
        return lambda lanes, *operands: lanes.settled(compute(lanes, *operands), words)

    rule(name)(make)


def _total_order(function: Function) -> Function:
    """A comparison in which NaN is the largest number, as in sorts."""

    def compared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind != "f":
            return function(a, b)
        one, other = np.isnan(a), np.isnan(b)
        return np.where(one | other, function(one, other), function(a, b))

    return compared


_COMPARISONS: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt_to": _total_order(np.less),
    "le_to": _total_order(np.less_equal),
}
for _name, _function in _COMPARISONS.items():
    _decision(_name, _function, "the comparison")
_decision("is_finite", np.isfinite, "the test for finite numbers")
_decision("floor", np.floor, "the whole number")
_decision("ceil", np.ceil, "the whole number")


@rule("round")
def _round(equation: Any) -> Compute:
    to_even = "EVEN" in getattr(equation.params["rounding_method"], "name", "")

    def away(x: np.ndarray) -> np.ndarray:
        return np.copysign(np.floor(np.abs(x) + 0.5), x)

    function = np.rint if to_even else away
    return lambda lanes, x: lanes.settled(function(x), "the whole number")


# --- Choices --------------------------------------------------------------------------------------


@rule("select_n")
def _select_n(equation: Any) -> Compute:
    cases = len(equation.invars) - 1

    def compute(lanes: Lanes, which: np.ndarray, *values: np.ndarray) -> np.ndarray:
        if which.ndim != values[0].ndim:
            which = which.reshape(which.shape[0], *[1] * (values[0].ndim - 1))
        if cases == 1:
            return values[0]
        if which.dtype == np.bool_:
            if which.shape[0] == 1 and (values[0].shape[0] > 1 or values[1].shape[0] > 1):
                # What is chosen may be the same in all lanes though the other is not.
                if not which.any():
                    return values[0]
                if which.all():
                    return values[1]
            return np.where(which, values[1], values[0])
        return np.choose(which, values)

    return compute


@rule("clamp")
def _clamp(equation: Any) -> Compute:
    return _binary(
        equation,
        lambda lanes, low, x, high: np.minimum(np.maximum(x, low), high),
    )


# --- Conversions ----------------------------------------------------------------------------------


@rule("convert_element_type")
def _convert(equation: Any) -> Compute:
    source, to = dtype_of(equation.invars[0]), dtype_of(equation.outvars[0])
    if is_inexact(to):
        return _to_floats(source, to)
    dtype = np.dtype(bool) if to == "bool" else equation.outvars[0].aval.dtype
    if not is_inexact(source):
        return lambda lanes, x: x.astype(dtype)
    if to == "bool":
        return lambda lanes, x: lanes.settled(x != 0, "the comparison with zero")
    return lambda lanes, x: lanes.settled(_to_whole(x, dtype), "the whole number")


def _to_floats(source: str, to: str) -> Compute:
    wide: Any = np.complex128 if to.startswith("complex") else np.float64
    if not is_inexact(source):
        if source == "bool":
            return lambda lanes, x: x.astype(wide)
        return lambda lanes, x: lanes.rounded(x.astype(wide), to)
    real = source.startswith("complex") and not to.startswith("complex")
    narrows = format_of(to).mantissa < format_of(source).mantissa
    grows = format_of(to).largest < format_of(source).largest

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        x = x.real if real else x
        if not (narrows or grows):
            return x if x.dtype == wide else x.astype(wide)
        return lanes.rounded(np.array(x, wide), to)

    return compute


def _to_whole(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Towards zero; what the dtype does not hold becomes its nearest, and NaN zero."""
    x = x.real if x.dtype.kind == "c" else x
    limits = _iinfo(dtype)
    cut = np.trunc(np.where(np.isnan(x), 0.0, x))
    inside = np.clip(cut, float(limits.min), float(limits.max))
    with np.errstate(invalid="ignore"):
        whole = inside.astype(dtype)
    whole = np.where(inside >= float(limits.max), np.asarray(limits.max, dtype), whole)
    return whole.astype(dtype)


@rule("bitcast_convert_type")
def _bitcast(equation: Any) -> Compute:
    before, after = equation.invars[0].aval, equation.outvars[0].aval

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        narrow = np.ascontiguousarray(x.astype(before.dtype))
        made = _viewed(narrow, after)
        if is_inexact(after.dtype.name):
            wide: Any = np.complex128 if "complex" in after.dtype.name else np.float64
            return made.astype(wide)
        return lanes.settled(made)

    return compute


def _viewed(values: np.ndarray, after: Any) -> np.ndarray:
    shape = (values.shape[0], *after.shape)
    if values.ndim == 1:
        values = values[:, None]
    return values.view(after.dtype).reshape(shape)


@rule("reduce_precision")
def _reduce_precision(equation: Any) -> Compute:
    """Rounded to the nearest in all lanes: the program asks for it."""
    mantissa, exponent = equation.params["mantissa_bits"], equation.params["exponent_bits"]
    bias = (1 << (exponent - 1)) - 1
    largest = (2.0 - 2.0**-mantissa) * 2.0**bias if exponent < 11 else np.inf
    least = 2.0 ** (1 - bias) if exponent < 11 else 0.0

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        fraction, power = np.frexp(x)
        kept = np.ldexp(np.rint(np.ldexp(fraction, mantissa + 1)), power - mantissa - 1)
        kept = np.where(np.isfinite(x), kept, x)
        kept = np.where(np.abs(kept) > largest, np.copysign(np.inf, x), kept)
        return np.where(np.abs(kept) < least, np.copysign(0.0, x), kept)

    return compute


@rule("igamma_grad_a", "random_gamma_grad")
def _by_jax_in_doubles(equation: Any) -> Compute:
    """A function that only JAX has, in double precision; like all of these, by series."""
    dtype, coarser = dtype_of(equation.outvars[0]), _coarser(_ULPS_OF_SERIES)

    def compute(lanes: Lanes, *operands: np.ndarray) -> np.ndarray:
        ranked = np.broadcast_arrays(*of_same_rank(equation, operands))
        given = [
            _nudged(lanes, np.array(x), dtype_of(atom))
            for x, atom in zip(ranked, equation.invars, strict=True)
        ]
        found = np.array(eval_in_doubles(equation, same_lanes(given)))
        moved = _LANCZOS * np.abs(found[:1]) * format_of(dtype).unit
        return lanes.rounded(lanes.scattered(found, moved), dtype, coarser, everywhere=True)

    return compute


@rule("population_count", "clz")
def _counted_bits(equation: Any) -> Compute:
    bits = 8 * equation.invars[0].aval.dtype.itemsize
    leading = equation.primitive.name == "clz"

    def compute(lanes: Lanes, x: np.ndarray) -> np.ndarray:
        ones = [(x.view(f"uint{bits}") >> at) & 1 for at in range(bits)]
        if not leading:
            return np.sum(ones, 0).astype(x.dtype)
        seen, zeros = np.zeros(x.shape, bool), np.zeros(x.shape, np.int64)
        for one in reversed(ones):
            seen |= one.astype(bool)
            zeros += ~seen
        return zeros.astype(x.dtype)

    return compute
