"""What is under way in a thread: the traces, the lowering and the compile that have not ended."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount.observe.phases import Traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount.observe.measuring import Measured
    from jitcount.observe.observation import Observation, Portable


@dataclass(slots=True)
class UnderWay:
    """A compile that has begun and not ended."""

    began_at: float
    from_disk: bool = False
    expected: Observation | None = None
    """What was seen of it before it began."""

    is_allowed: bool = True
    measured: Measured | None = None
    portable: Portable | None = None
    profile: Any = None
    """What the profiler gave when it began."""


@dataclass(slots=True)
class Thread:
    """What is under way in a thread."""

    traces: Traces = field(default_factory=Traces)
    avals_in_line: Sequence[Any] | None = None
    """From JAX's line about the lowering that is under way."""

    lowering_at: float = 0.0
    compiles: list[UnderWay] = field(default_factory=list)
    """One, but for a finalizer that compiles while Python collects garbage within a compile."""

    handled: dict[str, int] = field(default_factory=dict)
    """For each phase, the exception that was being handled when it began."""


class Threads(threading.local):
    """What is under way in each; this thread's is looked up once for each event."""

    def __init__(self) -> None:
        self.here = Thread()
