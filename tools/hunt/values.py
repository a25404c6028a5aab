"""What is known of a value in a program: its type, its shape, and how large it can be.

Every number is whole, and so small that its type holds it and all partial sums exactly. Therefore
any order of operations and any precision must give the same result, and a single wrong bit counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# What XLA leaves to the implementation, or what differs for a good reason: no program has it.
LEFT_OUT = {
    "conversion of a float that the integer type cannot hold": "implementation-defined",
    "shift by the width of the type or more": "implementation-defined",
    "division and remainder by zero, and of the smallest integer by -1": "implementation-defined",
    "order of equal keys in a sort that is not stable": "implementation-defined; such sorts have "
    "one operand, whose equal elements cannot be told apart",
    "scatter that sets one place to several values": "the order of updates is not defined; such "
    "updates are all equal, or combined by sum, minimum or maximum",
    "NaN, infinities and denormals": "their payloads and their flushing are the backend's",
    "sign of zero": "XLA rewrites x - x as 0, and the like; -0.0 counts as 0.0",
    "division, roots and functions of floats": "rounded, and not alike on every backend",
    "bits of floats": "a conversion there and back may be dropped",
}

FLOATS = {"float32": 1 << 24, "float16": 1 << 11, "bfloat16": 1 << 8}
"""Up to which magnitude a floating-point type holds every whole number."""

INTEGERS = ("int32", "int8", "int16", "uint8", "uint16", "uint32")

EXACT_IN_PRODUCTS = 1 << 8
"""Operands of products are at most this large: TPUs round them to bfloat16."""


@dataclass(frozen=True)
class Spec:
    """A value's type and shape, and a bound of its magnitude.

    Attributes:
        size: no element, and no partial sum on the way to it in whatever order, is larger.
        negative: whether elements can be below zero.
    """

    dtype: str
    shape: tuple[int, ...]
    size: int
    negative: bool

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its type is a floating-point one."""
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether its type is an integer one; bool is none."""
        return self.dtype in INTEGERS

    @property
    def is_exact(self) -> bool:
        """Whether its type holds all of it; integers wrap around, which is defined."""
        return not self.is_float or self.size <= FLOATS[self.dtype]

    def with_(self, **changes: Any) -> Spec:
        """The same with some attributes changed; an integer that can wrap around has any value."""
        changed = replace(self, **changes)
        if not changed.is_integer:
            return changed
        low, high = bounds(changed.dtype)
        outside = changed.size > high or (changed.negative and low == 0)
        return replace(changed, size=max(high, -low), negative=low < 0) if outside else changed


def bounds(dtype: str) -> tuple[int, int]:
    """The smallest and the largest whole number up to which a type holds all."""
    if dtype == "bool":
        return 0, 1
    if dtype in FLOATS:
        return -FLOATS[dtype], FLOATS[dtype]
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def wrapped(values: Any, dtype: str) -> np.ndarray:
    """Whole numbers as a type holds them: integers modulo their range."""
    values = np.asarray(values)
    if dtype in INTEGERS:
        return values.astype(np.int64).astype(dtype).astype(np.int64)
    return values.astype(np.int64)
