"""What is seen of one compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount.observe.portables import Portable
    from jitcount.observe.program import Program

UNKNOWN = "unknown"


@dataclass(slots=True)
class Observation:
    """One program that XLA compiled, or that came from the persistent cache instead.

    It is made while the user's program waits: nothing in it is written out yet.
    """

    function: str
    avals: Sequence[Any]
    """The abstract values of the arrays that were passed."""

    platform: str
    call_site: str
    eager: bool
    from_disk: bool
    trace_s: float
    lower_s: float
    compile_s: float
    program: Program | None
    """All that tells it from other programs of the same function."""

    portable: Portable | None = None
    """What it takes to compile the same for another platform, while someone wants it."""
