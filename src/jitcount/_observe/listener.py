"""Listens to JAX, and follows each compile from its first event to its last.

A compile has three phases: JAX traces a function, JAX lowers the jaxpr, XLA compiles the module.
`jax.monitoring` reports when each phase begins and how long it took, but not what is compiled.
Listeners run inside the user's call, so that can be read from the Python stack
(`jitcount._jax.frames`), or else from the lines of JAX's compile log, which are read without
enabling `jax_log_compiles`: nothing more is printed.

The handlers below run in the thread that compiles, while the user's program waits. They must be
fast, and their failures must never reach the user's program. The one exception is deliberate: a
guard refuses a compile by raising into the user's call.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from jitcount._jax import events, frames, lowering, settings
from jitcount._observe.call_site import UNKNOWN_SITES, sites_in
from jitcount._observe.callers import callers_in
from jitcount._observe.in_flight import (
    UNKNOWN,
    InFlightCompile,
    LoweredProgram,
    ProfileInProgress,
    ThreadState,
    ThreadStates,
    WaitingLowerings,
    describe_from_frames,
    program_traced_ahead_of_time,
)
from jitcount._observe.log_lines import LogLines
from jitcount._observe.measuring import LazyMeasure, MeasureQueue
from jitcount._observe.muting import is_muted
from jitcount._observe.program import KNOWN_AS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_logger = logging.getLogger("jitcount")


class ProfilerProtocol(Protocol):
    """Finds out where compile time goes; its methods run in the thread that compiles."""

    def begin_trace(self) -> None:
        """A trace begins, perhaps within another."""

    def end_trace(self) -> ProfileInProgress:
        """The innermost trace has ended: begin the profile of what was traced."""

    def begin_untraced(self) -> ProfileInProgress:
        """Begin the profile of a program whose trace was not seen."""


class Needs(msgspec.Struct, frozen=True, eq=False):
    """What the open `with` blocks (recorders, guards, `as_if`) need of each compile.

    It is never changed, but replaced whenever a block opens or ends.
    """

    details: bool = False
    """Measure each program's fingerprint and size, which is expensive: a recorder is open."""

    guards: bool = False
    """Ask the guards before each compile: `freeze` or `max_compiles` is open."""

    programs: bool = False
    """Hand out each lowered program: `record(targets=...)` or `as_if` is open."""

    profiler: ProfilerProtocol | None = None
    """The profiler to call; None where no recorder with a profile is open."""


