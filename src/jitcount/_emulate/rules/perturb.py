"""Perturbs what a chip does in a way of its own, by as much as that may be off.

An order of summation and the last ulps of a function are the hardware's. In a program that is
*perturbed* each sum and each such function is moved, every element up or down by chance, by what
`numerics` says that it is off as a rule. The program itself carries that to its result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount._hlo.parser import Shape
from jitcount._numerics.error_bounds import (
    EXPECTED_ULPS,
    expected_error,
    longest_chain,
    unit_roundoff,
)

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value

_NAMES = {"f32": "float32", "f64": "float64"}

# What `numerics` calls an opcode.
_OPCODES = {
    "divide": "divide",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "cbrt": "rsqrt",
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "log": "log",
    "log-plus-one": "log1p",
    "tanh": "tanh",
    "sine": "sin",
    "cosine": "cos",
    "tan": "tan",
    "erf": "erf",
    "logistic": "logistic",
}

# Those that it does not name are as far off as the farthest of them.
_OTHERS = frozenset(
    {"acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "cosh", "power", "sinh"}
)


def perturbed_function(context: Context, opcode: str, value: Value) -> Value:
    """The result of a function, moved by some ulps; as it is where nothing is perturbed."""
    name = _NAMES.get(value.shape.element)
    if context.translation.perturbation_seed == 0 or name is None:
        return value
    if opcode in _OPCODES:
        ulps = EXPECTED_ULPS[_OPCODES[opcode]]
    elif opcode in _OTHERS:
        ulps = max(EXPECTED_ULPS.values())
    else:
        return value
    size = context.writer.apply("abs", value)
    return _moved(context, value, size, ulps * 2 * unit_roundoff(name))


def perturbed_sum(context: Context, value: Value, magnitudes: Value, terms: int) -> Value:
    """A sum of so many terms, moved by what another order may change.

    `magnitudes` is the same sum of the terms' magnitudes.
    """
    name = _NAMES.get(value.shape.element)
    if name is None or terms < 2:
        return value
    relative = expected_error(longest_chain(terms), unit_roundoff(name), value.shape.size)
    return _moved(context, value, magnitudes, relative)


def _moved(context: Context, value: Value, size: Value, relative: float) -> Value:
    """Each element moved up or down, by a part of its size."""
    writer, shape = context.writer, value.shape
    step = writer.apply("multiply", size, writer.full(relative, shape))
    back = writer.apply("negate", step)
    return writer.apply("add", value, writer.select(_coins(context, shape.extents), step, back))


def _coins(context: Context, extents: tuple[int, ...]) -> Value:
    """True or false by chance, for each element; other ones for each seed and each place.

    The number of an element is multiplied and folded, as a hash does; its top bit decides.
    """
    writer = context.writer
    row = Shape("u32", (math.prod(extents),))
    number = writer.iota(row, 0)
    seed = context.translation.perturbation_seed * 0x9E3779B9 + next(writer.names) * 0x85EBCA6B
    number = writer.apply("add", number, writer.full(seed % (1 << 32), row))
    for factor, shift in ((0x7FEB352D, 15), (0x846CA68B, 16)):
        shifted = writer.apply("shift_right_logical", number, writer.full(16, row))
        number = writer.apply("xor", number, shifted)
        number = writer.apply("multiply", number, writer.full(factor, row))
        shifted = writer.apply("shift_right_logical", number, writer.full(shift, row))
        number = writer.apply("xor", number, shifted)
    coins = writer.compare(number, writer.full(1 << 31, row), "GE", "UNSIGNED")
    return writer.reshape(coins, extents)
