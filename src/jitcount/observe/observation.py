"""A compile in flight: what is seen of it while the user's program waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount.observe.call_site import UNKNOWN_SITES, Sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._jax.lowering import Compilation, Lowering, Measure
    from jitcount.observe.measuring import Measured
    from jitcount.observe.program import Program

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Portable:
    """What it takes to compile a program for another platform; None is what could not be read."""

    lowering: Lowering | None = None
    compilation: Compilation | None = None
    reason: str = ""
    """Why it cannot be compiled elsewhere, where that is known already."""


@dataclass(slots=True, kw_only=True)
class Observation:
    """One program that XLA compiles, or that comes from the persistent cache instead.

    It is made while the user's program waits: nothing in it is written out yet.
    """

    function: str
    avals: Sequence[Any] = ()
    """The abstract values of the arrays that were passed."""

    platform: str = UNKNOWN
    sites: Sites = UNKNOWN_SITES
    eager: bool = False
    from_disk: bool = False
    started_at: float = 0.0
    trace_s: float = 0.0
    lower_s: float = 0.0
    compile_s: float = 0.0
    program: Program | None = None
    """All that tells it from other programs of the same function."""

    is_small: bool = False
    """It has few operations and no array of the user's: nothing is lost where it waits."""

    measured: Measured | None = None
    """While a recorder is open."""

    portable: Portable | None = None
    """While a recorder with targets is open, and until the listeners have been told."""

    profile: Any = None
    """What the profiler gave, while a recorder with a profile is open; not yet written out."""

    earlier: tuple[Program, ...] | None = None
    """Of the same function, one of them the nearest; None until the history was asked."""

    is_traced_anew: bool = False
    """JAX holds another jaxpr of the identical program: its caches were not cleared."""

    @property
    def measure(self) -> Measure | None:
        """What was handed to XLA, measured; it may take a moment, once."""
        return None if self.measured is None else self.measured.get()
