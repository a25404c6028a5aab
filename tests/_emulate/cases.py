"""Small HLO programs, by opcode, each with its arguments and what NumPy makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_LETTERS = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "bool": "pred",
    "complex64": "c64",
    "complex128": "c128",
    **{f"int{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}

Array = np.ndarray | np.generic

QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Options of a compile: XLA's own passes as ever, LLVM's left out."""


@dataclass(frozen=True)
class Case:
    """One program."""

    name: str
    text: str
    arguments: tuple[Array, ...]
    expected: tuple[Array, ...]
    tolerance: float = 0.0
    """Relative; 0 where the result is the same to the bit."""


def shape_of(value: Array) -> str:
    """As HLO writes it."""
    axes = ",".join(str(axis) for axis in reversed(range(value.ndim)))
    extents = ",".join(map(str, value.shape))
    return f"{_LETTERS[value.dtype.name]}[{extents}]{{{axes}}}"


def module(entry: str, *computations: str) -> str:
    """A module of an entry's lines, and other computations, each with its head in its first line.

    Names of the arguments in an entry's lines are as they are declared there.
    """
    parts = ["HloModule it, is_scheduled=true", ""]
    for computation in computations:
        head, *lines = [line.strip() for line in computation.strip().splitlines()]
        parts += [f"%{head} {{", *(f"  {line}" for line in lines), "}", ""]
    lines = [line.strip() for line in entry.strip().splitlines()]
    return "\n".join([*parts, "ENTRY %main (…) -> … {", *(f"  {line}" for line in lines), "}", ""])


def parameters(*arguments: Array) -> str:
    """Their lines: %p0, %p1 and so on."""
    return "\n".join(f"%p{i} = {shape_of(each)} parameter({i})" for i, each in enumerate(arguments))


def simple(  # noqa: PLR0913
    opcode: str,
    arguments: tuple[Any, ...],
    expected: Any,
    how: str = "",
    *,
    tolerance: float = 0.0,
    computations: tuple[str, ...] = (),
    name: str = "",
) -> Case:
    """One operation on all arguments, with one result."""
    given = tuple(np.asarray(each) for each in arguments)
    wanted = np.asarray(expected)
    names = ", ".join(f"%p{i}" for i in range(len(given)))
    line = f"ROOT %it = {shape_of(wanted)} {opcode}({names}){f', {how}' if how else ''}"
    text = module(f"{parameters(*given)}\n{line}", *computations)
    return Case(name or opcode, text, given, (wanted,), tolerance)


_X = np.array([-2.5, -1.0, -0.25, 0.0, 0.5, 0.75, 1.5, 2.5], np.float32)
_UNIT = np.array([-0.9, -0.25, 0.0, 0.5, 0.75], np.float32)
_ABOVE = np.array([0.25, 0.5, 1.0, 1.5, 9.0], np.float32)
_INTS = np.array([-7, -2, 0, 1, 3, 100], np.int32)
_BYTES = np.array([-128, -100, -1, 3, 100, 127], np.int8)
_BITS = np.array([0, 1, 2, 0x80000000, 0xFFFFFFFF, 0xF0F0], np.uint32)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(float(each)) for each in x], np.float32)


def _half_away(x: np.ndarray) -> np.ndarray:
    return np.trunc(x + np.copysign(np.float32(0.5), x))


_Unary = tuple[np.ndarray, "Callable[[np.ndarray], Any]", float]

_UNARY: dict[str, _Unary] = {
    "abs": (_X, np.abs, 0),
    "acos": (_UNIT, np.arccos, 1e-6),
    "acosh": (_ABOVE + 1, np.arccosh, 1e-6),
    "asin": (_UNIT, np.arcsin, 1e-6),
    "asinh": (_X, np.arcsinh, 1e-6),
    "atan": (_X, np.arctan, 1e-6),
    "atanh": (_UNIT, np.arctanh, 1e-6),
    "cbrt": (_X, np.cbrt, 1e-6),
    "ceil": (_X, np.ceil, 0),
    "cosh": (_X, np.cosh, 1e-6),
    "cosine": (_X, np.cos, 1e-6),
    "count-leading-zeros": (_BITS, lambda x: np.array([32 - int(i).bit_length() for i in x]), 0),
    "erf": (_X, _erf, 1e-6),
    "exponential": (_X, np.exp, 1e-6),
    "exponential-minus-one": (_X, np.expm1, 1e-6),
    "floor": (_X, np.floor, 0),
    "is-finite": (np.array([1, np.inf, np.nan], np.float32), np.isfinite, 0),
    "log": (_ABOVE, np.log, 1e-6),
    "log-plus-one": (_ABOVE, np.log1p, 1e-6),
    "logistic": (_X, lambda x: 1 / (1 + np.exp(-x)), 1e-6),
    "negate": (_X, np.negative, 0),
    "not": (_BITS, np.invert, 0),
    "popcnt": (_BITS, lambda x: np.array([int(i).bit_count() for i in x]), 0),
    "round-nearest-afz": (_X, _half_away, 0),
    "round-nearest-even": (_X, np.round, 0),
    "rsqrt": (_ABOVE, lambda x: 1 / np.sqrt(x), 1e-6),
    "sign": (_X, np.sign, 0),
    "sine": (_X, np.sin, 1e-6),
    "sinh": (_X, np.sinh, 1e-6),
    "sqrt": (_ABOVE, np.sqrt, 1e-6),
    "tan": (_UNIT, np.tan, 1e-6),
    "tanh": (_X, np.tanh, 1e-6),
    "copy": (_X, lambda x: x, 0),
    "domain": (_X, lambda x: x, 0),
    "opt-barrier": (_X, lambda x: x, 0),
}


