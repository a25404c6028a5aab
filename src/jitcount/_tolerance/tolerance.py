"""`jitcount.tolerance`: what a function's result must be within, on any backend."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jitcount._hlo.locations import sites_at
from jitcount._jax.jaxprs import Stacks, equations_in, inner_jaxprs
from jitcount._observe.muting import muted
from jitcount._text import one_line
from jitcount._tolerance.lanes import FIRST_DRAW, Lanes
from jitcount._tolerance.products import FLOAT32, rounding_of_products
from jitcount._tolerance.program import Reader, to_lanes
from jitcount._tolerance.rules.rule import NotFollowedError
from jitcount._tolerance.tracing import NotTraceableError, traced
from jitcount._tolerance.widths import Spread, jumps, spread_of, would_jump

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._observe.call_site import CallSite
    from jitcount._tolerance.lines import LineShare
    from jitcount._tolerance.program import Program
    from jitcount._tolerance.tracing import Traced

# How many draws there are, up to which work: by multiplications, of which computing and rounding a
# number takes as long as so many. With fewer draws the array's own deviation counts for more.
_DRAWS = (3e7, 16), (3e8, 6), (math.inf, 4)
_COST_OF_A_NUMBER = 30
_FINER_DRAWS = 8
_MORE_BITS, _FEWER_BITS = 4, 3


@dataclass(frozen=True)
class ExpectedResult:
    """One array of a result: what it should be, and how far off it may be."""

    name: str
    """Its place in the result: ``"['w']"``; empty where the result is one array."""

    dtype: str
    reference: np.ndarray
    """The values in double precision; whole numbers and booleans in their own dtype."""

    width: np.ndarray
    """The tolerance of each element: 0 where it must be equal, NaN where no tolerance exists."""

    why_none: str = ""
    """Why no tolerance exists where there is none; empty where there is one everywhere."""

    @property
    def title(self) -> str:
        """What messages call it: ``"result['w']"``; "the result" where there is one alone."""
        return f"result{self.name}" if self.name else "the result"

    @property
    def relative(self) -> float:
        """The largest tolerance, as a part of the result's largest magnitude."""
        size = np.abs(self.reference[np.isfinite(self.reference)]).max(initial=0)
        width = self.width[np.isfinite(self.width)].max(initial=0)
        return float(width / size) if size else float(width)


@dataclass(frozen=True)
class Tolerance:
    """How far the result of a function may be from its exact value on any backend, as a rule.

    >>> import jax.numpy as jnp, jitcount, numpy as np
    >>> found = jitcount.tolerance(jnp.sum, np.full(1000, 0.1, np.float32))
    >>> result, = found.results
    >>> f"{float(result.reference):.6f} {float(result.width):.1g}"
    '100.000001 0.002'
    """

    function: str
    results: tuple[ExpectedResult, ...]
    """What is expected of each array of the result, in the order of `jax.tree.leaves`."""

    products: str
    """How products are rounded: "float32", or as on a target: "tpu:v5e"."""

    draws: int
    evaluation: Evaluation = field(repr=False, compare=False)

    @cached_property
    def lines(self) -> tuple[LineShare, ...]:
        """Which source lines make the deviation, the largest share first.

        Found by rounding at one line at a time; the function is evaluated again for that.
        """
        from jitcount._tolerance.lines import shares_of  # noqa: PLC0415 (only who asks pays)

        return shares_of(self.evaluation)

    @property
    def has_products(self) -> bool:
        """Whether the function multiplies matrices or convolves."""
        return self.evaluation.multiplications > 0

    def with_products(self, products: str) -> Tolerance:
        """The tolerance of the same function and arguments with other products."""
        return tolerance_of(self.evaluation.traced, products)

    def __str__(self) -> str:
        from jitcount._show.terminal import render  # noqa: PLC0415 (to the right)
        from jitcount._show.tolerance_table import tolerance_table  # noqa: PLC0415

        return render(tolerance_table(self))


