"""A compile in flight: one record that follows it from its first event to its last.

JAX traces a function, lowers the jaxpr, and XLA compiles the module. In an ordinary call the three
phases follow each other in one thread. But a trace can contain other traces and whole compiles, a
lowering can wait for its compile (``.lower()`` now, ``.compile()`` in another thread), and a phase
is skipped where one of JAX's caches serves it. So the first phase that is seen makes the record,
the record waits for the next phase in `Traces` or `Lowerings`, and each phase fills in its part.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from jitcount._jax import frames
from jitcount._observe.call_site import UNKNOWN_SITES, Sites, sites_in
from jitcount._observe.callers import CallerFrame
from jitcount._observe.functions import describe_function
from jitcount._observe.measuring import LazyMeasure
from jitcount._observe.program import Program, describe, describe_call
from jitcount._observe.values import Leaf, describe_leaf

if TYPE_CHECKING:
    from types import FrameType

    from jitcount._jax.lowering import Compilation, Lowering, Measure

_logger = logging.getLogger("jitcount")

UNKNOWN = "unknown"

# Traces that are never lowered, and lowerings that are never compiled, wait in vain. No more of
# them are kept than this.
_MOST_WAITING = 256


class ProfileInProgress(Protocol):
    """What a profiler finds out about one compile; each method is called as that phase happens."""

    def end_lowering(self, frame: FrameType) -> None:
        """JAX has lowered the program."""

    def begin_compile(self, frame: FrameType) -> None:
        """XLA begins to compile the program."""

    def end_compile(self, frame: FrameType) -> None:
        """XLA has ended, successfully or not."""


class InFlightCompile(msgspec.Struct, kw_only=True, eq=False):
    """One program that XLA compiles, or that the persistent cache serves instead.

    It is filled in while the user's program waits, so it holds what was seen as it was seen;
    `jitcount._explain.explain.to_compile` makes a `Compile` of it when somebody asks.
    """

    function: str
    """The name of the function that is compiled."""

    started_at: float = 0.0
    """When its first phase began, in seconds since the epoch."""

    trace_s: float = 0.0
    lower_s: float = 0.0
    compile_s: float = 0.0

    avals: Sequence[Any] | None = None
    """The abstract values of the arrays that were passed; None until they are known."""

    kept_avals: Sequence[Any] | None = None
    """The abstract values of those arguments that the lowered program uses."""

    program: Program | None = None
    """All that tells it from other programs of the same function; None where it was not read."""

    eager: bool = False
    """No jit of the user's: ``x + y``, ``jnp.ones(3)``."""

    sites: Sites = UNKNOWN_SITES
    platform: str = UNKNOWN
    from_disk: bool = False

    thread_id: int = 0
    """The thread that lowered it."""

    thread: str = ""
    """The name of the thread that compiles it."""

    callers: tuple[CallerFrame, ...] = ()
    """The user's lines on the stack, outermost first, while a recorder is open."""

    ahead_of_time: bool = False
    """Whether ``.compile()`` asked for it, and no call."""

    module: Callable[[], object] | None = None
    """A weak reference to the lowered module, by which its compile is recognised."""

    is_small: bool = False
    """Whether it has few operations and holds no array of the user's: measuring it can wait."""

    needs_guard_check: bool = False
    """A guard is open, and no guard has allowed it yet."""

    measured: LazyMeasure | None = None
    """Its fingerprint and size, while a recorder is open."""

    lowered_program: LoweredProgram | None = None
    """What other compilers need, while somebody wants it and until the recorders have it."""

    profile: ProfileInProgress | None = None
    """Where its time goes, while a recorder with a profile is open."""

    earlier: tuple[Program, ...] | None = None
    """Candidates for the nearest earlier program; None until the history was asked."""

    is_traced_anew: bool = False
    """JAX holds another jaxpr of the identical program: its caches were not cleared."""

    @property
    def measure(self) -> Measure | None:
        """The fingerprint and size of the program; the first look may take a moment."""
        return None if self.measured is None else self.measured.get()


@dataclass(frozen=True, slots=True, eq=False)
class LoweredProgram:
    """What it takes to compile a program for another platform; None is what could not be read."""

    lowering: Lowering | None = None
    compilation: Compilation | None = None
    reason: str = ""
    """Why it cannot be compiled elsewhere, where that is known already."""


# --- What the frames of JAX say about a call ------------------------------------------------------


def describe_from_frames(compiling: InFlightCompile, frame: FrameType) -> None:
    """Fill in what JAX's frames say about the call that needs the program.

    What cannot be read stays as it is: a count without a description is better than none.

    Args:
        compiling: a program that is not described again if that was done when it was traced.
        frame: the innermost frame of the stack.
    """
    try:
        call = frames.read_call(frame)
    except Exception:
        _logger.debug("could not read JAX's frames", exc_info=True)
        return
    # Between here and the call of a jitted function all frames are JAX's.
    sites = sites_in(call.call.caller if isinstance(call.call, frames.JitCall) else frame)
    compiling.avals, compiling.eager, compiling.sites = call.avals, call.made_by_jax, sites
    compiling.ahead_of_time = call.ahead_of_time
    if compiling.program is not None:
        return
    try:
        compiling.program = describe(call, compiling.function, sites.user)
    except Exception:
        _logger.debug("could not describe %s", compiling.function, exc_info=True)


def program_traced_ahead_of_time(function: str, frame: FrameType) -> Program | None:
    """The program of a `.trace()` or `.lower()`, described while its arguments are there."""
    try:
        call = frames.read_tracing(frame)
        return None if call is None else describe_call(call, function)
    except Exception:  # a count without a description is better than none
        _logger.debug("could not describe %s", function, exc_info=True)
        return None


