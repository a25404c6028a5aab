"""``python -m tools.faults.drawn``: faults drawn at random, one operation after another.

A drawn fault is an operation, a type, a class of arguments (numbers of a few binades, one special,
the rest of a tile, all places beyond a power of two, indices out of range, arrays that are spread)
and an error of at least eight ulps, or a wrong special. What is drawn does not depend on the
arguments of the suite's cases. A draw that changes nothing, on arguments of its class that are
drawn for it, is no fault, and is drawn again.

Exits with 1 if less than 99 % are noticed.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from jitcount._ledger.findings import verdicts
from jitcount._suite.case import run_case
from jitcount._suite.cases import CASES, OPERATION_CASES
from jitcount._suite.operations import TESTED
from tools.faulty import Operation, operations_heard, primitives_replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jitcount._suite.case import Case

_finfo: Any = ml_dtypes.finfo

ENOUGH = 0.99
COUNT = 300

_LEAST_ULPS = 8
_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
_WIDTHS = ("float32", "int32", "bfloat16", "uint8", "bool")
_FLOATS = ("float32", "float32", "float16", "bfloat16")

# --- What can be drawn ----------------------------------------------------------------------------

_ONE_FLOAT = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e"),
    *("cbrt", "ceil", "cos", "cosh", "digamma", "erf", "erf_inv", "erfc", "exp", "expm1", "floor"),
    *("is_finite", "lgamma", "log", "log1p", "log2", "logistic", "neg", "one_minus_square"),
    *("round", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh"),
)
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")

# The types that each operation on single numbers is drawn in.
_ELEMENTWISE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ONE_FLOAT, _FLOATS),
    **dict.fromkeys(("exp2", "integer_pow"), ("float32",)),
    **dict.fromkeys(("atan2", "pow"), _FLOATS),
    **dict.fromkeys(("add", "div", "max", "min", "mul", "rem", "sub"), (*_FLOATS, *_INTEGERS)),
    **dict.fromkeys(("and", "or", "xor", "not"), (*_INTEGERS, "bool")),
    **dict.fromkeys(("clz", "population_count"), _INTEGERS),
    **dict.fromkeys(("shift_left", "shift_right_arithmetic", "shift_right_logical"), _INTEGERS),
    **dict.fromkeys(_COMPARISONS, (*_FLOATS, *_INTEGERS)),
    **dict.fromkeys(("eq_to", "le_to", "lt_to", "nextafter", "clamp"), ("float32",)),
    "mulhi": ("int16", "int32", "uint32"),
    "convert_element_type": ("bool", *_INTEGERS, "float16", "bfloat16", "float32"),
    **dict.fromkeys(("real", "imag", "conj"), ("complex64",)),
    "reduce_precision": ("float32",),
    "bitcast_convert_type": ("float32",),
}

# What is reduced, moved, sorted, multiplied; and the types.
_ON_ARRAYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("broadcast_in_dim", "concatenate", "pad", "reshape", "rev", "slice", "transpose"), _WIDTHS
    ),
    **dict.fromkeys(("copy", "split", "squeeze", "gather", "select_n"), _WIDTHS),
    **dict.fromkeys(("stack", "tile", "unstack"), _WIDTHS),
    **dict.fromkeys(("dynamic_slice", "dynamic_update_slice"), ("float32",)),
    **dict.fromkeys(
        ("scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul", "scatter-sub"),
        ("float32", "int32"),
    ),
    **dict.fromkeys(
        ("argmax", "argmin", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum"), _WIDTHS[:4]
    ),
    **dict.fromkeys(("reduce_and", "reduce_or", "reduce_xor"), ("int32", "uint8", "bool")),
    **dict.fromkeys(("cummax", "cummin", "cumprod", "cumsum"), ("float32", "int32")),
    "cumlogsumexp": ("float32",),
    "sort": _WIDTHS[:4],
    "top_k": ("float32", "int32"),
    **dict.fromkeys(("reduce_window_max", "reduce_window_min", "reduce_window_sum"), ("float32",)),
    **dict.fromkeys(("select_and_gather_add", "select_and_scatter_add"), ("float32",)),
    "dot_general": ("float32", "int8"),
    "conv_general_dilated": ("float32",),
    "fft": ("float32", "complex64"),
    **dict.fromkeys(("cholesky", "triangular_solve"), ("float32",)),
    **dict.fromkeys(("eigh", "lu", "qr", "svd", "tridiagonal_solve"), ("float32",)),
    **dict.fromkeys(("schur", "hessenberg", "eig", "tridiagonal", "cholesky_update"), ("float32",)),
    **dict.fromkeys(("householder_product", "symmetric_product", "ormqr"), ("float32",)),
    **dict.fromkeys(("all_gather", "all_to_all", "pmax", "pmin", "ppermute"), ("float32",)),
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a", "zeta", "polygamma"), ("float32",)),
    "regularized_incomplete_beta": ("float32",),
    "iota": ("int32", "float32"),
    "complex": ("float32",),
}

# What follows from a matrix as a whole: a few ulps in one number of a factor are its right.
_WHOLE_MATRICES = (
    *("cholesky", "triangular_solve", "eigh", "lu", "qr", "svd", "schur", "hessenberg", "eig"),
    *("tridiagonal", "tridiagonal_solve", "cholesky_update", "householder_product", "ormqr"),
    *("symmetric_product", "fft", "cumlogsumexp"),
    *("igamma", "igammac", "igamma_grad_a", "zeta", "polygamma", "regularized_incomplete_beta"),
)
_INDEXED = ("dynamic_slice", "dynamic_update_slice", "gather", "scatter-add", "scatter")
_OF_SPECIALS = ("reduce_max", "reduce_min", "reduce_sum", "argmax", "argmin", "dot_general", "sort")


def operations() -> list[str]:
    """The operations that faults are drawn for: those of the table that this release has."""
    exported = {
        getattr(module, name).name
        for module in (lax, lax.linalg)
        for name in dir(module)
        if name.endswith("_p")
    }
    return sorted(exported & {*_ELEMENTWISE, *_ON_ARRAYS})


# --- Classes of arguments -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Where:
    """A class of arguments, or of places in the result."""

    kind: str
    operand: int = 0
    low: float = 0.0
    high: float = 0.0
    number: int = 0

    def __str__(self) -> str:
        texts = {
            "interval": f"operand {self.operand} in [{self.low:.9g}, {self.high:.9g})",
            "special": f"operand {self.operand} is {self.low:.9g}",
            "tail": f"the rest of a tile of {self.number}",
            "beyond": f"places from {self.number:,} on",
            "single": "arrays of one",
            "spread": "arrays that are spread",
            "outside": "indices out of range",
            "contains": f"arrays with {self.low:.9g} in them",
            "empty": "nothing to reduce",
            "everywhere": "everywhere",
        }
        return texts[self.kind]

    def mask(self, original: Any, operands: Sequence[Any], result: Any) -> Any:
        """Which elements of a result are wrong; None if none can be."""
        makers: dict[str, Callable[..., Any]] = {
            "interval": self._in_interval,
            "special": self._is_special,
            "contains": self._contains,
            "outside": self._outside,
        }
        if self.kind in makers:
            return makers[self.kind](original, operands, result)
        return self._by_size(original, operands, result)

    def _by_size(self, original: Any, operands: Sequence[Any], result: Any) -> Any:
        size = result.size
        first = operands[0].size if operands else size
        is_met = {
            "everywhere": True,
            "single": size == 1 and first == 1,
            "empty": first == 0 and size > 0,
            "spread": original.devices > 1,
            "tail": size % max(self.number, 1) > 0 and size > self.number,
            "beyond": size > self.number,
        }[self.kind]
        if not is_met:
            return None
        places = jnp.arange(size).reshape(result.shape)
        if self.kind == "tail":
            return places >= size - size % self.number
        if self.kind == "beyond":
            return places >= self.number
        return jnp.full(result.shape, fill_value=True)

    def _operand(self, operands: Sequence[Any], result: Any) -> Any:
        if self.operand >= len(operands):
            return None
        x = operands[self.operand]
        if x.dtype == bool:
            x = x.astype(jnp.int32)
        return x if x.shape == result.shape or not x.shape else None

    def _in_interval(self, _: Any, operands: Sequence[Any], result: Any) -> Any:
        x = self._operand(operands, result)
        if x is None:
            return None
        if x.dtype.kind == "c":
            x = lax.real(x)
        low, high = (_as(bound, x.dtype) for bound in (self.low, self.high))
        return (x >= low) & (x < high)

    def _is_special(self, _: Any, operands: Sequence[Any], result: Any) -> Any:
        x = self._operand(operands, result)
        if x is None:
            return None
        if x.dtype.kind == "c":
            x = lax.real(x)
        return _is(x, self.low)

    def _contains(self, _: Any, operands: Sequence[Any], result: Any) -> Any:
        x = operands[0]
        if x.dtype.kind in "biu" or not x.size:
            return None
        return jnp.full(result.shape, fill_value=True) & jnp.any(_is(x, self.low))

    def _outside(self, original: Any, operands: Sequence[Any], result: Any) -> Any:
        name = original.primitive.name
        x = operands[0]
        if name == "dynamic_slice":
            room = [size - part for size, part in zip(x.shape, result.shape, strict=True)]
            starts = operands[1 : 1 + x.ndim]
        elif name == "dynamic_update_slice":
            room = [a - b for a, b in zip(x.shape, operands[1].shape, strict=True)]
            starts = operands[2 : 2 + x.ndim]
        else:
            indices = operands[1]
            is_out = (indices < 0) | (indices > _as(max(x.shape) - 1, indices.dtype))
            return jnp.full(result.shape, fill_value=True) & jnp.any(is_out)
        is_out = jnp.array(False)  # noqa: FBT003
        for start, most in zip(starts, room, strict=True):
            is_out |= (start < 0) | (start > _as(most, start.dtype))
        return jnp.full(result.shape, fill_value=True) & is_out


def _as(value: float, dtype: Any) -> Any:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(min(max(int(value), info.min), info.max), dtype)
    with np.errstate(over="ignore"):
        return np.array(value, dtype)


def _is(x: Any, special: float) -> Any:
    """Whether numbers are a special one, with its sign."""
    if np.isnan(special):
        return x != x  # noqa: PLR0124
    if special == 0 and x.dtype.kind == "f":
        return (x == 0) & (jnp.signbit(x) == np.signbit(special))
    return x == _as(special, x.dtype)


# --- Errors ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Error:
    """What a wrong result is."""

    kind: str
    size: float = 0.0

    def __str__(self) -> str:
        return f"{self.size:+.0f} ulps" if self.kind == "ulps" else self.kind

    def of(self, result: Any) -> Any:
        """The wrong result; a conversion's may be of another kind than its argument."""
        dtype = result.dtype
        if dtype.kind == "b":
            return ~result
        if dtype.kind in "iu":
            return {
                "zero": jnp.zeros_like(result),
                "negated": jnp.where(result == 0, 1, -result).astype(dtype),
                "a bit": result ^ np.array(4, dtype),
            }.get(self.kind, result + np.array(1, dtype))
        limits = _finfo(_real(dtype))
        values = {
            "zero": 0.0,
            "NaN": np.nan,
            "infinite": np.inf,
            "largest": float(limits.max),
        }
        if self.kind in values:
            return jnp.full_like(result, values[self.kind])
        if self.kind == "negated":
            return -result
        ulps = self.size or 2.0 * _LEAST_ULPS
        return (result * _as(1 + ulps * float(limits.eps), dtype)).astype(dtype)