def tolerance(
    f: Callable[..., Any], /, *args: Any, products: str = FLOAT32, **kwargs: Any
) -> Tolerance:
    """Derive how far ``f(*args, **kwargs)`` may be from its exact value, on any backend.

    The function is traced, not called. Its operations are evaluated in double precision, and many
    times with each of them rounded at random to its own dtype; the tolerance of an element is seven
    times what it deviates by. The same arguments always get the same tolerance.

    >>> import jax, jitcount, numpy as np
    >>> x = np.array([1.0, 2.0, 4.0], np.float32)
    >>> found = jitcount.tolerance(jax.nn.softmax, x)
    >>> found.results[0].width < 1e-6
    array([ True,  True,  True])

    Args:
        f: any function that JAX can trace, jitted or not. Arrays are its arguments; all else is
            passed as it is.
        args: its arguments.
        products: how products of matrices round their inputs: "float32" not at all; "tpu:v5e", or
            another name that ``jitcount targets`` lists, as that chip does by default; or a format,
            "bfloat16" or "TF32".
        kwargs: its arguments by name.

    Raises:
        NotTraceableError: it looks at values, has side effects, or calls what cannot be followed.
        ValueError: `products` is no such name.
    """
    return tolerance_of(traced(f, args, kwargs), products)


def tolerance_of(found: Traced, products: str) -> Tolerance:
    """The tolerance of a function that was traced."""
    evaluation = Evaluation(found, products)
    with np.errstate(all="ignore"):  # infinities and NaN may be part of the program
        results = evaluation.results()
    return Tolerance(found.function, results, products, evaluation.draws, evaluation)