class CallUnderWay(NamedTuple):
    """A call of a jitted function whose program need not be lowered yet."""

    function: str
    signature: tuple[str, ...]


def describe_call_under_way(frame: FrameType) -> CallUnderWay:
    """Describe a call from the frame that JAX began it with; perhaps it is another thread's."""
    name = UNKNOWN
    try:
        call = frames.read_call_under_way(frame)
        if isinstance(call, frames.PrimitiveCall):
            return CallUnderWay(call.name, tuple(str(describe_leaf(x).type) for x in call.args))
        if call is not None:
            name = describe_function(call.fun).name
            values = describe_call(call, name).values
            return CallUnderWay(name, tuple(str(v.type) for v in values if isinstance(v, Leaf)))
    except Exception:
        _logger.debug("could not describe a call that is under way", exc_info=True)
    return CallUnderWay(name, ())


# --- Records that wait for their next phase -------------------------------------------------------


class Traces:
    """The traces of one thread; nested ones are dropped as soon as the outer one ends.

    >>> traces = Traces()
    >>> traces.begin(); traces.begin()
    >>> traces.end(InFlightCompile(function="multiply"))
    >>> traces.end(InFlightCompile(function="step"))
    >>> traces.take("multiply"), traces.take("step").function, traces.take("step")
    (None, 'step', None)
    """

    def __init__(self) -> None:
        self._ended: list[InFlightCompile] = []
        self._begun: list[tuple[int, float]] = []

    def begin(self, at: float = 0.0) -> None:
        """A trace begins, perhaps within another."""
        self._begun.append((len(self._ended), at))

    @property
    def began_at(self) -> float:
        """When the innermost trace that has not ended began; 0.0 where none has."""
        return self._begun[-1][1] if self._begun else 0.0

    def end(self, traced: InFlightCompile | None) -> None:
        """The innermost trace has ended; `traced` is None where it failed."""
        if self._begun:
            del self._ended[self._begun.pop()[0] :]
        if traced is not None:
            self._ended.append(traced)
            del self._ended[:-_MOST_WAITING]

    def take(
        self, function: str, is_in_a_call: Callable[[], bool] = lambda: False
    ) -> InFlightCompile | None:
        """Remove and return the latest trace of that function; None where there is none.

        What a call lowers was traced by that call, if it was traced at all, and not ahead of time:
        a ``.trace()`` that is never lowered waits in vain, and has other arguments. That is asked
        only where such a trace waits.
        """
        for index in range(len(self._ended) - 1, -1, -1):
            traced = self._ended[index]
            if traced.function == function and (traced.program is None or not is_in_a_call()):
                del self._ended[index]
                return traced
        return None


class WaitingLowerings:
    """The lowerings of the process that wait for their compile."""

    def __init__(self) -> None:
        self._waiting: deque[InFlightCompile] = deque(maxlen=_MOST_WAITING)
        # A garbage collection in here may run a finalizer that compiles, in the same thread.
        self._lock = threading.RLock()

    def add(self, lowered: InFlightCompile) -> None:
        """Keep a lowering until it is taken, or until too many came after it."""
        with self._lock:
            self._waiting.append(lowered)

    def take(
        self,
        function: str,
        kept_avals: Sequence[Any] | None,
        thread_id: int,
        module: object = None,
    ) -> InFlightCompile | None:
        """Remove and return the lowering of a program that is being compiled.

        It has the same name and module or, where a module is unknown, the same avals; unknown avals
        are equal to any. Among equals it is this thread's, then the latest.
        """
        with self._lock:
            found: InFlightCompile | None = None
            for lowered in reversed(self._waiting.copy()):  # such a finalizer changes it
                if lowered.function == function and _may_be(lowered, kept_avals, module):
                    found = found or lowered
                    if lowered.thread_id == thread_id:
                        found = lowered
                        break
            if found is not None:
                try:
                    self._waiting.remove(found)
                except ValueError:  # and may have taken this one
                    return None
            return found


def _may_be(lowered: InFlightCompile, kept_avals: Sequence[Any] | None, module: object) -> bool:
    """Whether a lowering made this module; by its avals, where modules cannot tell."""
    if module is not None and lowered.module is not None:
        return lowered.module() is module
    known = lowered.kept_avals
    return known is None or kept_avals is None or list(known) == list(kept_avals)


@dataclass(slots=True)
class ThreadState:
    """The compiles of one thread, and their phases, that have not ended."""

    traces: Traces = field(default_factory=Traces)
    lowering_at: float = 0.0
    """When the latest lowering began."""

    avals_in_line: Sequence[Any] | None = None
    """From JAX's log line about the lowering that has begun."""

    compiles: list[InFlightCompile] = field(default_factory=list)
    """One, but for a finalizer that compiles while Python collects garbage within a compile."""

    _phases: list[tuple[str, int]] = field(default_factory=list)
    """The phases that have not ended, each with the exception that was handled as it began."""

    def begin_phase(self, event: str) -> None:
        """A phase begins, perhaps within another."""
        self._phases.append((event, id(sys.exception())))

    def end_phase(self, event: str) -> bool:
        """The latest phase of this kind has ended; returns whether it failed.

        JAX reports a phase that raised like one that succeeded, from the `__exit__` of a context
        manager. It failed if an exception is being handled now that was not when it began.
        """
        error = sys.exception()
        for index in range(len(self._phases) - 1, -1, -1):
            if self._phases[index][0] == event:
                handled = self._phases[index][1]
                del self._phases[index:]  # what began within it has ended, reported or not
                return error is not None and handled != id(error)
        return error is not None


class ThreadStates(threading.local):
    """The state of each thread, as `current`."""

    def __init__(self) -> None:
        self.current = ThreadState()
