"""The lines of many compiles, as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount.profile.result import Line


class HasLines(Protocol):
    """A compile."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """Its lines."""


_SUMMED = (
    "trace_s",
    "compile_s",
    "share_s",
    "jaxpr_operations",
    "operations",
    "optimised_operations",
)


def over_all(compiles: Iterable[HasLines]) -> tuple[Line, ...]:
    """What each line took over all compiles, most first; last, what is not attributed."""
    found: dict[tuple[str, int, bool], Line] = {}
    calls: dict[tuple[str, int, bool], tuple[float, str]] = {}
    for compiled in compiles:
        for line in compiled.lines:
            key = line.file, line.line, line.is_attributed
            before = found.get(key)
            if before is None:
                found[key] = msgspec.structs.replace(line, inside=())
                calls[key] = line.total_s, line.calls
            else:
                sums = {name: getattr(before, name) + getattr(line, name) for name in _SUMMED}
                # What it calls in the costlier of them.
                calls[key] = max(calls[key], (line.total_s, line.calls))
                found[key] = msgspec.structs.replace(before, calls=calls[key][1], **sums)
    return tuple(
        sorted(found.values(), key=lambda line: (line.is_attributed, line.total_s), reverse=True)
    )
