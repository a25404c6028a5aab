"""Which source lines lose the digits: each rounds alone, and how far that moves the result counts.

The variances of independent roundings add up, so a line's share is its part of the sum of them all.
A line whose rounding is amplified (`x + 1e4`) often looks harmless; where the digits are seen to go
is the line that cancels (`y - y.mean()`). Both are named.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jitcount._hlo.locations import sites_at
from jitcount._jax.jaxprs import Stacks
from jitcount._text import encode_safely, escape_control_chars
from jitcount._tolerance.lanes import FIRST_DRAW, Lanes, OneLineAtATime

if TYPE_CHECKING:
    from jitcount._observe.call_site import CallSite
    from jitcount._tolerance.tolerance import Evaluation

_DRAWS = 4

# So many lines are told apart in one evaluation.
_AT_ONCE = 16

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Cancellation:
    """Numbers of one size that leave one of a much smaller size when they are subtracted."""

    place: CallSite
    bits: float
    """How many bits are lost."""

    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.before:.2g} cancels to {self.after:.2g}, {self.bits:.0f} bits"


@dataclass(frozen=True, slots=True)
class LineShare:
    """How much of a result's deviation comes from the roundings at one line."""

    place: CallSite
    share: float
    """Its part of the deviation of all results, by variance: all lines have 1 together."""

    code: str
    """The line as it is written, without what is too long; empty where there is no source."""

    cancels: Cancellation | None = None
    """What cancels at this line, or, if nothing does, at another line of the program."""

    def __str__(self) -> str:
        percent = f"{self.share:.0%}".replace("%", " %")
        code = f": {self.code}" if self.code else ""
        what = ""
        if self.cancels is not None:
            where = "" if self.cancels.place == self.place else f" at {self.cancels.place}"
            what = f" ({self.cancels}{where})"
        return encode_safely(escape_control_chars(f"{percent} {self.place}{code}{what}"))


def shares_of(evaluation: Evaluation) -> tuple[LineShare, ...]:
    """The lines that move a function's result, the largest share first."""
    watched = Lanes(_DRAWS)
    watched.is_watching = True
    evaluation.run(watched)
    stacks, places = Stacks(), evaluation.reader.places
    sites = {step: sites_at(places[step].stack(stacks)).user for step in watched.rounding}
    lines = list(dict.fromkeys(sites[step] for step in sorted(sites)))
    numbers = {line: number for number, line in enumerate(lines)}
    line_of = {step: numbers[site] for step, site in sites.items()}
    variances = np.zeros(len(lines))
    for first in range(0, len(lines), _AT_ONCE):
        chosen = list(range(first, min(first + _AT_ONCE, len(lines))))
        variances[chosen] = _variances(evaluation, line_of, chosen)
    total = variances.sum()
    if not total > 0:
        return ()
    cancelled = _cancellations(evaluation, watched)
    worst = max(cancelled.values(), key=lambda each: each.bits, default=None)
    order = [at for at in np.argsort(-variances).tolist() if variances[at] > 0]
    return tuple(
        LineShare(
            lines[at],
            float(variances[at] / total),
            _code(lines[at]),
            cancelled.get(lines[at], worst if number == 0 else None),
        )
        for number, at in enumerate(order)
    )


def _variances(evaluation: Evaluation, line_of: dict[int, int], chosen: list[int]) -> np.ndarray:
    """How far each line alone moves all results, by variance, in units of their sizes."""
    results = evaluation.run(OneLineAtATime(line_of, chosen, _DRAWS))
    found = np.zeros(len(chosen))
    for values in results:
        if values.shape[0] == 1 or values.dtype.kind not in "fc" or not values.size:
            continue
        finite = np.isfinite(values).all(0)
        off = np.where(finite, values[FIRST_DRAW:] - values[:1], 0.0)
        scale = np.mean(np.abs(np.where(finite, values[0], 0.0)) ** 2)
        each = np.mean(np.abs(off).reshape(len(chosen), -1) ** 2, 1)
        found += each / scale if scale else each
    return found


def _cancellations(evaluation: Evaluation, watched: Lanes) -> dict[CallSite, Cancellation]:
    """By line, the sum or difference that loses most bits."""
    found: dict[CallSite, Cancellation] = {}
    for step, (bits, before, after) in watched.cancelled.items():
        site = evaluation.site(step)
        if site not in found or found[site].bits < bits:
            found[site] = Cancellation(site, bits, before, after)
    return found


def _code(place: CallSite) -> str:
    shown = place.partition(":")[0]  # what was run without a file has its text under this name
    line = linecache.getline(place.file, place.line) or linecache.getline(shown, place.line)
    text = " ".join(line.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
