"""`plan_buckets`: which few sizes to pad ragged lengths to, and what that saves."""

from __future__ import annotations

import bisect
import functools
import math
import operator
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

import numpy as np

from jitcount._buckets.optimal import best_places
from jitcount._explain.causes import Kind
from jitcount._ledger.ledger import load
from jitcount._text import did_you_mean

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jitcount._buckets.bucketed import Bucketed
    from jitcount._explain.compile import Compile
    from jitcount._ledger.ledger import Ledger
    from jitcount._record.log import CompileLog

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Whole: TypeAlias = NDArray[np.int64]
    Log: TypeAlias = CompileLog | Ledger | str | os.PathLike[str]

Lengths: TypeAlias = "Iterable[int] | Mapping[int, int]"
"""Lengths as they came, or how often each came."""

StepSeconds: TypeAlias = "float | Mapping[int, float] | Callable[[int], float]"
"""The seconds of a call: at the largest size, at some sizes, or as a function of the size."""

ASSUMED_STEPS = 100
"""So many calls at the largest size a compile costs where nothing is measured."""

POWERS = "powers of two"
UNPADDED = "no padding"


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """What some sizes cost: a plan's, or those that it is compared with."""

    name: str
    compiles: int
    padding: float
    """The share of padding in all that is computed."""

    compile_s: float
    """Seconds for the compiles; in calls at the largest size where nothing is measured."""

    run_s: float
    """Seconds for the calls ahead, or the same."""

    @property
    def total_s(self) -> float:
        """Seconds for both."""
        return self.compile_s + self.run_s


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """One size of a plan, and the lengths that are padded to it."""

    size: int
    shortest: int
    longest: int
    calls: int
    """How many of the given lengths these are."""

    padding: float
    """The share of padding in what is computed at this size."""