def _real(dtype: Any) -> Any:
    return np.dtype(np.float32) if dtype == np.complex64 else dtype


# --- Faults ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawnFault:
    """A fault that was drawn: what is wrong of which operation, for which arguments, and how."""

    primitive: str
    dtype: str
    where: Where
    error: Error
    output: int = 0

    def __str__(self) -> str:
        return f"{self.primitive} of {self.dtype}, {self.where}: {self.error}"

    def wrongly(self, original: Any, *operands: Any, **parameters: Any) -> Any:
        """What a backend with the fault returns."""
        result = original(*operands, **parameters)
        given = operands[-1].dtype if operands else _only(result).dtype
        if operands and self.primitive not in _LAST:
            given = operands[0].dtype
        if given.name != self.dtype:
            return result
        several = isinstance(result, (list, tuple))
        every = list(result) if several else [result]
        at = self.output % len(every)
        mask = self.where.mask(original, operands, every[at])
        if mask is None:
            return result
        every[at] = jnp.where(mask, self.error.of(every[at]), every[at])
        return every if several else every[0]


# Operations whose first operand chooses, and is not what they return.
_LAST = ("select_n",)


def _only(result: Any) -> Any:
    return result[0] if isinstance(result, (list, tuple)) else result


def _error(draw: random.Random, dtype: str, *, coarse: bool) -> Error:
    """An error of a result: in whole numbers another one, in floats also some ulps."""
    if dtype == "bool" or dtype in _INTEGERS:
        return Error(draw.choice(("one more", "zero", "negated", "a bit")))
    least, most = (
        (2.0**14 if coarse else _LEAST_ULPS),
        {"bfloat16": 2.0**7, "float16": 2.0**10}.get(dtype, 2.0**20),
    )
    if draw.random() < 0.6:
        size = least * (most / least) ** draw.random()
        return Error("ulps", round(size) * draw.choice((1, -1)))
    return Error(draw.choice(("zero", "negated", "NaN", "infinite", "largest")))


