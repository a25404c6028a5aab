"""The table of a tolerance: what each result may be off, and the lines that lose its digits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from jitcount._show.parts import Heading, Note, Part, Row, Table, figures, words

if TYPE_CHECKING:
    from jitcount._tolerance.tolerance import ExpectedResult, Tolerance

# Lines that make less than this of the deviation are summed up.
_WORTH_A_ROW = 0.02
_MOST_LINES = 8


def tolerance_table(tolerance: Tolerance) -> list[Part]:
    """What each result may be off, why some has no tolerance, and which lines matter."""
    products = "" if tolerance.products == "float32" else f", products as {tolerance.products}"
    how = f"{tolerance.draws} draws{products}"
    parts: list[Part] = [Heading(f"{tolerance.function}: how far rounding may move it ({how})")]
    results = [_row(result) for result in tolerance.results]
    columns = words("result", "type") + figures("largest", "tolerance", "digits kept")
    parts.append(Table(columns, results))
    for result in tolerance.results:
        if result.why_none:
            count, size = int(np.isnan(result.width).sum()), result.width.size
            of = f"{count:,} of {size:,} elements" if size > 1 else "its value"
            parts.append(Note(f"{result.title}, {of}: {result.why_none}"))
    return parts + _lines(tolerance)


def _row(result: ExpectedResult) -> Row:
    shape = ",".join(map(str, result.reference.shape))
    finite = np.abs(result.reference[np.isfinite(result.reference)])
    largest = float(finite.max(initial=0))
    width = result.width[np.isfinite(result.width)]
    if result.reference.dtype.kind in "biu":
        tolerance, digits = ("none" if not width.size else "must be equal"), ""
    elif not width.size:
        tolerance, digits = "none", "0"
    else:
        off = float(width.max())
        tolerance = f"{off:.2g}" if off else "must be equal"
        digits = f"{max(0.0, -math.log10(off / largest)):.1f}" if off and largest else ""
    size = f"{largest:.4g}" if finite.size else ""
    return (result.title, f"{result.dtype}[{shape}]", size, tolerance, digits)


def _lines(tolerance: Tolerance) -> list[Part]:
    lines = [line for line in tolerance.lines if line.share >= _WORTH_A_ROW][:_MOST_LINES]
    if not lines:
        return []
    rows: list[Row] = [
        (f"{line.share:.0%}".replace("%", " %"), str(line.place), line.code) for line in lines
    ]
    parts: list[Part] = [Table(figures("share") + words("line whose rounding moves it", ""), rows)]
    cancelled = dict.fromkeys(line.cancels for line in lines if line.cancels is not None)
    parts += [Note(f"at {each.place}, {each}") for each in cancelled]
    return parts
