"""How far a computed number can be from the true one: error bounds that travel with the numbers.

A `Rounded` is what a program should compute: the true values (in double precision), and beside each
two bounds on how far off a program in a narrower type is. `errors` is proven, whatever the order of
its sums and however it fuses its operations; `likely` is expected, which holds as a rule. The
suite's programs are written a second time with `Rounded`, and what comes out is the reference that
results are compared to.

The rules are those of forward error analysis. An operation that is rounded to the nearest adds half
an ulp, u times the result; any other adds the ulps that the tables of `error_bounds` have for it. A
sum of n terms in any order adds at most gamma(n-1) times the sum of the magnitudes. The errors of
operands are never assumed to cancel out. What is exact only in double precision is covered by
`_SLACK`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcount._numerics.error_bounds import (
    EXPECTED_ULPS,
    LARGEST_ULPS,
    expected_error,
    gamma,
    longest_chain,
    smallest_normal,
    unit_roundoff,
    worst_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    # The error of a result that comes from the errors of its operands; for both kinds of errors.
    Carried = Callable[..., np.ndarray]

# The reference itself is computed in double precision.
_SLACK = 2.0**-48
_SLACK_OF_SUMS = 2.0**-20

# An exact sum of ten million takes a second: of so many, some are added in double precision first.
# That is off by 2**-47 of the magnitudes, and the slack of such a sum is more than 2**-42 of them.
_MANY, _AT_ONCE = 2_000_000, 64


@dataclass(frozen=True, eq=False)
class Rounded:
    """Numbers that a program in `dtype` computes: the true values, and how far off it may be.

    >>> x = Rounded.exactly(np.full(1000, 0.1, np.float32))
    >>> total = x.sum()
    >>> float(total.values) == math.fsum(np.full(1000, 0.1, np.float32).tolist())
    True
    >>> f"{float(total.errors):.3g}, {float(total.likely):.3g}, {float(total.scale):.3g}"
    '0.00595, 0.00135, 100'
    """

    values: np.ndarray
    errors: np.ndarray
    """How far off each value can be at most: the proven bound."""

    likely: np.ndarray
    """How far off each value is as a rule, with a false alarm in less than one of 10⁹ results."""

    scale: np.ndarray
    """The sum of the magnitudes that each value came from, which its errors are measured by."""

    dtype: str

    __array_ufunc__ = None  # an ndarray to the left of an operator leaves the operation to us

    @classmethod
    def exactly(cls, values: np.ndarray, computed_in: str | None = None) -> Rounded:
        """Inputs of a program, without an error; but a backend may flush denormals to zero."""
        dtype = values.dtype.name
        wide = values.astype(np.float64)
        magnitudes = np.abs(wide)
        errors = np.where(magnitudes < smallest_normal(dtype), magnitudes, 0.0)
        return cls(wide, errors, errors, magnitudes, computed_in or dtype)

    @classmethod
    def declared(cls, value: float, error: float, dtype: str) -> Rounded:
        """A number with a bound that does not follow from a proof."""
        number, bound = np.array(value), np.array(error)
        return cls(number, bound, bound, np.abs(number), dtype)

    def _rounded(
        self,
        values: np.ndarray,
        carried: Carried,
        *others: Rounded,
        operation: str = "",
        scale: np.ndarray,
        own: tuple[np.ndarray | float, np.ndarray | float] = (0.0, 0.0),
    ) -> Rounded:
        """The result of an operation: the errors of its operands, then its own rounding."""
        values = np.asarray(values)
        tiny = smallest_normal(self.dtype)
        bounds = []
        kinds = (("errors", LARGEST_ULPS), ("likely", EXPECTED_ULPS))
        for (kind, ulps), more in zip(kinds, own, strict=True):
            brought = carried(*(getattr(operand, kind) for operand in (self, *others))) + more
            off = ulps.get(operation, 0.0) * 2 * unit_roundoff(self.dtype) + _SLACK
            bounds.append(brought + off * (np.abs(values) + brought) + tiny)
        errors, likely = bounds
        return Rounded(values, errors, np.minimum(errors, likely), np.asarray(scale), self.dtype)

    def _other(self, other: Rounded | np.ndarray | float) -> Rounded:
        if isinstance(other, Rounded):
            return other
        return Rounded.exactly(np.asarray(other, self.dtype))

    def __add__(self, other: Rounded | np.ndarray | float) -> Rounded:
        other = self._other(other)
        return self._rounded(
            self.values + other.values,
            lambda mine, its: mine + its,
            other,
            operation="add",
            scale=self.scale + other.scale,
        )

    def __neg__(self) -> Rounded:
        return Rounded(-self.values, self.errors, self.likely, self.scale, self.dtype)

    def __sub__(self, other: Rounded | np.ndarray | float) -> Rounded:
        return self + -self._other(other)

    def __mul__(self, other: Rounded | np.ndarray | float) -> Rounded:
        other = self._other(other)
        size, its_size = np.abs(self.values), np.abs(other.values)
        return self._rounded(
            self.values * other.values,
            lambda mine, its: size * its + mine * its_size + mine * its,
            other,
            operation="multiply",
            scale=self.scale * other.scale,
        )

    def __truediv__(self, other: Rounded | np.ndarray | float) -> Rounded:
        other = self._other(other)
        values, divisor = self.values / other.values, np.abs(other.values)
        if np.any(divisor <= other.errors):
            raise ZeroDivisionError("a divisor that may be zero has no bound")
        return self._rounded(
            values,
            lambda mine, its: (mine + np.abs(values) * its) / (divisor - its),
            other,
            operation="divide",
            scale=(self.scale + np.abs(values) * other.scale) / divisor,
        )

    def __getitem__(self, index: Any) -> Rounded:
        """Some of the values; like everything that only moves numbers, this is exact."""
        return self._moved(lambda array: np.asarray(array[index]))

    def _moved(self, move: Callable[[np.ndarray], np.ndarray]) -> Rounded:
        moved = [move(one) for one in (self.values, self.errors, self.likely, self.scale)]
        values, errors, likely, scale = map(np.asarray, moved)
        return Rounded(values, errors, likely, scale, self.dtype)

    def sum(
        self, axis: int | None = None, *, keepdims: bool = False, has_pattern: bool = False
    ) -> Rounded:
        """The sum, in any order; with `has_pattern` all roundings may go the same way."""
        terms = self.values.size if axis is None else self.values.shape[axis]
        # Along an axis some backends add row to row; a whole array they add in many places at once.
        length = longest_chain(terms) if axis is None else max(terms - 1, 0)
        values = self._true_sum(axis, keepdims=keepdims)
        unit = unit_roundoff(self.dtype)
        expected = (
            worst_error(length, unit) if has_pattern else expected_error(length, unit, values.size)
        )
        factors = gamma(max(terms - 1, 0), self.dtype), expected
        return self._summed(values, lambda array: array.sum(axis, keepdims=keepdims), factors)

    def _summed(
        self,
        values: np.ndarray,
        add_up: Callable[[np.ndarray], np.ndarray],
        factors: tuple[float, float],
    ) -> Rounded:
        magnitudes = add_up(np.abs(self.values) + self.errors) * (1 + _SLACK_OF_SUMS)
        own = (factors[0] * magnitudes, factors[1] * magnitudes)
        return self._rounded(values, add_up, scale=add_up(self.scale), own=own)

    def _true_sum(self, axis: int | None, *, keepdims: bool) -> np.ndarray:
        if axis is None and not keepdims:
            terms = self.values.ravel()
            if terms.size > _MANY:
                terms = np.add.reduceat(terms, np.arange(0, terms.size, _AT_ONCE))
            return np.asarray(math.fsum(terms.tolist()))
        return np.asarray(self.values.sum(axis, keepdims=keepdims))

    def cumsum(self) -> Rounded:
        """The running sums of a 1-D array, each in any order."""
        terms = max(self.values.size - 1, 0)
        expected = expected_error(terms, unit_roundoff(self.dtype), self.values.size)
        return self._summed(np.cumsum(self.values), np.cumsum, (gamma(terms, self.dtype), expected))

    def mean(self, axis: int | None = None, *, keepdims: bool = False) -> Rounded:
        """The mean: a sum, divided by the count."""
        count = self.values.size if axis is None else self.values.shape[axis]
        total = self.sum(axis, keepdims=keepdims)
        return total / float(count)

    def var(self, axis: int | None = None, *, keepdims: bool = False) -> Rounded:
        """The variance: the mean of the squared distances from the mean."""
        centred = self - self.mean(axis, keepdims=axis is not None)
        return (centred * centred).mean(axis, keepdims=keepdims)

    def max(self, axis: int | None = None, *, keepdims: bool = False) -> Rounded:
        """The largest value; it is off by no more than the worst of them."""
        return self._moved(lambda array: array.max(axis, keepdims=keepdims))

    def matmul(self, other: Rounded, inputs: str | None = None, ulps: float = 0.5) -> Rounded:
        """The product of matrices; `inputs` is a type that a backend may first round them to.

        The proven bound allows for that, the expected one does not: the case says why it happens.
        """
        terms = self.values.shape[-1]
        values = self.values @ other.values
        left, right = np.abs(self.values), np.abs(other.values)
        rounded = self, other
        if inputs:
            rounded = self.to(inputs, self.dtype), other.to(inputs, self.dtype)
        size_left, size_right = (np.abs(one.values) + one.errors for one in rounded)
        sizes = size_left @ size_right
        # A rounding for each product, and for each sum.
        unit = 2 * ulps * unit_roundoff(self.dtype)
        expected = expected_error(terms, unit, values.size) * sizes
        proven = gamma(math.ceil(2 * ulps * terms), self.dtype) * sizes
        if inputs:
            proven = proven + size_left @ rounded[1].errors + rounded[0].errors @ size_right
        return self._rounded(
            values,
            lambda mine, its: left @ its + mine @ right + mine @ its,
            other,
            scale=self.scale @ other.scale,
            own=(proven, expected),
        )

    def to(self, dtype: str, computed_in: str | None = None) -> Rounded:
        """The values rounded to a type; what follows is computed in that or in `computed_in`."""
        unit, tiny = unit_roundoff(dtype), smallest_normal(dtype)
        errors, likely = (
            bound + unit * (np.abs(self.values) + bound) + tiny
            for bound in (self.errors, self.likely)
        )
        return Rounded(self.values, errors, likely, self.scale, computed_in or dtype)

    def _through(
        self, values: np.ndarray, carried: Carried, slope: np.ndarray, operation: str
    ) -> Rounded:
        """A function of each value; its scale is the argument's, times the function's slope."""
        scale = np.abs(values) + slope * self.scale
        return self._rounded(values, carried, operation=operation, scale=scale)

    def exp(self) -> Rounded:
        """The exponential; its slope is its value."""
        values = np.exp(self.values)
        return self._through(values, lambda mine: values * np.expm1(mine), values, "exp")

    def log(self) -> Rounded:
        """The logarithm; it is steepest at the end of an interval that is nearer to zero."""
        self._require_positive()
        slope = 1 / self.values
        return self._through(
            np.log(self.values), lambda mine: mine / (self.values - mine), slope, "log"
        )

    def sqrt(self) -> Rounded:
        """The square root; it is steepest at the end of an interval that is nearer to zero."""
        self._require_positive()
        values = np.sqrt(self.values)
        return self._through(
            values,
            lambda mine: mine / (2 * np.sqrt(self.values - mine)),
            1 / (2 * values),
            "sqrt",
        )

    def tanh(self) -> Rounded:
        """The hyperbolic tangent; its slope is at most one."""
        values = np.tanh(self.values)
        return self._through(values, lambda mine: mine, 1 - values * values, "tanh")

    def sin(self) -> Rounded:
        """The sine; its slope is at most one."""
        values = np.sin(self.values)
        return self._through(values, lambda mine: mine, np.abs(np.cos(self.values)), "sin")

    def function(self, operation: str, compute: Callable[[np.ndarray], np.ndarray]) -> Rounded:
        """Any other function of exact numbers: the only error is its own rounding."""
        if np.any(self.errors):
            raise ValueError(f"{operation} of numbers that are off has no bound here")
        values = compute(self.values)
        return self._through(values, lambda mine: mine, np.zeros_like(values), operation)

    def _require_positive(self) -> None:
        if np.any(self.values <= self.errors):
            raise ZeroDivisionError("what may be zero has no bound here")