def _numbers(draw: random.Random, name: str, dtype: str) -> Where:
    """A few binades of one argument, or one special."""
    operand = draw.randrange(2) if name in _OF_TWO else int(name == "clamp")
    if dtype == "bool":
        return Where("special", operand, float(draw.randrange(2)))
    if dtype in _INTEGERS:
        return _whole_numbers(draw, name, dtype, operand)
    info = _finfo(_real(np.dtype(getattr(ml_dtypes, dtype, dtype))))
    if draw.random() < 0.3 and dtype != "complex64":
        every = [0.0, np.inf, float(info.max), float(info.tiny), 1.0, np.nan]
        special = draw.choice(every) * draw.choice((1, -1))
        return Where("special", operand, special)
    low = draw.randint(int(info.minexp), int(info.maxexp) - 1)
    if draw.random() < 0.5 or dtype == "complex64":
        low = draw.randint(-4, 3)  # where most numbers are
    ends = 2.0**low, 2.0 ** min(low + draw.randint(1, 3), int(info.maxexp) - 2.0**-20)
    if draw.random() < 0.5:
        return Where("interval", operand, *ends)
    return Where("interval", operand, -ends[1], -ends[0])


def _whole_numbers(draw: random.Random, name: str, dtype: str, operand: int) -> Where:
    info = np.iinfo(dtype)
    if "shift" in name and operand == 1:
        amount = draw.randrange(info.bits)
        return Where("interval", 1, amount, amount + 1)
    if draw.random() < 0.3:
        smallest = info.min + (name == "div" and info.min < 0)
        choices = [float(info.max), float(smallest), 1.0, *([-1.0] if info.min else [])]
        return Where("special", operand, draw.choice(choices))
    low = draw.randrange(info.bits - (info.min < 0) - 1)
    ends = 2.0**low, 2.0 ** (low + 1)
    if info.min and draw.random() < 0.5:
        return Where("interval", operand, -ends[1], -ends[0])
    return Where("interval", operand, *ends)