class CompileListener:
    """Subscribes to JAX's monitoring events, and builds one `InFlightCompile` for each compile.

    Nothing is registered with JAX before the first call of `refresh_subscriptions`.

    Args:
        check_guards: called before XLA starts; it may raise, into the user's call.
        on_lowered: called with each program before XLA starts, while programs are needed.
        on_compiled: called with the compile, and whether a guard refused it, when XLA (or the
            persistent cache) has delivered; not called where XLA failed.
    """

    def __init__(
        self,
        check_guards: Callable[[InFlightCompile], None],
        on_lowered: Callable[[LoweredProgram], None],
        on_compiled: Callable[[InFlightCompile, bool], None],
    ) -> None:
        self._check_guards = check_guards
        self._on_lowered = on_lowered
        self._on_compiled = on_compiled
        self._needs = Needs()
        self._threads = ThreadStates()
        self._waiting_lowerings = WaitingLowerings()
        self._lowerings_by_module = lowering.Lowerings()
        """What JAX's lowerings were made of, while programs are needed."""

        self._unmeasured = MeasureQueue()
        """Small programs, measured later so that the user's call does not wait for it."""

        # JAX records a scalar when a phase begins, and a duration when it ends.
        self._handlers: events.Handlers = {
            "scalar": self._on_begin,
            "event": self._on_event,
            "event_duration": self._on_end,
        }
        # `jax.monitoring.clear_event_listeners` drops the handlers of events and durations, but
        # (apparently by an oversight) keeps the scalar ones. So `_on_begin` can register the others
        # again before the phase ends. Where it is gone too, JAX's log lines do so.
        self._ensure_registered = functools.partial(events.ensure_registered, self._handlers)
        self._log_lines = (
            LogLines(
                events.COMPILE_LOGGER,
                self._ensure_registered,
                self._on_compile_line,
                _is_compile_line_needed,
            ),
            LogLines(events.PHASE_LOGGER, self._ensure_registered),
        )
        self._disk_lines = LogLines(events.DISK_LOGGER, self._ensure_registered, self._on_disk_line)
        """Read only while a guard is open: JAX formats four lines a compile once anyone listens."""

        self._reads_log_lines = False

    def refresh_subscriptions(self, needs: Needs | None = None) -> None:
        """Subscribe to exactly what the open blocks need.

        Args:
            needs: what they need from now on; None keeps the current needs.
        """
        self._ensure_registered()
        self._needs = needs = needs or self._needs
        reads_log_lines = needs.details or needs.programs or needs.guards
        for lines in self._log_lines:
            lines.subscribe(wanted=reads_log_lines)
        self._reads_log_lines = reads_log_lines
        self._disk_lines.subscribe(wanted=needs.guards)
        if not needs.programs:
            self._lowerings_by_module.clear()
        if not needs.details:  # the last recorder has ended: measure what was postponed
            self._unmeasured.measure_all()

    def compile_here(self) -> InFlightCompile | None:
        """The compile that this thread is in; None where it is in none, or works for jitcount."""
        compiles = self._threads.current.compiles
        return compiles[-1] if compiles and not is_muted() else None

    # --- What JAX calls ---------------------------------------------------------------------------

    def _on_begin(self, event: str, value: float, **about: Any) -> None:  # noqa: ARG002 (JAX's signature)
        """A phase begins."""
        if event not in events.PHASES or is_muted():  # muted: jitcount itself compiles
            return
        if not self._reads_log_lines:  # else the log lines do, at the end of each phase
            self._ensure_registered()
        thread = self._threads.current
        thread.begin_phase(event)
        if event == events.TRACE:
            thread.traces.begin(time.time())
            if (profiler := self._needs.profiler) is not None:
                _safely(profiler.begin_trace)
        elif event == events.LOWER:
            thread.lowering_at = time.time()
        elif event == events.COMPILE:
            frame = sys._getframe(1)  # noqa: SLF001 (documented)
            self._begin_compile(events.function_of(about), frame, thread)

    def _on_end(self, event: str, duration_secs: float, **about: Any) -> None:
        """A phase has ended."""
        if event not in events.PHASES or is_muted():
            return
        thread = self._threads.current
        failed = thread.end_phase(event)
        function, frame = events.function_of(about), sys._getframe(1)  # noqa: SLF001 (documented)
        try:
            if event == events.TRACE:
                self._end_trace(function, duration_secs, frame, thread, failed=failed)
            elif event == events.LOWER and not failed:
                self._end_lowering(function, duration_secs, frame, thread)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not observe %s of %s", event, function, exc_info=True)
        if event == events.COMPILE:  # outside of the `try`: a guard may raise from here
            if thread.compiles:
                compiling = thread.compiles.pop()
            else:  # its begin was not reported
                compiling = self._record_of_compile(function, frame, time.time() - duration_secs)
            if failed:
                self._end_profile(compiling, frame)
            else:
                self._end_compile(compiling, duration_secs, frame)

    def _on_event(self, event: str, **_about: Any) -> None:
        """Something else happened; a disk hit says that the persistent cache serves a compile."""
        if event == events.DISK_HIT and self._threads.current.compiles and not is_muted():
            self._threads.current.compiles[-1].from_disk = True

    def _on_compile_line(self, line: logging.LogRecord) -> None:
        """Keep the avals that JAX logs, for the lowering that they belong to."""
        if (avals := events.avals_in(line)) is not None:
            self._threads.current.avals_in_line = avals

    def _on_disk_line(self, line: logging.LogRecord) -> None:
        """On a miss of the persistent cache XLA will really compile: ask the guards now."""
        if events.is_disk_miss(line) and self._threads.current.compiles and not is_muted():
            self._ask_guards(self._threads.current.compiles[-1])

    # --- The three phases -------------------------------------------------------------------------

    def _end_trace(
        self, function: str, seconds: float, frame: FrameType, thread: ThreadState, *, failed: bool
    ) -> None:
        """Make the record of what was traced, unless the trace failed."""
        profiler = self._needs.profiler
        profile = None if profiler is None else _safely(profiler.end_trace)
        if failed:
            thread.traces.end(None)
            return
        thread.traces.end(
            InFlightCompile(
                function=function,
                started_at=thread.traces.began_at,
                trace_s=seconds,
                program=program_traced_ahead_of_time(function, frame),
                profile=profile,
            )
        )

    def _end_lowering(
        self, function: str, seconds: float, frame: FrameType, thread: ThreadState
    ) -> None:
        """Describe the call.

        After XLA has run, the processor's caches are cold, and the same reads take longer.
        """
        avals_in_line, thread.avals_in_line = thread.avals_in_line, None
        lowered = frames.read_lowered(frame)
        compiling = thread.traces.take(function, lambda: frames.is_in_a_call(frame))
        if compiling is None:
            compiling = InFlightCompile(function=function)
        compiling.started_at = compiling.started_at or thread.lowering_at
        compiling.lower_s = seconds
        compiling.thread_id = threading.get_ident()
        compiling.module = lowered.module
        known = lowered.kept_avals is not None
        compiling.kept_avals = lowered.kept_avals if known else avals_in_line
        describe_from_frames(compiling, frame)
        # A lowering ahead of time (its call has no avals yet) belongs to the user, who may modify
        # the module: it must not be measured late.
        compiling.is_small = lowered.is_small and compiling.avals is not None
        if (profile := self._profile_of(compiling)) is not None:
            _safely(profile.end_lowering, frame)
        self._waiting_lowerings.add(compiling)
        if self._needs.programs and (made_of := lowering.read_lowering(frame)) is not None:
            self._lowerings_by_module.add(made_of)

    def _begin_compile(self, function: str, frame: FrameType, thread: ThreadState) -> None:
        """Complete the record before XLA runs, ask the guards, and hand out the program."""
        compiling = self._record_of_compile(function, frame, time.time())
        compiling.thread = threading.current_thread().name
        if self._needs.details:
            compiling.callers = _safely(callers_in, frame) or ()
        thread.compiles.append(compiling)
        if compiling.needs_guard_check and not settings.may_come_from_disk():
            try:
                self._ask_guards(compiling)
            except BaseException:  # it leaves JAX's `__enter__`: no end is reported
                thread.compiles.remove(compiling)
                thread.end_phase(events.COMPILE)
                raise
        if self._needs.details or self._needs.programs:
            self._measure_and_hand_out(compiling, frame, self._needs)
        if (profile := self._profile_of(compiling)) is not None:
            _safely(profile.begin_compile, frame)

    def _end_compile(self, compiling: InFlightCompile, seconds: float, frame: FrameType) -> None:
        """Ask the guards, where they were not asked before, and only then report the compile.

        A program that the persistent cache cannot store logs no miss, so its guards are asked only
        here. If one refuses, XLA has compiled already, but JAX discards the result: the compile
        counts, but later ones are not compared with it.
        """
        compiling.compile_s = seconds
        self._end_profile(compiling, frame)
        if compiling.program is not None:  # later programs may be compared by fingerprint
            compiling.program.measured = compiling.measured
        is_refused = True  # until the guards have returned
        try:
            if not compiling.from_disk:
                self._ask_guards(compiling)
            is_refused = False
        finally:
            self._report(compiling, is_refused=is_refused)

    # --- The parts of a compile -------------------------------------------------------------------

    def _record_of_compile(
        self, function: str, frame: FrameType, began_at: float
    ) -> InFlightCompile:
        """The record of a compile, as complete as can be read; every compile has one."""
        compiling: InFlightCompile | None = None
        try:
            executable = frames.read_executable(frame)
            compiling = self._waiting_lowerings.take(
                function, executable.kept_avals, threading.get_ident(), executable.module
            ) or InFlightCompile(function=function)
            self._complete(compiling, executable, frame)
        except Exception:  # a failure to observe must neither bypass a guard nor lose a count
            _logger.debug("could not observe %s", function, exc_info=True)
        compiling = compiling or InFlightCompile(function=function)
        compiling.started_at = compiling.started_at or began_at
        compiling.needs_guard_check = self._needs.guards
        return compiling

    def _complete(
        self, compiling: InFlightCompile, executable: frames.CompilingFrame, frame: FrameType
    ) -> None:
        """Fill in what the lowering, if there was one, could not know."""
        compiling.module = None  # its compile is found
        compiling.platform = executable.platform or UNKNOWN
        if compiling.avals is None:
            describe_from_frames(compiling, frame)
        if compiling.avals is None:
            compiling.avals = executable.kept_avals or compiling.kept_avals or ()
        if compiling.sites is UNKNOWN_SITES:
            compiling.sites = sites_in(frame)
        if compiling.program is not None:
            known_as = KNOWN_AS.get(compiling.function)  # a user's function may have that name
            if compiling.function in events.PLACEHOLDER_NAMES or known_as == compiling.program.name:
                compiling.function = compiling.program.name

    def _measure_and_hand_out(
        self, compiling: InFlightCompile, frame: FrameType, needs: Needs
    ) -> None:
        """Measure the module, and pass it to those who can work on it while XLA compiles."""
        try:
            compilation = lowering.read_compilation(frame)
            if needs.details and compilation is not None:
                compiling.measured = LazyMeasure(compilation)
                if not compiling.is_small:  # it may hold the user's arrays: do not keep it
                    compiling.measured.get()
            if needs.programs:
                module = None if compilation is None else compilation.module
                lowered = frames.lowered_module(frame)
                made_of = self._lowerings_by_module.lookup(module if lowered is None else lowered)
                compiling.lowered_program = LoweredProgram(made_of, compilation)
                self._on_lowered(compiling.lowered_program)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not read what is compiled", exc_info=True)

    def _ask_guards(self, compiling: InFlightCompile) -> None:
        """Ask the guards about a compile, unless they have allowed it already."""
        if compiling.needs_guard_check:
            self._check_guards(compiling)
            compiling.needs_guard_check = False

    def _profile_of(self, compiling: InFlightCompile) -> ProfileInProgress | None:
        """The profile of a compile, begun now if need be; None where no profile is wanted."""
        if (profiler := self._needs.profiler) is None:
            compiling.profile = None
        elif compiling.profile is None:
            compiling.profile = _safely(profiler.begin_untraced)
        return compiling.profile

    def _end_profile(self, compiling: InFlightCompile, frame: FrameType) -> None:
        if (profile := self._profile_of(compiling)) is not None:
            _safely(profile.end_compile, frame)

    def _report(self, compiling: InFlightCompile, *, is_refused: bool) -> None:
        """Report a compile, then let go of what only its listeners needed."""
        try:
            self._on_compiled(compiling, is_refused)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not report %s", compiling.function, exc_info=True)
        compiling.lowered_program = None
        if compiling.is_small and compiling.measured is not None:
            self._unmeasured.add(compiling.measured)


def _safely(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call what must not fail the user's program; returns None where it failed."""
    try:
        return call(*arguments)
    except Exception:
        _logger.debug("could not call %s", call, exc_info=True)
        return None


def _is_compile_line_needed() -> bool:
    """Whether the stack will not show the avals of what JAX lowers; the caller is JAX's logger."""
    return not frames.tells_lowered_avals(sys._getframe(1))  # noqa: SLF001 (documented)
