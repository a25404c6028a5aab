"""A compile in flight: what is seen of it while the user's program waits."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._jax import frames, lowering
from jitcount._observe.call_site import UNKNOWN_SITES, Sites, sites_in
from jitcount._observe.program import Program, describe, describe_call

if TYPE_CHECKING:
    from types import FrameType

    from jitcount._jax.lowering import Compilation, Lowering, Measure

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


# --- Describes the call that is compiled, from JAX's frames; nothing that fails here stops a co


_logger = logging.getLogger("jitcount")


class Description(msgspec.Struct, frozen=True):
    """What could be read of a call."""

    avals: Sequence[Any] | None = None
    program: Program | None = None
    made_by_jax: bool = False
    sites: Sites | None = None


NO_DESCRIPTION = Description()


def described(
    function: str, program: Program | None, frame: FrameType, *, in_full: bool
) -> Description:
    """Describe a call; its program not again, if that was done when it was traced."""
    try:
        call = frames.read_call(frame)
    except Exception:  # a count without a description is better than none
        _logger.debug("could not read JAX's frames", exc_info=True)
        return NO_DESCRIPTION
    # Between here and the call of a jitted function all frames are JAX's.
    sites = sites_in(call.call.caller if isinstance(call.call, frames.JitCall) else frame)
    try:
        if in_full:
            program = program or describe(call, function, sites.user)
    except Exception:  # the same
        _logger.debug("could not describe %s", function, exc_info=True)
    return Description(call.avals, program, call.made_by_jax, sites)


def described_ahead_of_time(function: str, frame: FrameType) -> Program | None:
    """The program of a `.trace()` or `.lower()`, described while its arguments are there."""
    try:
        call = frames.read_tracing(frame)
        return None if call is None else describe_call(call, function)
    except Exception:  # the same
        _logger.debug("could not describe %s", function, exc_info=True)
        return None


# --- Puts the parts of a compile together: a trace, a lowering and a backend compile --------------
#
# In an ordinary call the three follow each other in one thread. But a trace can hold other traces
# and whole compiles, a lowering can wait for its compile (``.lower()`` now, ``.compile()`` in
# another thread), and both can be left out where JAX has them in its caches.


# A lowering that is never compiled waits in vain; so many may wait.
_WAITING = 256


class Trace(msgspec.Struct, frozen=True):
    """A trace that waits for its lowering."""

    seconds: float
    program: Program | None = None
    """What is traced, where it is traced ahead of time."""

    began_at: float | None = None
    """Seconds since the epoch."""

    profile: Any = None
    """What the profiler gave, if there was one."""


NO_TRACE = Trace(0.0)


class Lowered(msgspec.Struct, frozen=True, eq=False):
    """A lowering that waits for its compile."""

    function: str
    kept_avals: Sequence[Any] | None
    thread: int
    trace_s: float
    lower_s: float
    description: Description = NO_DESCRIPTION
    began_at: float | None = None
    """Seconds since the epoch: of its trace, if it had one."""

    module: Callable[[], object] | None = None
    """A weak reference to what it made, which is what will be compiled."""

    profile: Any = None
    """What the profiler gave, if there was one."""

    is_small: bool = False


class Traces:
    """The traces of one thread, the nested ones dropped as soon as the outer one ends.

    >>> traces = Traces()
    >>> traces.begin(); traces.begin()
    >>> traces.end("multiply", Trace(0.1)); traces.end("step", Trace(0.5))
    >>> traces.take("multiply").seconds, traces.take("step").seconds, traces.take("step").seconds
    (0.0, 0.5, 0.0)
    """

    def __init__(self) -> None:
        self._ended: list[tuple[str, Trace]] = []
        self._begun: list[tuple[int, float]] = []

    def begin(self, at: float = 0.0) -> None:
        """A trace begins, perhaps within another."""
        self._begun.append((len(self._ended), at))

    @property
    def began_at(self) -> float | None:
        """When the innermost trace that is under way began."""
        return self._begun[-1][1] if self._begun else None

    def end(self, function: str, trace: Trace | None) -> None:
        """The innermost trace ends; it is None where it failed."""
        if self._begun:
            del self._ended[self._begun.pop()[0] :]
        if trace is not None:
            self._ended.append((function, trace))
            del self._ended[:-_WAITING]

    def take(self, function: str, is_in_a_call: Callable[[], bool] = lambda: False) -> Trace:
        """The latest trace of that function, once; `NO_TRACE` where there is none.

        What a call lowers was traced by that call, if it was at all, and not ahead of time: a
        ``.trace()`` that is never lowered waits in vain, and is of other arguments. Where none
        waits, nothing is asked.
        """
        for index in range(len(self._ended) - 1, -1, -1):
            name, trace = self._ended[index]
            if name == function and (trace.program is None or not is_in_a_call()):
                del self._ended[index]
                return trace
        return NO_TRACE


class Lowerings:
    """The lowerings of the process that wait for their compile."""

    def __init__(self) -> None:
        self._waiting: deque[Lowered] = deque(maxlen=_WAITING)
        # A garbage collection in here may run a finalizer that compiles, in the same thread.
        self._lock = threading.RLock()

    def add(self, lowered: Lowered) -> None:
        """Keep a lowering until it is taken, or until too many came after it."""
        with self._lock:
            self._waiting.append(lowered)

    def take(
        self,
        function: str,
        kept_avals: Sequence[Any] | None,
        thread: int,
        module: object = None,
    ) -> Lowered | None:
        """The lowering of a program that is being compiled: same name, same avals, same module.

        Among equals it is this thread's, then the latest. What is not known, on either side, is
        equal to any.
        """
        with self._lock:
            found: Lowered | None = None
            for lowered in reversed(self._waiting.copy()):  # such a finalizer changes it
                if lowered.function == function and _may_be(lowered, kept_avals, module):
                    found = found or lowered
                    if lowered.thread == thread:
                        found = lowered
                        break
            if found is not None:
                try:  # noqa: SIM105 (quicker than `suppress`)
                    self._waiting.remove(found)
                except ValueError:  # and may have taken this one
                    pass
            return found


def _may_be(lowered: Lowered, kept_avals: Sequence[Any] | None, module: object) -> bool:
    """Whether a lowering made this module; by its avals, where modules cannot tell."""
    if module is not None and lowered.module is not None:
        return lowered.module() is module
    known = lowered.kept_avals
    return known is None or kept_avals is None or list(known) == list(kept_avals)


# --- What is under way in a thread: the traces, the lowering and the compile that have not ende


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


# --- When a program is measured: a small one not while the user's call waits for it ---------------
#
# A fingerprint takes a fifth of a millisecond where JAX and XLA have just been through the
# processor's caches, and a third of that among others. So small programs wait until they are
# asked for, or are a few. What is large is measured at once: beside its compile that is nothing,
# and it may hold arrays of the user's, which are not to be kept alive from here.


MOST_WAITING = 16
"""More programs than these do not wait; JAX, too, keeps them for as long as their function."""


class Measured:
    """The fingerprint and size of one program, found out when first asked for."""

    __slots__ = ("_compilation", "_measure")

    def __init__(self, compilation: Compilation) -> None:
        self._compilation: Compilation | None = compilation
        self._measure: Measure | None = None

    @property
    def waits_for(self) -> Compilation | None:
        """What is not measured yet."""
        return self._compilation

    def get(self) -> Measure | None:
        """What was found; None where that failed. Two threads that ask at once find the same."""
        if (compilation := self._compilation) is not None:
            try:
                self._measure = lowering.measure(compilation)
            except Exception:  # observing must never fail the user's program
                _logger.debug("could not measure what was compiled", exc_info=True)
            self._compilation = None
        return self._measure


class Unmeasured:
    """The programs that wait to be measured.

    Threads, and a finalizer that compiles in the midst of it, find another queue, as good as any.
    """

    def __init__(self) -> None:
        self._waiting: list[Measured] = []

    def add(self, measured: Measured) -> None:
        """Let a program wait; one that XLA has done with: what it reads must not be read here."""
        self._waiting.append(measured)
        if len(self._waiting) >= MOST_WAITING:
            self.measure_all()

    def measure_all(self) -> None:
        """Let none wait any longer."""
        waiting, self._waiting = self._waiting, []
        # Where JAX has let go of them, the last reference is ours. To free a module takes MLIR a
        # millisecond, all over the memory: not in between.
        held = [measured.waits_for for measured in waiting]
        for measured in waiting:
            measured.get()
        held.clear()
