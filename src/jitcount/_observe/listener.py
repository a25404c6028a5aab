"""Listens to JAX, and follows each compile from its first event to its last.

`CompileListener` subscribes to `jax.monitoring`, whose events say when a phase begins and how long
it took. They do not say what is compiled. JAX calls its listeners inside the user's call, so what
is compiled stands on the Python stack, which `jitcount._jax.frames` reads. Where the stack does not
tell, the log lines that `jax_log_compiles` turns on do.

A phase is JAX's tracing, its lowering, or XLA's compile. The handlers below run in the thread that
compiles, while the user's program waits: they are quick, and what fails in them never reaches the
user's program. The one exception is a guard that refuses a compile: its error is meant for it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from jitcount._jax import events, frames, lowering, settings
from jitcount._observe.call_site import UNKNOWN_SITES, sites_in
from jitcount._observe.in_flight import (
    UNKNOWN,
    InFlightCompile,
    LoweredProgram,
    Lowerings,
    ProfileInProgress,
    ThreadState,
    ThreadStates,
    describe_from_frames,
    program_traced_ahead_of_time,
)
from jitcount._observe.log_lines import LogLines
from jitcount._observe.measuring import LazyMeasure, MeasureQueue
from jitcount._observe.muting import is_muted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_logger = logging.getLogger("jitcount")


class Profiler(Protocol):
    """Finds out where the time of compiles goes; called in the thread that compiles."""

    def begin_trace(self) -> None:
        """A trace begins, perhaps within another."""

    def end_trace(self) -> ProfileInProgress:
        """The innermost trace has ended: begin the profile of what was traced."""

    def begin_untraced(self) -> ProfileInProgress:
        """Begin the profile of a program whose trace was not seen."""


class Needs(msgspec.Struct, frozen=True, eq=False):
    """What the open blocks need to know of each compile; replaced when a block opens or ends."""

    details: bool = False
    """Expensive details (fingerprint, size): a recorder is open."""

    guards: bool = False
    """Guards must be asked: `freeze` or `max_compiles` is open."""

    programs: bool = False
    """The programs themselves: a recorder with targets is open, or `as_if`."""

    profiler: Profiler | None = None
    """A recorder with a profile is open."""


class CompileListener:
    """Subscribes to JAX's monitoring events, and builds one `InFlightCompile` for each compile.

    Args:
        check_guards: called before XLA starts; it may raise, into the user's call.
        on_lowered: called with each program before XLA starts, while programs are needed.
        on_compiled: called when XLA has ended, with whether a guard refused the program after all.
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
        self.needs = Needs()
        self._threads = ThreadStates()
        self._lowerings = Lowerings()
        self._modules = lowering.Lowerings()
        """What JAX lowered, by the module that it made, while programs are needed."""

        self._unmeasured = MeasureQueue()
        self._handlers: events.Listener = {
            "scalar": self._on_begin,
            "event": self._on_event,
            "event_duration": self._on_end,
        }
        # A program may call `jax.monitoring.clear_event_listeners`. It drops the handlers of events
        # and durations, but not (by an oversight, perhaps) the scalar ones, which therefore notice
        # in time for the end of the phase. Where these are gone too, JAX's loggers notice.
        self._stay_registered = functools.partial(events.stay, self._handlers)
        self._log_lines = (
            LogLines(
                events.COMPILE_LOGGER,
                self._stay_registered,
                self._on_compile_line,
                _is_compile_line_needed,
            ),
            LogLines(events.PHASE_LOGGER, self._stay_registered),
        )
        self._disk_lines = LogLines(events.DISK_LOGGER, self._stay_registered, self._on_disk_line)
        """For guards alone: JAX writes four lines a compile there, where they are wanted."""

        self._reads_log_lines = False
        self._describes_programs = True

    def refresh_subscriptions(self, needs: Needs | None = None) -> None:
        """Subscribe to exactly what the open blocks need.

        Args:
            needs: what that is from now on; without it, what it was.
        """
        self._stay_registered()
        self.needs = needs = needs or self.needs
        reads_log_lines = needs.details or needs.programs or needs.guards
        for lines in self._log_lines:
            lines.subscribe(wanted=reads_log_lines)
        self._reads_log_lines = reads_log_lines
        self._disk_lines.subscribe(wanted=needs.guards)
        if not needs.programs:
            self._modules.clear()
        if not needs.details:
            self._unmeasured.measure_all()

    @contextlib.contextmanager
    def without_programs(self) -> Iterator[None]:
        """Count and time, but describe no program, for a block: what benchmarks compare with."""
        self._describes_programs = False
        try:
            yield
        finally:
            self._describes_programs = True

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """JAX as it is without jitcount, for a block: what benchmarks compare with."""
        events.unregister(self._handlers)
        for lines in (*self._log_lines, self._disk_lines):
            lines.subscribe(wanted=False)
        self._reads_log_lines = False
        try:
            yield
        finally:
            self.refresh_subscriptions()

    # --- What JAX calls ---------------------------------------------------------------------------

    def _on_begin(self, event: str, value: float, **about: Any) -> None:  # noqa: ARG002 (JAX's own)
        """A phase begins."""
        if event not in events.PHASES or is_muted():
            return
        if not self._reads_log_lines:  # they would notice at the end of each phase
            self._stay_registered()
        thread = self._threads.current
        thread.handled[event] = id(sys.exception())
        if event == events.TRACE:
            thread.traces.begin(time.time())
            if (profiler := self.needs.profiler) is not None:
                _safely(profiler.begin_trace)
        elif event == events.LOWER:
            thread.lowering_at = time.time()
        else:
            frame = sys._getframe(1)  # noqa: SLF001 (documented)
            self._begin_compile(events.function_of(about), frame, thread)

    def _on_end(self, event: str, duration_secs: float, **about: Any) -> None:
        """A phase has ended."""
        if event not in events.PHASES or is_muted():
            return
        # JAX reports a phase that raised like one that succeeded, from the `__exit__` of a context
        # manager: there, an exception is being handled that was not when the phase began.
        thread, error = self._threads.current, sys.exception()
        failed = error is not None and thread.handled.get(event) != id(error)
        function, frame = events.function_of(about), sys._getframe(1)  # noqa: SLF001 (documented)
        try:
            if event == events.TRACE:
                self._end_trace(function, None if failed else duration_secs, frame, thread)
            elif event == events.LOWER and not failed:
                self._end_lowering(function, duration_secs, frame, thread)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not observe %s of %s", event, function, exc_info=True)
        if event == events.COMPILE:
            compiling = thread.compiles.pop() if thread.compiles else None
            if compiling is None:  # its begin was not heard
                compiling = self._compiling(function, frame, time.time() - duration_secs)
            if failed:
                self._end_profile(compiling, frame)
            else:
                self._end_compile(compiling, duration_secs, frame)

    def _on_event(self, event: str, **_about: Any) -> None:
        if event == events.DISK_HIT and self._threads.current.compiles and not is_muted():
            self._threads.current.compiles[-1].from_disk = True

    def _on_compile_line(self, line: logging.LogRecord) -> None:
        if (avals := events.avals_in(line)) is not None:
            self._threads.current.avals_in_line = avals

    def _on_disk_line(self, line: logging.LogRecord) -> None:
        if events.is_disk_miss(line) and self._threads.current.compiles and not is_muted():
            self._ask_guards(self._threads.current.compiles[-1])

    # --- The three phases -------------------------------------------------------------------------

    def _end_trace(
        self, function: str, seconds: float | None, frame: FrameType, thread: ThreadState
    ) -> None:
        """Make the record of what was traced; none where the trace failed."""
        profiler = self.needs.profiler
        profile = None if profiler is None else _safely(profiler.end_trace)
        if seconds is None:
            thread.traces.end(None)
            return
        describes = self._describes_programs
        thread.traces.end(
            InFlightCompile(
                function=function,
                started_at=thread.traces.began_at,
                trace_s=seconds,
                program=program_traced_ahead_of_time(function, frame) if describes else None,
                profile=profile,
            )
        )

    def _end_lowering(
        self, function: str, seconds: float, frame: FrameType, thread: ThreadState
    ) -> None:
        """Describe the call, before XLA has run: Python is quicker now than afterwards."""
        avals_in_line, thread.avals_in_line = thread.avals_in_line, None
        made = frames.read_lowered(frame)
        compiling = thread.traces.take(function, lambda: frames.is_in_a_call(frame))
        if compiling is None:
            compiling = InFlightCompile(function=function)
        compiling.started_at = compiling.started_at or thread.lowering_at
        compiling.lower_s = seconds
        compiling.thread = threading.get_ident()
        compiling.module = made.module
        compiling.kept_avals = made.kept_avals or avals_in_line
        describe_from_frames(compiling, frame, in_full=self._describes_programs)
        # What is lowered ahead of time is in the user's hands, who may change it.
        compiling.is_small = made.is_small and compiling.avals is not None
        if (profiler := self.needs.profiler) is not None:
            compiling.profile = compiling.profile or _safely(profiler.begin_untraced)
            if compiling.profile is not None:
                _safely(compiling.profile.end_lowering, frame)
        self._lowerings.add(compiling)
        if self.needs.programs and (whole := lowering.read_lowering(frame)) is not None:
            self._modules.add(whole)

    def _begin_compile(self, function: str, frame: FrameType, thread: ThreadState) -> None:
        """Read what is compiled, now and not at the end, and ask the guards.

        XLA leaves nothing of ours in the processor's caches: reading takes longer after it.
        """
        needs = self.needs
        compiling = self._compiling(function, frame, time.time())
        thread.compiles.append(compiling)
        if needs.guards:
            compiling.is_allowed = False
            if not settings.may_come_from_disk():
                try:
                    self._ask_guards(compiling)
                except BaseException:
                    thread.compiles.remove(compiling)  # JAX does not report the end of this one
                    raise
        if needs.details or needs.programs:
            self._look_at_module(compiling, frame)
        if (profiler := needs.profiler) is not None:
            compiling.profile = compiling.profile or _safely(profiler.begin_untraced)
            if compiling.profile is not None:
                _safely(compiling.profile.begin_compile, frame)

    def _end_compile(self, compiling: InFlightCompile, seconds: float, frame: FrameType) -> None:
        """Ask the guards, where they were not asked before, and only then report the compile.

        With a persistent cache, a program that cannot be stored there is compiled without a word:
        its guards are asked here. What they refuse XLA has compiled, and JAX will not keep: it
        counts, but the next compile is not compared with it.
        """
        compiling.compile_s = seconds
        self._end_profile(compiling, frame)
        if compiling.program is not None:
            compiling.program.measured = compiling.measured
        is_refused = True
        try:
            if not compiling.from_disk:
                self._ask_guards(compiling)
            is_refused = False
        finally:
            self._report(compiling, is_refused=is_refused)

    # --- The parts of a compile -------------------------------------------------------------------

    def _compiling(self, function: str, frame: FrameType, began_at: float) -> InFlightCompile:
        """The record of a compile, with as much as can be read: it counts in any case."""
        compiling: InFlightCompile | None = None
        try:
            executable = frames.read_executable(frame)
            compiling = self._lowerings.take(
                function, executable.kept_avals, threading.get_ident(), executable.module
            ) or InFlightCompile(function=function)
            self._complete(compiling, executable, frame)
        except Exception:  # a guard must not open, a count not be lost, because observing failed
            _logger.debug("could not observe %s", function, exc_info=True)
        compiling = compiling or InFlightCompile(function=function)
        compiling.started_at = compiling.started_at or began_at
        return compiling

    def _complete(
        self, compiling: InFlightCompile, executable: frames.CompilingFrame, frame: FrameType
    ) -> None:
        """Fill in what the lowering, if there was one, could not know."""
        compiling.module = None
        compiling.platform = executable.platform or UNKNOWN
        if compiling.avals is None:
            describe_from_frames(compiling, frame, in_full=self._describes_programs)
        if compiling.avals is None:
            compiling.avals = executable.kept_avals or compiling.kept_avals or ()
        if compiling.sites is UNKNOWN_SITES:
            compiling.sites = sites_in(frame)
        if compiling.program is not None and compiling.function in events.NAMELESS:
            compiling.function = compiling.program.name

    def _look_at_module(self, compiling: InFlightCompile, frame: FrameType) -> None:
        """Measure what is about to be compiled, and hand it on: others can work beside XLA."""
        needs = self.needs
        try:
            compilation = lowering.read_compilation(frame)
            if needs.details and compilation is not None:
                compiling.measured = LazyMeasure(compilation)
                if not compiling.is_small:
                    compiling.measured.get()
            if needs.programs:
                made = self._modules.of(compilation and compilation.module)
                compiling.lowered_program = LoweredProgram(made, compilation)
                self._on_lowered(compiling.lowered_program)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not read what is compiled", exc_info=True)

    def _ask_guards(self, compiling: InFlightCompile) -> None:
        """Let the guards refuse a compile, once."""
        if not compiling.is_allowed:
            self._check_guards(compiling)
            compiling.is_allowed = True

    def _end_profile(self, compiling: InFlightCompile, frame: FrameType) -> None:
        if (profiler := self.needs.profiler) is None:
            compiling.profile = None
            return
        compiling.profile = compiling.profile or _safely(profiler.begin_untraced)
        if compiling.profile is not None:
            _safely(compiling.profile.end_compile, frame)

    def _report(self, compiling: InFlightCompile, *, is_refused: bool) -> None:
        try:
            self._on_compiled(compiling, is_refused)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not report %s", compiling.function, exc_info=True)
        compiling.lowered_program = None  # those who need it have it
        if compiling.is_small and compiling.measured is not None:
            self._unmeasured.add(compiling.measured)


def _safely(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call a profiler; None where it failed, since that must never fail the user's program."""
    try:
        return call(*arguments)
    except Exception:
        _logger.debug("could not profile", exc_info=True)
        return None


def _is_compile_line_needed() -> bool:
    return not frames.tells_lowered_avals(sys._getframe(1))  # noqa: SLF001 (documented)