def _upper_half(x: np.ndarray, y: np.ndarray, wide: type[np.integer]) -> np.ndarray:
    """Of the bits of a product."""
    product = x.astype(wide) * y.astype(wide)
    return (product >> wide(8 * x.itemsize)).astype(x.dtype)


_Binary = tuple[np.ndarray, np.ndarray, "Callable[[np.ndarray, np.ndarray], Any]", float]

_BINARY: dict[str, _Binary] = {
    "add": (_X, _X[::-1], np.add, 0),
    "and": (_BITS, _BITS[::-1], np.bitwise_and, 0),
    "atan2": (_X, _X[::-1], np.arctan2, 1e-6),
    "divide": (_X, _X[::-1] + 9, np.divide, 1e-6),
    "maximum": (_X, _X[::-1], np.maximum, 0),
    "minimum": (_X, _X[::-1], np.minimum, 0),
    "mulhi": (_BITS, _BITS[::-1], lambda x, y: _upper_half(x, y, np.uint64), 0),
    "multiply": (_X, _X[::-1], np.multiply, 0),
    "or": (_BITS, _BITS[::-1], np.bitwise_or, 0),
    "power": (_ABOVE, _ABOVE[::-1] - 1, np.power, 1e-6),
    "remainder": (_INTS, np.array([3, -3, 5, 7, 2, -9], np.int32), np.fmod, 0),
    "shift-left": (_BITS, np.array([1, 2, 3, 4, 5, 6], np.uint32), np.left_shift, 0),
    "shift-right-arithmetic": (
        _INTS,
        np.array([1, 1, 2, 3, 1, 2], np.int32),
        np.right_shift,
        0,
    ),
    "shift-right-logical": (_BITS, np.array([1, 2, 3, 4, 5, 6], np.uint32), np.right_shift, 0),
    "subtract": (_X, _X[::-1], np.subtract, 0),
    "xor": (_BITS, _BITS[::-1], np.bitwise_xor, 0),
    "complex": (_X, _X[::-1], lambda re, im: (re + 1j * im).astype(np.complex64), 0),
    "add-dependency": (_X, _X, lambda x, _: x, 0),
}


def elementwise() -> list[Case]:
    """One case for each operation, of the type that it is mostly used with."""
    found = []
    for opcode, (one, function, tolerance) in _UNARY.items():
        wanted = np.asarray(function(one))
        wanted = wanted if wanted.dtype == np.bool_ else wanted.astype(one.dtype)
        found.append(simple(opcode, (one,), wanted, tolerance=tolerance))
    for opcode, (one, other, binary, tolerance) in _BINARY.items():
        wanted = np.asarray(binary(one, other))
        found.append(simple(opcode, (one, other), wanted, tolerance=tolerance))
    z = (_X + 1j * _X[::-1]).astype(np.complex64)
    bf16 = _bfloat16(_X)
    return [
        *found,
        simple("abs", (z,), np.abs(z), tolerance=1e-6, name="abs of complex"),
        simple(
            "mulhi", (_BYTES, _BYTES[::-1]), _upper_half(_BYTES, _BYTES[::-1], np.int16), name="s8"
        ),
        simple("real", (z,), z.real),
        simple("imag", (z,), z.imag),
        simple("clamp", (np.float32(-1), _X, np.float32(1)), np.clip(_X, -1, 1)),
        simple("select", (_X > 0, _X, -_X), np.abs(_X)),
        simple("convert", (_X,), _X.astype(np.int32)),
        simple("convert", (_INTS,), _INTS.astype(np.float64), name="convert to float64"),
        simple("convert", (_X * np.float32(1.01),), _bfloat16(_X * np.float32(1.01)), name="round"),
        simple(
            "reduce-precision",
            (_X * np.float32(1.01),),
            _bfloat16(_X * np.float32(1.01)).astype(np.float32),
            "exponent_bits=8, mantissa_bits=7",
        ),
        # 16 bits are multiplied in float32, and rounded once.
        simple("multiply", (bf16, bf16), _bfloat16(bf16.astype(np.float32) ** 2), name="bf16"),
        *(
            simple(
                "compare", (_X, _X[::-1]), function(_X, _X[::-1]), f"direction={name}", name=name
            )
            for name, function in _DIRECTIONS.items()
        ),
        simple(
            "compare",
            (np.array([-0.0, 0.0, np.nan], np.float32), np.array([0.0, -0.0, 1], np.float32)),
            np.array([True, False, False]),
            "direction=LT, type=TOTALORDER",
            name="compare in total order",
        ),
        simple(
            "compare",
            (_BITS, _BITS[::-1]),
            np.less(_BITS, _BITS[::-1]),
            "direction=LT",
            name="compare unsigned",
        ),
    ]


_DIRECTIONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _bfloat16(x: np.ndarray) -> np.ndarray:
    import ml_dtypes  # noqa: PLC0415

    return x.astype(ml_dtypes.bfloat16)