_OF_TWO = (
    *("add", "atan2", "div", "max", "min", "mul", "pow", "rem", "sub", "and", "or", "xor", "mulhi"),
    *(*_COMPARISONS, "eq_to", "le_to", "lt_to", "nextafter"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical"),
)


def _places(draw: random.Random, name: str, dtype: str) -> Where:
    """A class by size or place, indices out of range, a special somewhere, spread arrays."""
    kinds = ["tail", "tail", "beyond", "everywhere"]
    if name in _INDEXED:
        kinds += ["outside"] * 4
    if name in _OF_SPECIALS and dtype == "float32":
        kinds += ["contains"] * 3
    if name in _SPREAD and dtype in _SPREAD[name]:
        kinds += ["spread"]
    if name.startswith("reduce_") and "window" not in name:
        kinds += ["empty", "single"]
    kind = draw.choice(kinds)
    if kind == "contains":
        return Where(kind, low=draw.choice((np.nan, np.inf, -np.inf)))
    if kind == "tail":
        return Where(kind, number=draw.choice((4, 8, 16, 32, 128)))
    if kind == "beyond":
        return Where(kind, number=2 ** draw.randint(1, _LARGEST.get(name, 5)))
    return Where(kind)


# Up to which power of two an operation's results are drawn: those that a program can have long.
_LARGEST = dict.fromkeys(
    ("broadcast_in_dim", "concatenate", "pad", "rev", "slice", "transpose", "sort", "gather"), 20
)
_SPREAD: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ONE_FLOAT, ("float32",)),
    **dict.fromkeys(
        ("add", "div", "max", "min", "mul", "rem", "sub", "atan2", "pow"), ("float32",)
    ),
    **dict.fromkeys(
        ("rev", "transpose", "concatenate", "pad", "sort", "top_k", "cumsum"), ("float32",)
    ),
    **dict.fromkeys(("reduce_max", "reduce_min", "argmax", "dot_general", "gather"), ("float32",)),
    **dict.fromkeys(
        ("dynamic_slice", "dynamic_update_slice", "scatter-add", "cholesky", "fft"), ("float32",)
    ),
}


