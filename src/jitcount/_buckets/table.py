"""Plans as tables: the sizes, and what they cost beside what else could be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._buckets.plan import ASSUMED_STEPS
from jitcount._show.parts import (
    Heading,
    Note,
    Part,
    Row,
    Seconds,
    Table,
    Tone,
    figures,
    toned,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._buckets.plan import Alternative, BucketGrid, BucketPlan

# Of more sizes than these, the table would hide what comes below it.
_MOST_ROWS = 32


def plan_table(plan: BucketPlan) -> list[Part]:
    """The sizes of a plan, and what it costs beside the alternatives."""
    lengths = sum(bucket.calls for bucket in plan.buckets)
    first, last = plan.buckets[0].shortest, plan.buckets[-1].longest
    span = f"from {first:,} to {last:,}" if first < last else f"of {first:,}"
    headline = (
        f"{_counted(len(plan.sizes), 'size')} for {_counted(lengths, 'length')} {span}: "
        f"{_percent(plan.padding)} of what is computed is padding"
    )
    rows: list[Row] = [
        (f"{b.size:,}", _span(b.shortest, b.longest), f"{b.calls:,}", _percent(b.padding))
        for b in plan.buckets[:_MOST_ROWS]
    ]
    more = len(plan.buckets) - len(rows)
    sizes = Table(
        figures("size", "lengths", "of them", "padding"),
        rows,
        left_out=f"and {_counted(more, 'size')} more" if more else "",
    )
    return [
        Heading(headline),
        sizes,
        *_comparison(plan.alternatives, plan),
    ]


def grid_table(grid: BucketGrid) -> list[Part]:
    """The sizes of two axes, and what they cost beside the alternatives."""
    plans = list(grid.items())
    counted = " × ".join(f"{_counted(len(plan.sizes), 'size')} of {name}" for name, plan in plans)
    headline = f"{counted}: {_percent(grid.padding)} of what is computed is padding"
    rows: list[Row] = [
        (name, ", ".join(f"{size:,}" for size in plan.sizes)) for name, plan in plans
    ]
    first = plans[0][1]
    return [
        Heading(headline),
        Table(words("axis", "sizes"), rows),
        *_comparison(grid.alternatives, first),
        Note("each axis has the best sizes for those of the other; both together may be better"),
    ]


def _comparison(alternatives: Sequence[Alternative], plan: BucketPlan) -> list[Part]:
    seconds = ("to compile", "to run", "in all") if plan.is_measured else ()
    rows = [_row(alternative, is_measured=plan.is_measured) for alternative in alternatives]
    shown = [toned(rows[0], Tone.STRONG), *rows[1:]]
    parts: list[Part] = [Table(words("") + figures("compiles", "padding", *seconds), shown)]
    calls = _counted(plan.steps, "call")
    if plan.is_measured:
        parts.append(Note(f"in {calls}", tone=Tone.FAINT))
    elif not plan.is_k_given:
        assumed = f"a compile costs as much as {ASSUMED_STEPS} calls at the largest size"
        known = "compile_s, step_s and steps say what is known"
        parts.append(Note(f"assumed: {assumed}, with {calls} ahead; {known}", tone=Tone.FAINT))
    return parts


def _row(alternative: Alternative, *, is_measured: bool) -> Row:
    compiles, padding = f"{alternative.compiles:,}", _percent(alternative.padding)
    a = alternative
    times = map(Seconds, (a.compile_s, a.run_s, a.total_s)) if is_measured else ()
    return (a.name, compiles, padding, *times)


def _counted(number: int, thing: str) -> str:
    """A number, with marks between its thousands, and its noun."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _span(shortest: int, longest: int) -> str:
    return f"{shortest:,}" if shortest == longest else f"{shortest:,} … {longest:,}"


def _percent(share: float) -> str:
    """A share in percent; a little is not nothing.

    >>> _percent(0.123), _percent(0.004), _percent(0.0)
    ('12 %', '0.4 %', '0 %')
    """
    percent = 100 * share
    if percent < 1e-9:  # what is left of a sum that was rounded
        return "0 %"
    return f"{percent:.2g} %" if percent < 10 else f"{percent:.0f} %"