class Evaluation:
    """A function that was read into a program, with its arguments as lanes."""

    def __init__(self, found: Traced, products: str) -> None:
        self.traced = found
        self.products = rounding_of_products(products)
        self.reader = Reader()
        closed = found.closed
        with muted(), np.errstate(all="ignore"):
            try:
                self.program: Program = self.reader.read(closed)
            except NotFollowedError as error:
                raise NotTraceableError(_not_followed(found, str(error))) from None
            self.arguments = [
                to_lanes(value, aval)
                for value, aval in zip(found.arguments, closed.in_avals, strict=True)
            ]
        self.multiplications, numbers = _work(closed.jaxpr)
        work = self.multiplications + _COST_OF_A_NUMBER * numbers
        self.draws = next(draws for most, draws in _DRAWS if work <= most)

    def run(self, lanes: Lanes) -> list[np.ndarray]:
        """The results of all lanes.

        Raises:
            NotTraceableError: an operation cannot be followed.
        """
        lanes.products = self.products
        with muted(), np.errstate(all="ignore"):
            try:
                return self.program.run(lanes, self.arguments)
            except NotFollowedError as error:
                raise NotTraceableError(_not_followed(self.traced, str(error))) from None
            except Exception as error:
                name = self.reader.places[lanes.step].equation.primitive.name
                what = f"{name} at {self.site(lanes.step)} ({one_line(error)})"
                raise NotTraceableError(_not_followed(self.traced, what)) from error

    def site(self, step: int) -> CallSite:
        """The user's line of a step."""
        return sites_at(self.reader.places[step].stack(Stacks())).user

    def results(self) -> tuple[ExpectedResult, ...]:
        """What is expected of each array."""
        lanes = Lanes(self.draws)
        values, spreads = self._spreads(lanes)
        finer: list[Spread] | list[None] = [None] * len(spreads)
        if lanes.flips or any(spread.is_wide for spread in spreads):
            _, finer = self._spreads(Lanes(_FINER_DRAWS, more_bits=_MORE_BITS))
        # A decision that no draw has changed may still be within reach of other backends.
        larger = Lanes(_FINER_DRAWS, more_bits=-_FEWER_BITS)
        moved, greater = self._spreads(larger) if lanes.decided else (values, spreads)
        found = []
        for at, (name, dtype) in enumerate(zip(self.traced.names, self._dtypes, strict=True)):
            spread = spreads[at]
            none = np.isnan(spread.width) | jumps(values[at], spread, lanes.flips, finer[at])
            near = np.zeros_like(none)
            if lanes.decided:
                near = would_jump(spread, greater[at]) & ~none
            why = ""
            if none.any():
                why = self._why_none(values[at], none, spread, lanes)
            elif near.any():
                why = self._why_none(moved[at], near, greater[at], larger)
            width = np.where(none | near, np.nan, spread.width)
            found.append(ExpectedResult(name, dtype, spread.reference, width, why))
        return tuple(found)

    @property
    def _dtypes(self) -> list[str]:
        return [str(aval.dtype.name) for aval in self.traced.closed.out_avals]

    def _spreads(self, lanes: Lanes) -> tuple[list[np.ndarray], list[Spread]]:
        """The results of all lanes, and how far each scatters."""
        values, unit = self.run(lanes), self.reader.unit
        pairs = zip(values, self._dtypes, strict=True)
        return values, [spread_of(each, dtype, unit) for each, dtype in pairs]

    def _why_none(self, values: np.ndarray, none: np.ndarray, spread: Spread, lanes: Lanes) -> str:
        """Why no tolerance exists for some elements, in a sentence."""
        with np.errstate(all="ignore"):
            off = np.where(none, np.abs(values[FIRST_DRAW:] * 1.0 - values[:1]), 0.0)
        moved = np.nan_to_num(off).reshape(len(off), -1).max(1)
        far = moved > moved.max() / 2 if moved.max() > 0 else moved > 0
        flips = {key: flipped[FIRST_DRAW:] for key, flipped in lanes.flips.items()}
        calm = ~np.any(list(flips.values()), 0) if flips else np.ones(len(far), bool)
        free = {key: each for key, each in flips.items() if "sign of" in key[1]}
        larger = f" with {lanes.times:g} times the rounding" if lanes.times > 1 else ""
        if flips:
            # The decision that best tells the draws that are far off from those that are not.
            best = max(
                free or flips,
                key=lambda key: (_likeness(flips[key], far), "branch" in key[1], -key[0]),
            )
            if free or calm.any() or not spread.is_noise:
                how = (
                    "is free"
                    if free
                    else f"flips in {flips[best].sum()} of {len(far)} draws{larger}"
                )
                return f"{best[1]} at {self.site(best[0])} {how}: no tolerance exists there"
        if (spread.is_mixed & none).any():
            draws = f"some draws{larger} are too large for the dtype and others are not"
            return f"{draws}: no tolerance exists"
        steps = self.reader.longest_loop
        after = f" after {steps:,} steps" if steps > 1 else ""
        return f"no digit is left{after}: rounding alone moves it by its own size"


def _likeness(flipped: np.ndarray, far: np.ndarray) -> float:
    return float(np.mean(flipped == far))


def _not_followed(found: Traced, what: str) -> str:
    return f"{found.function} calls something that cannot be followed: {what}"


def _work(jaxpr: Any, times: float = 1.0) -> tuple[float, float]:
    """About how many multiplications products make, and how many numbers are computed."""
    products, numbers = 0.0, 0.0
    for equation in equations_in(jaxpr):
        size = times * sum(atom.aval.size for atom in equation.outvars if atom.aval.shape)
        numbers += size
        if equation.primitive.name == "dot_general":
            (contract, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            products += times * math.prod(shape[axis] for axis in contract) * max(size, 1)
        elif equation.primitive.name == "conv_general_dilated":
            kernel = equation.invars[1].aval
            products += times * kernel.size * max(size, 1) / max(kernel.shape[0], 1)
        is_loop = equation.primitive.name == "scan"
        for each in inner_jaxprs(equation):
            inside = _work(each, times * equation.params["length"] if is_loop else times)
            products, numbers = products + inside[0], numbers + inside[1]
    return products, numbers