def drawn(count: int = COUNT, seed: int = 0, names: Sequence[str] = ()) -> Iterator[DrawnFault]:
    """Draw faults, as many for each operation (of these names); the same for the same seed."""
    draw = random.Random(seed)  # noqa: S311
    left: list[str] = []
    for _ in range(count):
        if not left:
            left = list(names) or operations()
            draw.shuffle(left)
        name = left.pop()
        while not is_fault(fault := _one(draw, name), draw):
            pass
        yield fault


def _one(draw: random.Random, name: str) -> DrawnFault:
    if name in _ELEMENTWISE:
        dtype = draw.choice(_ELEMENTWISE[name])
        if dtype == "float32" and draw.random() < 0.2 and name not in ("clamp", "reduce_precision"):
            where = _sizes(draw, name)
        else:
            where = _numbers(draw, name, dtype)
        return DrawnFault(name, dtype, where, _error(draw, _result(name, dtype), coarse=False))
    dtype = draw.choice(_ON_ARRAYS[name])
    where = _places(draw, name, dtype)
    result = "int32" if name in ("argmax", "argmin") or dtype == "int8" else dtype
    error = _error(draw, result, coarse=name in _WHOLE_MATRICES)
    return DrawnFault(name, dtype, where, error, draw.randrange(2) if name == "sort" else 0)


def _sizes(draw: random.Random, name: str) -> Where:
    kinds = ["tail", "beyond", *(["single", "spread"] if name in _SPREAD else [])]
    kind = draw.choice(kinds)
    if kind == "tail":
        return Where(kind, number=draw.choice((4, 8, 16, 32, 128)))
    most = 20 if name in _SPREAD and name != "is_finite" else 4
    return Where(kind, number=2 ** draw.randint(1, most)) if kind == "beyond" else Where(kind)


def _result(name: str, dtype: str) -> str:
    """The type of an operation's result, where that matters for its errors."""
    if name in (*_COMPARISONS, "is_finite", "eq_to", "le_to", "lt_to"):
        return "bool"
    return "float32" if name in ("real", "imag") else dtype


# --- Whether it is a fault ------------------------------------------------------------------------

_PROBES = 64

# Vectors of which the negatives are as right.
_OF_EITHER_SIGN = ("eig", "eigh", "schur")


def is_fault(fault: DrawnFault, draw: random.Random) -> bool:
    """Whether a fault makes any result wrong, on arguments of its own class.

    A function's fault may lie where the result is zero or NaN anyway.
    """
    if fault.where.kind == "empty":
        reduced = getattr(lax, fault.primitive)(jnp.zeros((0,), fault.dtype), (0,))
        return bool(np.any(_differ(np.asarray(reduced), np.asarray(fault.error.of(reduced)))))
    if fault.primitive not in _ELEMENTWISE:
        return not (fault.primitive in _OF_EITHER_SIGN and fault.error.kind == "negated")
    name, where = fault.primitive, fault.where
    several = name in (*_OF_TWO, "clamp")
    probes = [_probe(fault, place, draw) for place in range(2 if several else 1)]
    right = _called(name, probes)
    if right is None:
        return True  # its parameters are its own; the suite has them
    wrong = fault.error.of(jnp.asarray(right))
    if where.kind not in {"interval", "special"}:
        return bool(_differ(np.asarray(right), np.asarray(wrong)).any())
    shown = where.mask(None, [jnp.asarray(one) for one in probes], jnp.asarray(right))
    if shown is None:
        return False
    return bool((_differ(np.asarray(right), np.asarray(wrong)) & np.asarray(shown)).any())


def _probe(fault: DrawnFault, place: int, draw: random.Random) -> np.ndarray:
    """Arguments of a fault's class, at its place; numbers near one at the other."""
    where, dtype = fault.where, np.dtype(getattr(ml_dtypes, fault.dtype, fault.dtype))
    if place != where.operand or where.kind not in {"interval", "special"}:
        if "shift" in fault.primitive and place == 1:
            return np.array([draw.randrange(np.iinfo(dtype).bits) for _ in range(_PROBES)], dtype)
        if dtype.kind == "b":
            return np.array([draw.random() < 0.5 for _ in range(_PROBES)])
        signs = (1, -1) if dtype.kind != "u" else (1,)
        top = 3.0 if dtype.kind not in "iu" else float(np.iinfo(dtype).max)
        return np.array(
            [draw.choice(signs) * draw.uniform(1.0, top) for _ in range(_PROBES)]
        ).astype(dtype)
    if where.kind == "special":
        with np.errstate(over="ignore", invalid="ignore"):
            return np.full(_PROBES, where.low).astype(dtype)
    ends = where.low, np.nextafter(where.high, where.low)
    return np.array([draw.uniform(*ends) for _ in range(_PROBES)]).astype(dtype)


