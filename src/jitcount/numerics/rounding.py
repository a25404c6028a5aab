"""How far a computed number can be from the true one: error bounds that travel with the numbers.

A `Rounded` is what a program should compute: the true values (in double precision), and beside each
the most that a program in a narrower type can be off, whatever the order of its sums and however
it fuses its operations. Programs of the suite are written once more with it; what comes out is the
reference that results are held against.

The rules are those of forward error analysis. An operation that is rounded to the nearest adds half
an ulp, u times the result; one that is not, as many ulps as `ULPS` declares for every backend. A
sum of n terms in any order adds at most gamma(n-1) times the sum of the magnitudes, where gamma(k)
is k·u / (1 - k·u). What is exact only in double precision is covered by `_SLACK`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

# Ulps that an operation may be off on any backend. The first four are rounded to the nearest on a
# CPU; XLA turns divisions into products with a reciprocal, GPUs and TPUs approximate the others.
ULPS = {
    "add": 0.5,
    "multiply": 0.5,
    "divide": 3.0,
    "sqrt": 3.0,
    "exp": 4.0,
    "log": 4.0,
    "tanh": 8.0,
    "sin": 4.0,
}

# The reference itself is computed in double precision.
_SLACK = 2.0**-48
_SLACK_OF_SUMS = 2.0**-20


_finfo: Any = ml_dtypes.finfo


def unit_roundoff(dtype: str) -> float:
    """Half an ulp of 1.

    >>> unit_roundoff("float32") == 2**-24, unit_roundoff("bfloat16") == 2**-8
    (True, True)
    """
    return float(_finfo(dtype).eps) / 2


def smallest_normal(dtype: str) -> float:
    """What a backend that flushes denormals to zero may be off in any operation."""
    return float(_finfo(dtype).tiny)


def gamma(terms: int, dtype: str) -> float:
    """The relative error that so many roundings, one upon another, can add up to."""
    relative = terms * unit_roundoff(dtype)
    return relative / (1 - relative) if relative < 1 else math.inf


@dataclass(frozen=True, eq=False)
class Rounded:
    """Numbers that a program in `dtype` computes: the true values, and how far off it may be.

    >>> x = Rounded.exactly(np.full(1000, 0.1, np.float32))
    >>> total = x.sum()
    >>> float(total.values) == math.fsum(np.full(1000, 0.1, np.float32).tolist())
    True
    >>> f"{float(total.errors):.3g}"
    '0.00595'
    """

    values: np.ndarray
    errors: np.ndarray
    dtype: str

    __array_ufunc__ = None  # an ndarray to the left of an operator leaves the operation to us

    @classmethod
    def exactly(cls, values: np.ndarray, computed_in: str | None = None) -> Rounded:
        """What a program is given; a backend may take denormals for zeros."""
        dtype = values.dtype.name
        wide = values.astype(np.float64)
        magnitudes = np.abs(wide)
        errors = np.where(magnitudes < smallest_normal(dtype), magnitudes, 0.0)
        return cls(wide, errors, computed_in or dtype)

    def _rounded(self, values: np.ndarray, errors: np.ndarray, ulps: float) -> Rounded:
        """The result of an operation: what its operands bring along, then its own rounding."""
        values = np.asarray(values)
        per_ulp = 2 * unit_roundoff(self.dtype)
        own = (ulps * per_ulp + _SLACK) * (np.abs(values) + errors)
        return Rounded(values, errors + own + smallest_normal(self.dtype), self.dtype)

    def _other(self, other: Rounded | np.ndarray | float) -> Rounded:
        if isinstance(other, Rounded):
            return other
        return Rounded.exactly(np.asarray(other, self.dtype))

    def __add__(self, other: Rounded | np.ndarray | float) -> Rounded:
        other = self._other(other)
        return self._rounded(self.values + other.values, self.errors + other.errors, ULPS["add"])

    def __sub__(self, other: Rounded | np.ndarray | float) -> Rounded:
        other = self._other(other)
        return self + Rounded(-other.values, other.errors, other.dtype)

    def __mul__(self, other: Rounded | np.ndarray | float) -> Rounded:
        other = self._other(other)
        errors = np.abs(self.values) * other.errors + self.errors * np.abs(other.values)
        errors = errors + self.errors * other.errors
        return self._rounded(self.values * other.values, errors, ULPS["multiply"])

    def __truediv__(self, other: Rounded | np.ndarray | float) -> Rounded:
        other = self._other(other)
        values = self.values / other.values
        nearest_to_zero = np.abs(other.values) - other.errors
        if np.any(nearest_to_zero <= 0):
            raise ZeroDivisionError("a divisor that may be zero has no bound")
        errors = (self.errors + np.abs(values) * other.errors) / nearest_to_zero
        return self._rounded(values, errors, ULPS["divide"])

    def __getitem__(self, index: Any) -> Rounded:
        """Exact, as all that only moves numbers."""
        values, errors = self.values[index], self.errors[index]
        return Rounded(np.asarray(values), np.asarray(errors), self.dtype)

    def sum(self, axis: int | None = None, *, keepdims: bool = False) -> Rounded:
        """A sum in any order."""
        count = self.values.size if axis is None else self.values.shape[axis]
        magnitudes = np.abs(self.values) + self.errors
        errors = self.errors.sum(axis, keepdims=keepdims)
        terms = gamma(max(count - 1, 0), self.dtype) * (1 + _SLACK_OF_SUMS)
        errors = errors + terms * magnitudes.sum(axis, keepdims=keepdims)
        return self._rounded(self._true_sum(axis, keepdims=keepdims), errors, 0)

    def _true_sum(self, axis: int | None, *, keepdims: bool) -> np.ndarray:
        if axis is None and not keepdims:
            return np.asarray(math.fsum(self.values.ravel().tolist()))
        return np.asarray(self.values.sum(axis, keepdims=keepdims))

    def cumsum(self) -> Rounded:
        """The running sums of a 1-D array, each in any order."""
        magnitudes = np.cumsum(np.abs(self.values) + self.errors)
        terms = gamma(max(self.values.size - 1, 0), self.dtype) * (1 + _SLACK_OF_SUMS)
        errors = np.cumsum(self.errors) + terms * magnitudes
        return self._rounded(np.cumsum(self.values), errors, 0)

    def mean(self, axis: int | None = None, *, keepdims: bool = False) -> Rounded:
        """A sum, divided by the count."""
        count = self.values.size if axis is None else self.values.shape[axis]
        return self.sum(axis, keepdims=keepdims) / float(count)

    def var(self, axis: int | None = None, *, keepdims: bool = False) -> Rounded:
        """The mean of the squared distances from the mean."""
        centred = self - self.mean(axis, keepdims=axis is not None)
        return (centred * centred).mean(axis, keepdims=keepdims)

    def max(self, axis: int | None = None, *, keepdims: bool = False) -> Rounded:
        """The largest; off by no more than the worst of them."""
        errors = self.errors.max(axis, keepdims=keepdims)
        return Rounded(self.values.max(axis, keepdims=keepdims), errors, self.dtype)

    def matmul(self, other: Rounded, inputs: str | None = None, ulps: float = 0.5) -> Rounded:
        """A product of matrices; `inputs` is the type that operands are rounded to before."""
        left, right = (
            (self, other)
            if inputs is None
            else (
                self.to(inputs, self.dtype),
                other.to(inputs, self.dtype),
            )
        )
        size_left = np.abs(left.values) + left.errors
        size_right = np.abs(right.values) + right.errors
        terms = 2 * ulps * self.values.shape[-1]  # a rounding for each product, and for each sum
        errors = size_left @ right.errors + left.errors @ size_right
        errors = errors + gamma(math.ceil(terms), self.dtype) * (size_left @ size_right)
        return self._rounded(self.values @ other.values, errors, ulps)

    def to(self, dtype: str, computed_in: str | None = None) -> Rounded:
        """Rounded to another type, and computed with in that, or in a third, from then on."""
        half_ulp = unit_roundoff(dtype) * (np.abs(self.values) + self.errors)
        errors = self.errors + half_ulp + smallest_normal(dtype)
        return Rounded(self.values, errors, computed_in or dtype)

    def exp(self) -> Rounded:
        """Its slope is its value."""
        values = np.exp(self.values)
        return self._rounded(values, values * np.expm1(self.errors), ULPS["exp"])

    def log(self) -> Rounded:
        """Steepest at the end nearer to zero."""
        return self._rounded(np.log(self.values), self.errors / self._least(), ULPS["log"])

    def sqrt(self) -> Rounded:
        """Steepest at the end nearer to zero."""
        errors = self.errors / (2 * np.sqrt(self._least()))
        return self._rounded(np.sqrt(self.values), errors, ULPS["sqrt"])

    def tanh(self) -> Rounded:
        """No steeper than one."""
        return self._rounded(np.tanh(self.values), self.errors, ULPS["tanh"])

    def sin(self) -> Rounded:
        """No steeper than one."""
        return self._rounded(np.sin(self.values), self.errors, ULPS["sin"])

    def _least(self) -> np.ndarray:
        least = self.values - self.errors
        if np.any(least <= 0):
            raise ZeroDivisionError("what may be zero has no bound here")
        return least