@dataclass(frozen=True, kw_only=True)
class BucketPlan:
    """A few sizes for ragged lengths; printed, a table with what they cost and save.

    >>> import jitcount
    >>> plan = jitcount.plan_buckets([20, 31, 20, 934, 57], k=2)
    >>> plan.sizes, plan.size_for(30)
    ((57, 934), 57)
    """

    sizes: tuple[int, ...]
    """The sizes, the smallest first."""

    buckets: tuple[Bucket, ...] = field(repr=False)
    """Each size with the lengths that are padded to it."""

    multiple_of: int = 1
    """What every size is a multiple of."""

    steps: int = field(repr=False)
    """How many calls are ahead."""

    is_k_given: bool = field(repr=False)
    """Whether it was said how many sizes there should be; else there are as many as pay."""

    is_measured: bool = field(repr=False)
    """Whether the costs are seconds that were measured; else they are assumed."""

    alternatives: tuple[Alternative, ...] = field(repr=False)
    """The plan, and what it is compared with: powers of two, one size, no padding."""

    @property
    def padding(self) -> float:
        """The share of padding in all that is computed."""
        return self.alternatives[0].padding

    def size_for(self, length: int) -> int:
        """The size that a length is padded to.

        Raises:
            ValueError: it is longer than the largest size.
        """
        place = bisect.bisect_left(self.sizes, length)
        if place == len(self.sizes):
            raise ValueError(f"length {length} is beyond the largest size, {self.sizes[-1]}")
        return self.sizes[place]

    def warm(
        self,
        f: Bucketed,
        *args: Any,
        threads: int | None = None,
        progress: bool = True,
        **kwargs: Any,
    ) -> None:
        """Compile a bucketed function for all sizes, so that no request has to wait for it.

        Nothing is executed. `freeze()` then shows that nothing is compiled any more.

        >>> import jax, jitcount, numpy as np
        >>> plan = jitcount.plan_buckets([3, 5, 8], k=2)
        >>> double = jitcount.bucketed(jax.jit(lambda x: 2 * x), plan, axes={"x": 0})
        >>> plan.warm(double, np.ones(3, np.float32), progress=False)
        >>> with jitcount.freeze():
        ...     print(double(np.ones(5, np.float32)))
        [2. 2. 2. 2. 2.]

        Args:
            f: what `jitcount.bucketed` returned.
            args: the arguments of a call, of any length: arrays or `jax.ShapeDtypeStruct`. None if
                it was called before: then those of the first call.
            threads: how many compile at the same time; by default as many as there are processors.
            progress: show a bar on stderr if that is a terminal, and a line every ten seconds else.
            kwargs: the keyword arguments of that call.
        """
        from jitcount._buckets.warm import warm  # noqa: PLC0415 (JAX, which a plan can do without)

        warm(f, args, kwargs, [self.sizes], threads=threads, progress=progress)

    def __str__(self) -> str:
        from jitcount._buckets.table import plan_table  # noqa: PLC0415 (only who prints it)
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(plan_table(self))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from jitcount._buckets.table import plan_table  # noqa: PLC0415 (the same)
        from jitcount._show import html  # noqa: PLC0415

        return html.render(plan_table(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001, ARG002 (IPython's)
        """What IPython shows in a terminal."""
        printer.text(str(self))


class BucketGrid(Mapping[str, BucketPlan]):
    """Sizes for two ragged axes, a plan for each by its name; a program for each pair of sizes.

    >>> import jitcount
    >>> grid = jitcount.plan_buckets({"nodes": [3, 4, 9], "edges": [5, 7, 30]}, k=4)
    >>> grid["nodes"].sizes, grid["edges"].sizes
    ((4, 9), (7, 30))
    """

    def __init__(
        self, plans: Mapping[str, BucketPlan], alternatives: Sequence[Alternative]
    ) -> None:
        self._plans = dict(plans)
        self.alternatives = tuple(alternatives)
        """The grid, and what it is compared with."""

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The sizes by the name of the axis."""
        return {name: plan.sizes for name, plan in self._plans.items()}

    @property
    def padding(self) -> float:
        """The share of padding in all that is computed."""
        return self.alternatives[0].padding

    def __getitem__(self, name: str) -> BucketPlan:
        return self._plans[name]

    def __iter__(self) -> Any:
        return iter(self._plans)

    def __len__(self) -> int:
        return len(self._plans)

    def warm(
        self,
        f: Bucketed,
        *args: Any,
        threads: int | None = None,
        progress: bool = True,
        **kwargs: Any,
    ) -> None:
        """Compile a bucketed function for every pair of sizes, as `BucketPlan.warm` does."""
        from jitcount._buckets.warm import warm  # noqa: PLC0415 (JAX, which a plan can do without)

        wanted = [plan.sizes for plan in self.values()]
        warm(f, args, kwargs, wanted, threads=threads, progress=progress)

    def __repr__(self) -> str:
        return f"BucketGrid(sizes={self.sizes})"

    def __str__(self) -> str:
        from jitcount._buckets.table import grid_table  # noqa: PLC0415 (only who prints it)
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(grid_table(self))


@overload
def plan_buckets(
    lengths: Mapping[str, Iterable[int]],
    k: int | None = ...,
    *,
    multiple_of: int = ...,
    sizes: None = ...,
    steps: int | None = ...,
    compile_s: float | None = ...,
    step_s: StepSeconds | None = ...,
    log: Log | None = ...,
    function: str | None = ...,
    target: str | None = ...,
) -> BucketGrid: ...


@overload
def plan_buckets(
    lengths: Lengths,
    k: int | None = ...,
    *,
    multiple_of: int = ...,
    sizes: Iterable[int] | None = ...,
    steps: int | None = ...,
    compile_s: float | None = ...,
    step_s: StepSeconds | None = ...,
    log: Log | None = ...,
    function: str | None = ...,
    target: str | None = ...,
) -> BucketPlan: ...


def plan_buckets(  # noqa: PLR0913 (keywords, each of its own)
    lengths: Lengths | Mapping[str, Iterable[int]],
    k: int | None = None,
    *,
    multiple_of: int = 1,
    sizes: Iterable[int] | None = None,
    steps: int | None = None,
    compile_s: float | None = None,
    step_s: StepSeconds | None = None,
    log: Log | None = None,
    function: str | None = None,
    target: str | None = None,
) -> BucketPlan | BucketGrid:
    """The best few sizes to pad ragged lengths to: no other `k` sizes compute less padding.

    >>> import jitcount
    >>> jitcount.plan_buckets([20, 31, 20, 934, 57], k=2).sizes
    (57, 934)
    >>> jitcount.plan_buckets({100: 5000, 120: 3000, 900: 40}, multiple_of=128).sizes
    (128, 1024)

    Args:
        lengths: the lengths as they came, or a mapping from each to how often it came. For two
            ragged axes, a mapping from their names to their lengths, which belong together one by
            one: the plan is then a good one, and not proven to be the best.
        k: how many sizes, and so how many programs, at most. By default as many as pay: one more
            size must save more in the calls ahead than its compile costs.
        multiple_of: what every size must be a multiple of: 128 where a chip has tiles of that size.
        sizes: no plan, but what these sizes cost.
        steps: how many calls are ahead; by default as many as there are lengths.
        compile_s: the seconds that one compile takes.
        step_s: the seconds that one call takes: at the largest size, if they grow as the size does;
            or a mapping from some sizes to what was measured there, or a function of the size.
        log: a `CompileLog`, a ledger or its path: what its recompiles took is `compile_s`.
        function: of the log, only this function's compiles.
        target: of the log, what a target's compiler took: ``"tpu:v5e"``.

    Returns:
        A `BucketPlan`; for two axes, one for each by name.

    Raises:
        ValueError: there are no lengths, or one that is not whole or below one; `k` or another
            number is too small; `sizes` do not reach the longest length; the log has nothing.
    """
    require_whole("k", k, least=1)
    require_whole("multiple_of", multiple_of, least=1)
    require_whole("steps", steps, least=1)
    if isinstance(lengths, Mapping) and any(isinstance(name, str) for name in lengths):
        if sizes is not None:
            raise ValueError("plan_buckets compares sizes of one axis; lengths has several")
        pairs = _pairs(cast("Mapping[str, Iterable[int]]", lengths))
        costs = Costs.of(compile_s, step_s, log, function, target)
        from jitcount._buckets.grid import plan_grid  # noqa: PLC0415 (it plans by what is here)

        return plan_grid(pairs, k, multiple_of, steps, costs)
    histogram = Histogram.of(cast("Lengths", lengths))
    wanted = None if sizes is None else _checked_sizes(sizes, histogram.longest, multiple_of)
    costs = Costs.of(compile_s, step_s, log, function, target)
    if wanted is None:
        wanted = _best_sizes(histogram, k, multiple_of, steps, costs)
    is_k_given = k is not None or sizes is not None
    return plan_of(histogram, wanted, multiple_of, steps, costs, is_k_given=is_k_given)


# --- Lengths --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Histogram:
    """Different lengths, the shortest first, and how often each came."""

    lengths: Whole
    counts: Floats

    @classmethod
    def of(cls, lengths: Lengths, name: str = "lengths") -> Histogram:
        """The histogram of lengths, or of a mapping from each to how often it came."""
        if isinstance(lengths, Mapping):
            found = _whole(lengths, name)
            counts = _whole(lengths.values(), f"the counts of {name}", least=0)
            found, counts = found[counts > 0], counts[counts > 0]
            order = np.argsort(found)
            found, counts = found[order], counts[order]
        else:
            found, counts = np.unique(_whole(lengths, name), return_counts=True)
        if not len(found):
            raise ValueError(f"plan_buckets needs lengths; {name} is empty")
        return cls(found, counts.astype(np.float64))

    @property
    def longest(self) -> int:
        """The longest length."""
        return int(self.lengths[-1])

    @property
    def total(self) -> float:
        """How many lengths came."""
        return float(self.counts.sum())


def _whole(values: Iterable[Any], name: str, least: int = 1) -> Whole:
    """Numbers as an array, if all of them are whole and large enough."""
    try:
        given = values if isinstance(values, np.ndarray) else list(values)
    except TypeError:
        raise ValueError(
            f"plan_buckets takes lengths in a list, an array or a mapping; {name} is {values!r}"
        ) from None
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"plan_buckets takes lengths in one row; {name} has shape {array.shape}")
    if not array.size:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        for place, value in enumerate(array.tolist()):
            if not _is_whole(value):
                raise ValueError(f"plan_buckets takes whole lengths; {name}[{place}] is {value!r}")
    place = int(array.argmin())
    if (value := int(array[place])) < least:
        raise ValueError(
            f"plan_buckets takes lengths of {least} or more; {name}[{place}] is {value}"
        )
    return array.astype(np.int64)


def _is_whole(value: object) -> bool:
    """Whether a value is a whole number; one that pandas has made a float is still one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**53 and value == int(value)


def _pairs(lengths: Mapping[Any, Iterable[int]]) -> dict[str, Whole]:
    """The lengths of two axes by name, as many of each."""
    if len(lengths) != 2:
        raise ValueError(f"plan_buckets takes one or two axes; lengths names {len(lengths)}")
    pairs = {str(name): _whole(values, f"lengths[{name!r}]") for name, values in lengths.items()}
    (first, of_first), (second, of_second) = pairs.items()
    if len(of_first) != len(of_second):
        raise ValueError(
            "plan_buckets takes lengths that belong together one by one; "
            f"{first} has {len(of_first)} and {second} has {len(of_second)}"
        )
    if not len(of_first):
        raise ValueError("plan_buckets needs lengths; lengths is empty")
    return pairs


def require_whole(name: str, value: object, *, least: int, who: str = "plan_buckets") -> None:
    """Raise `ValueError` unless an option is a whole number that is large enough, or None."""
    if value is None:
        return
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{who} takes {name} of {least} or more; {name} is {value!r}")


def _checked_sizes(sizes: Iterable[int], longest: int, multiple_of: int) -> tuple[int, ...]:
    wanted = tuple(int(size) for size in np.unique(_whole(sizes, "sizes")))
    if not wanted or wanted[-1] < longest:
        named = ", ".join(map(str, wanted)) or "none"
        raise ValueError(
            f"sizes ({named}) do not reach the longest length, {longest}: add one that does"
        )
    for size in wanted:
        if size % multiple_of:
            raise ValueError(f"sizes must be multiples of {multiple_of}; {size} is not")
    return wanted


# --- Costs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """What a compile and a call cost: in seconds, or in calls at the largest size."""

    compile_s: float
    step_s: StepSeconds
    is_measured: bool

    @classmethod
    def of(
        cls,
        compile_s: float | None,
        step_s: StepSeconds | None,
        log: Log | None,
        function: str | None,
        target: str | None,
    ) -> Costs:
        """The costs that were given or measured; what is not known is assumed."""
        if compile_s is None and log is not None:
            compile_s = measured_compile_s(_compiles_of(log), function, target)
        elif log is None and (target is not None or function is not None):
            name, value = ("target", target) if target is not None else ("function", function)
            raise ValueError(f"plan_buckets looks for {name} {value!r} in a log; pass log=, too")
        if compile_s is not None:
            _require_seconds("compile_s", compile_s)
        if step_s is None:
            # In calls at the largest size, if seconds of one are not known.
            return cls(float(ASSUMED_STEPS), 1.0, is_measured=False)
        if isinstance(step_s, int | float):
            _require_seconds("step_s", step_s)
        if compile_s is None:
            raise ValueError("plan_buckets weighs step_s against compiles; pass compile_s or log=")
        return cls(float(compile_s), step_s, is_measured=True)

    def of_calls(self, sizes: Whole, largest: int) -> Floats:
        """What a call costs at each of some sizes; a larger one costs no less."""
        step_s = self.step_s
        if isinstance(step_s, Mapping):
            if not step_s:
                raise ValueError("plan_buckets takes step_s at one size at least; there is none")
            known = sorted(step_s.items())
            at, took = (np.asarray(part, np.float64) for part in zip(*known, strict=True))
            seconds = _interpolated(sizes.astype(np.float64), at, took)
        elif callable(step_s):
            seconds = np.asarray([float(step_s(int(size))) for size in sizes])
        else:
            seconds = sizes * (step_s / largest)
        if not np.isfinite(seconds).all() or (seconds < 0).any():
            place = int(np.argmin(np.isfinite(seconds) & (seconds >= 0)))
            raise ValueError(
                f"step_s must be seconds of 0 or more; at size {sizes[place]} it is "
                f"{float(seconds[place])}"
            )
        return np.maximum.accumulate(seconds)


def _interpolated(sizes: Floats, at: Floats, took: Floats) -> Floats:
    """What was measured: between two sizes on a line, and beyond the last in proportion."""
    inside = np.interp(sizes, at, took)
    return np.where(sizes > at[-1], took[-1] * sizes / at[-1], inside)


def _require_seconds(name: str, value: float) -> None:
    if isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ValueError(f"plan_buckets takes {name} in seconds, 0 or more; {name} is {value!r}")


def _compiles_of(log: Log) -> Sequence[Compile]:
    if hasattr(log, "compiles"):
        return log.compiles
    return load(Path(log)).compiles


def measured_compile_s(
    compiles: Sequence[Compile], function: str | None, target: str | None
) -> float:
    """The seconds of a compile of a ragged function: the median of its recompiles.

    Raises:
        ValueError: there is none.
    """
    found = [c for c in compiles if not c.eager and not c.from_disk]
    if function is not None:
        of_it = [c for c in found if c.function == function]
        if not of_it:
            names = dict.fromkeys(c.function for c in found)
            remedy = did_you_mean(function, names) or f"there are {', '.join(names) or 'none'}"
            raise ValueError(f"the log has no compile of {function!r}; {remedy}")
        found = of_it
    ragged = [c for c in found if any(cause.kind == Kind.SHAPE for cause in c.causes)] or found
    if not ragged:
        raise ValueError("the log has no compile of a jitted function: pass compile_s")
    if target is None:
        return statistics.median(c.total_s for c in ragged)
    took = [seconds for c in ragged if target in c.on and (seconds := c.on[target].compile_s)]
    if not took:
        targets = dict.fromkeys(name for c in found for name in c.on)
        raise ValueError(
            f"the log has no compile for {target!r}; its targets are {', '.join(targets) or 'none'}"
        )
    return statistics.median(took)


# --- Sizes and what they cost ---------------------------------------------------------------------


def rounded_up(lengths: Whole, multiple_of: int) -> Whole:
    """The next multiples."""
    return -(-lengths // multiple_of) * multiple_of


def powers_of_two(lengths: Whole, multiple_of: int) -> Whole:
    """The powers of two that these lengths would be padded to, as multiples."""
    return np.unique(rounded_up(next_powers(lengths), multiple_of))


def next_powers(lengths: Whole) -> Whole:
    """For each length the next power of two.

    >>> next_powers(np.array([1, 2, 3, 64, 65])).tolist()
    [1, 2, 4, 64, 128]
    """
    return 2 ** np.ceil(np.log2(lengths)).astype(np.int64)


def _best_sizes(
    histogram: Histogram, k: int | None, multiple_of: int, steps: int | None, costs: Costs
) -> tuple[int, ...]:
    candidates, of_length = np.unique(
        rounded_up(histogram.lengths, multiple_of), return_inverse=True
    )
    counts = np.bincount(of_length, weights=histogram.counts)
    weights = counts * ((steps or histogram.total) / histogram.total)
    chosen = best_places(
        costs.of_calls(candidates, int(candidates[-1])), weights, k, costs.compile_s
    )
    return tuple(int(candidates[place]) for place in chosen.places)


def plan_of(  # noqa: PLR0913 (what a plan is made of)
    histogram: Histogram,
    sizes: Sequence[int],
    multiple_of: int,
    steps: int | None,
    costs: Costs,
    *,
    is_k_given: bool,
) -> BucketPlan:
    """A plan of these sizes, beside the alternatives to it."""
    steps = round(histogram.total) if steps is None else steps
    one = rounded_up(histogram.lengths[-1:], multiple_of)
    others = {
        POWERS: powers_of_two(histogram.lengths, multiple_of),
        "one size": one,
        UNPADDED: histogram.lengths,
    }
    every = np.unique(np.concatenate([np.asarray(sizes, np.int64), *others.values()]))
    seconds = costs.of_calls(every, max(int(sizes[-1]), int(one[-1])))
    cost = functools.partial(_alternative, histogram, steps, costs.compile_s, (every, seconds))
    each = {"this plan": np.asarray(sizes, np.int64), **others}
    alternatives = tuple(cost(name, of) for name, of in each.items())
    return BucketPlan(
        sizes=tuple(sizes),
        buckets=tuple(_buckets(histogram, sizes)),
        multiple_of=multiple_of,
        steps=steps,
        is_k_given=is_k_given,
        is_measured=costs.is_measured,
        alternatives=alternatives,
    )


def _alternative(  # noqa: PLR0913, PLR0917 (partly given, once)
    histogram: Histogram,
    steps: int,
    compile_s: float,
    took: tuple[Whole, Floats],
    name: str,
    sizes: Whole,
) -> Alternative:
    padded = sizes[np.searchsorted(sizes, histogram.lengths)]
    compiles = len(np.unique(padded))
    every, seconds = took
    of_call = seconds[np.searchsorted(every, padded)]
    return Alternative(
        name=name,
        compiles=compiles,
        padding=_padding(histogram.lengths, padded, histogram.counts),
        compile_s=compiles * compile_s,
        run_s=float((of_call * histogram.counts).sum()) * steps / histogram.total,
    )


def _padding(lengths: Whole, padded: Whole, counts: Floats) -> float:
    computed = float((padded * counts).sum())
    return 1.0 - float((lengths * counts).sum()) / computed


def _buckets(histogram: Histogram, sizes: Sequence[int]) -> Iterable[Bucket]:
    ends = np.searchsorted(histogram.lengths, sizes, side="right")
    begins = [0, *ends[:-1].tolist()]
    for size, begin, end in zip(sizes, begins, ends.tolist(), strict=True):
        if begin == end:  # of sizes that were given, one may serve nothing
            continue
        lengths, counts = histogram.lengths[begin:end], histogram.counts[begin:end]
        yield Bucket(
            size=size,
            shortest=int(lengths[0]),
            longest=int(lengths[-1]),
            calls=round(float(counts.sum())),
            padding=_padding(lengths, np.full_like(lengths, size), counts),
        )