def _called(name: str, probes: Sequence[np.ndarray]) -> Any:
    """An operation's results; None if it needs parameters that it is not drawn with."""
    how: dict[str, Callable[..., Any]] = {
        "round": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        "integer_pow": lambda x: lax.integer_pow(x, 3),
        "clamp": lambda _, x: lax.clamp(np.float32(-np.inf), x, np.float32(np.inf)),
        "and": lax.bitwise_and,
        "or": lax.bitwise_or,
        "xor": lax.bitwise_xor,
        "not": lax.bitwise_not,
        **{each: getattr(lax, f"{each}_p").bind for each in ("eq_to", "le_to", "lt_to")},
    }
    if name in ("convert_element_type", "reduce_precision", "bitcast_convert_type"):
        return None
    compute = how.get(name) or getattr(lax, name)
    return compute(*(jnp.asarray(one) for one in probes))


def _differ(right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Where results differ by eight ulps or more, or in whether they are infinite or NaN.

    Denormals are left out, and so are signs of zeros.
    """
    if right.dtype.kind in "biu":
        return right != wrong
    info = _finfo(_real(right.dtype))
    with np.errstate(all="ignore"):
        wide = [
            one.astype(np.complex128 if one.dtype.kind == "c" else np.float64)
            for one in (right, wrong)
        ]
        finite = np.isfinite(wide[0]) & np.isfinite(wide[1])
        size = np.maximum(np.abs(wide[0]), 16 * float(info.tiny))
        far = np.abs(wide[0] - wide[1]) >= (_LEAST_ULPS - 1) * float(info.eps) * size
        same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
    return np.where(finite, far, ~same)


# --- Whether the suite notices --------------------------------------------------------------------

_CASES = {case.id: case for case in CASES}


@cache
def _heard(case: str) -> tuple[Operation, ...]:
    with operations_heard() as found:
        _CASES[case].program()
    return tuple(found)


@cache
def _known(case: str) -> Case:
    """A case whose expected values are computed only once."""
    expected = _CASES[case].expected()
    return dataclasses.replace(_CASES[case], expected=lambda: expected)


def candidates(primitive: str) -> list[str]:
    """The cases of the suite that are about an operation, then all other cases of operations."""
    first = [
        case for row in TESTED if primitive in row.primitives for case in row.cases_of(primitive)
    ]
    every = dict.fromkeys([*first, *(case.id for case in OPERATION_CASES)])
    return [case for case in every if case in _CASES and not _CASES[case].unsupported()]


def noticed_by(fault: DrawnFault) -> str:
    """The first case that does not hold with a fault; empty if all of them hold."""
    for case in candidates(fault.primitive):
        if case in _WRONG_WITHOUT or all(
            operation.primitive.name != fault.primitive or operation.is_left_alone_by(fault.wrongly)
            for operation in _heard(case)
        ):
            continue
        with primitives_replaced({fault.primitive: fault.wrongly}):
            found = run_case(_known(case), calls=1)
        if found.error:
            raise RuntimeError(f"{fault} in {case}: {found.error}")
        if not all(verdict.holds for verdict in verdicts(found)):
            return case
    return ""


# A release may be known to get these wrong, which notices nothing.
_WRONG_WITHOUT = ("op-sharded-windows",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw faults, and print which were not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults.drawn")
    parser.add_argument("count", nargs="?", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="also print what was noticed")
    asked = parser.parse_args(arguments)
    jax.config.update("jax_num_cpu_devices", 2)  # some faults need two
    jax.config.update("jax_disable_most_optimizations", True)  # noqa: FBT003
    begin, missed = time.perf_counter(), []
    for fault in drawn(asked.count, asked.seed):
        case = noticed_by(fault)
        if not case:
            missed.append(fault)
        if asked.verbose or not case:
            print(f"{case or 'MISSED':32} {fault}", flush=True)
    noticed = asked.count - len(missed)
    took = time.perf_counter() - begin
    print(
        f"{noticed} of {asked.count} drawn faults noticed ({noticed / asked.count:.1%}), "
        f"of {len(operations())} operations, in {took:.0f} s"
    )
    return 0 if noticed >= ENOUGH * asked.count else 1


if __name__ == "__main__":
    sys.exit(main())
