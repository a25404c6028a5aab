"""Figures and compiles as text, the same in every medium."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from jitcount._explain.summary import is_first
from jitcount._show.parts import Bytes, Cell, Count, Ratio, Seconds, Share, Tone, Ulps, content_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile

# From so many ulps on, a distance is only called "far".
_FAR = 10_000

# A result that uses less of its bound than this says nothing about the last digits.
_ALMOST_NOTHING = 0.001

_MOST_ARRAYS = 6


def cell_text(cell: Cell) -> str:
    r"""The text of a cell.

    >>> cell_text(Seconds(0.0451)), cell_text(Ratio(1.357)), cell_text(Bytes(None))
    ('45.1 ms', '1.36\xd7', '')
    >>> cell_text(("≈", Ulps(1234), Ratio(1.357, digits=1)))
    '≈ 1,234 1.4\xd7'
    """
    match content_of(cell):
        case str(text):
            shown = text
        case tuple(several):
            shown = " ".join(map(cell_text, several))
        case Share(value):
            shown = share(value)
        case Seconds(None) | Bytes(None) | Ratio(None):
            shown = ""
        case Seconds(value) if value is not None:
            shown = seconds(value)
        case Bytes(value) if value is not None:
            shown = size(value)
        case Ratio(value, digits):
            shown = f"{value:.{digits}f}×"
        case Ulps(value):
            shown = f"{value:,}" if value < _FAR else "far"
        case Count(value):
            shown = str(value)
    return shown


def seconds(value: float) -> str:
    """A duration in the unit that reads best.

    >>> seconds(12.34), seconds(0.0451), seconds(0.0000294), seconds(0.0)
    ('12.3 s', '45.1 ms', '29.4 µs', '0')
    >>> seconds(0.9997), seconds(1234.5)
    ('1 s', '1,234 s')
    """
    value = float(f"{value:.3g}") if value < _WHOLE else value
    for unit, scale in ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9):
        if value >= scale:
            return f"{_figures(value / scale)} {unit}"
    return "0"


# Figures from this on have no decimals.
_WHOLE = 999.5


def _figures(value: float) -> str:
    return f"{value:.3g}" if value < _WHOLE else f"{value:,.0f}"


def seconds_of(part: float, whole: float) -> str:
    """A duration and the whole that it is a part of, in one unit, and the share.

    >>> seconds_of(8.4, 10.1), seconds_of(0.05, 2.0)
    ('8.4 of 10.1 s (83 %)', '0.05 of 2 s (2.5 %)')
    >>> seconds_of(1000.0, 1001.0)
    '1,000 of 1,001 s (100 %)'
    """
    text = seconds(whole)
    unit = text.rpartition(" ")[2]
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}.get(unit)
    if scale is None:
        return text
    percent = 100 * part / whole
    shown = f"{percent:.2g}" if percent < _ALL else "100"
    return f"{_figures(part / scale)} of {text} ({shown} %)"


# So many percent are shown as all.
_ALL = 99.5


def size(number: int) -> str:
    """Bytes in the unit that reads best.

    >>> size(12), size(36864), size(16935682048)
    ('12 B', '36 KiB', '15.8 GiB')
    """
    value = float(number)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} GiB"


def plural(number: int, thing: str) -> str:
    """A number and its noun.

    >>> plural(1, "compile"), plural(2, "compile")
    ('1 compile', '2 compiles')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def times(name: str, count: int) -> str:
    r"""A name, and how many there are of it where that is more than one.

    >>> times("step", 1), times("step", 3)
    ('step', 'step \xd73')
    """
    return name if count == 1 else f"{name} ×{count}"


def share(used: float | None) -> str:
    """The share of a bound that is used, and whether that says anything.

    >>> share(None), share(0.25), share(0.00001), share(0.0), share(40.0), share(math.inf)
    ('exact', '0.25', '1e-05 almost nothing', '0 almost nothing', '40 times', 'beyond')
    """
    if used is None:
        return "exact"
    if used > 1:
        return f"{used:.3g} times" if math.isfinite(used) else "beyond"
    if used >= _ALMOST_NOTHING:
        return f"{used:.2g}"
    return f"{used:.0e} almost nothing" if used else "0 almost nothing"


def signature_of(signature: Sequence[str]) -> str:
    """The signature of a compile; of many arrays, the first."""
    if len(signature) <= _MOST_ARRAYS:
        return ", ".join(signature) or "no arrays"
    first = ", ".join(signature[: _MOST_ARRAYS - 1])
    return f"{first} and {len(signature) - _MOST_ARRAYS + 1} more"


_SHORT_DTYPES = {"uint": "u", "float": "f", "int": "i", "complex": "c"}
_WIDE_DTYPE = re.compile(r"\b(u?int|float|complex)(?=\d+\b)(?!\d*_)")


def short_type(text: str) -> str:
    """Dtype and shape with the dtype in short, as JAX writes it in a jaxpr.

    >>> short_type("float32[64,32]"), short_type("weak int32[]"), short_type("bfloat16[8]")
    ('f32[64,32]', 'weak i32[]', 'bf16[8]')
    """
    short = _WIDE_DTYPE.sub(lambda found: _SHORT_DTYPES[found[1]], text)
    return short.replace("bfloat16", "bf16")


def arguments_of(compiled: Compile) -> str:
    """What a function was given: arrays by name, what holds several with their number, statics.

    >>> import jax, jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda p, x: x)({"w": 1.0, "b": 0.0}, np.zeros(3, np.float32))
    >>> arguments_of(log.compiles[0])
    'p{2}, x f32[3]'
    """
    if not compiled.arguments:
        return short_type(signature_of(compiled.signature))
    arrays = [a for a in compiled.arguments if not a.is_static]
    static = [a.name for a in compiled.arguments if a.is_static]
    shown = ", ".join(
        f"{a.name} {short_type(a.type)}" if a.type else f"{a.name}{{{a.leaves}}}" for a in arrays
    )
    return "; ".join(filter(None, [shown or ("" if static else "no arrays"), ", ".join(static)]))


def name_of(compiled: Compile) -> str:
    """The function of a compile, with "eager", "ahead of time" or "disk" where it was so."""
    marks = {
        "eager": compiled.eager,
        "ahead of time": compiled.ahead_of_time,
        "disk": compiled.from_disk,
    }
    shown = ", ".join(mark for mark, is_so in marks.items() if is_so)
    return f"{compiled.function} ({shown})" if shown else compiled.function


def tone_of_causes(compiled: Compile) -> Tone:
    """The tone of a compile's causes: faint where it is needed, avoidable for a recompile."""
    is_needed = is_first(compiled) or compiled.ahead_of_time
    return Tone.FAINT if is_needed else Tone.AVOIDABLE
