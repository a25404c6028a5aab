"""Listens to JAX, and makes an `Observation` of each compile.

Three sources, all JAX's own: `jax.monitoring` for when a phase begins and how long it took, the
stack for what is compiled, and, while a recorder is open and where the stack does not tell it, the
lines that `jax_log_compiles` turns on for what is lowered. `_jax` reads all three.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from jitcount._jax import events, frames, lowering, settings
from jitcount._observe.call_site import sites_in
from jitcount._observe.in_flight import (
    NO_DESCRIPTION,
    UNKNOWN,
    Description,
    Lowered,
    Lowerings,
    Measured,
    Observation,
    Portable,
    Thread,
    Threads,
    Trace,
    UnderWay,
    Unmeasured,
    described,
    described_ahead_of_time,
)
from jitcount._observe.log_lines import Lines
from jitcount._observe.muting import is_muted
from jitcount._observe.profiling import Profiling

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from jitcount._observe.audience import Audience
    from jitcount._observe.program import Program

_logger = logging.getLogger("jitcount")


class CompileListener:
    """The listeners that JAX calls, and what they have heard and not yet told."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._threads = Threads()
        self._profiling = Profiling(audience)
        self._lowerings = Lowerings()
        self._modules = lowering.Lowerings()
        """By the module that they made, while takers are there."""

        self._unmeasured = Unmeasured()
        self._listener: events.Listener = {
            "scalar": self._on_begin,
            "event": self._on_event,
            "event_duration": self._on_end,
        }
        # JAX leaves those that are told when a phase begins (by an oversight, perhaps): they find
        # out in time for the end. Where these are gone too, its loggers ask in time.
        self._stay = functools.partial(events.stay, self._listener)
        self._lines = (
            Lines(events.COMPILE_LOGGER, self._stay, self._on_compile_line, _is_line_needed),
            Lines(events.PHASE_LOGGER, self._stay),
        )
        self._disk_lines = Lines(events.DISK_LOGGER, self._stay, self._on_disk_line)
        """For guards alone: JAX writes four lines a compile there, where they are wanted."""

        self._lines_are_heard = False
        self._is_module_wanted = False
        self._is_describing = True

    def refresh_subscriptions(self) -> None:
        """Listen as closely as the audience needs; called when that has changed."""
        self._stay()
        audience = self._audience
        self._is_module_wanted = audience.has_listeners or audience.has_takers
        is_heard = self._is_module_wanted or audience.has_guards
        for lines in self._lines:
            lines.hear(wanted=is_heard)
        self._lines_are_heard = is_heard
        self._disk_lines.hear(wanted=audience.has_guards)
        if not audience.has_takers:
            self._modules.clear()
        if not audience.has_listeners:
            self._unmeasured.measure_all()

    @contextlib.contextmanager
    def undescribed(self) -> Iterator[None]:
        """Count and time, but describe nothing that causes need, for a block: for benchmarks."""
        self._is_describing = False
        try:
            yield
        finally:
            self._is_describing = True

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """JAX as it is without jitcount, for a block: what benchmarks compare with."""
        events.unregister(self._listener)
        for lines in (*self._lines, self._disk_lines):
            lines.hear(wanted=False)
        self._lines_are_heard = False
        try:
            yield
        finally:
            self.refresh_subscriptions()

    # --- What JAX calls ---------------------------------------------------------------------------

    def _on_begin(self, event: str, value: float, **about: Any) -> None:  # noqa: ARG002 (JAX's own)
        if event not in events.PHASES or is_muted():
            return
        if not self._lines_are_heard:  # else they ask at the end of each phase
            self._stay()
        thread = self._threads.here
        thread.handled[event] = id(sys.exception())
        if event == events.TRACE:
            thread.traces.begin(time.time())
            self._profiling.begin_trace()
        elif event == events.LOWER:
            thread.lowering_at = time.time()
        else:
            frame = sys._getframe(1)  # noqa: SLF001 (documented)
            self._begin_compile(events.function_of(about), frame, thread)

    def _on_event(self, event: str, **_about: Any) -> None:
        if event == events.DISK_HIT and self._threads.here.compiles and not is_muted():
            self._threads.here.compiles[-1].from_disk = True

    def _on_compile_line(self, line: logging.LogRecord) -> None:
        if (avals := events.avals_in(line)) is not None:
            self._threads.here.avals_in_line = avals

    def _on_disk_line(self, line: logging.LogRecord) -> None:
        if events.is_disk_miss(line) and self._threads.here.compiles and not is_muted():
            self._ask(self._threads.here.compiles[-1])

    def _on_end(self, event: str, duration_secs: float, **about: Any) -> None:
        if event not in events.PHASES or is_muted():
            return
        # JAX reports a phase that raised like one that ended well, from the `__exit__` of a context
        # manager: there, an exception is being handled that was not when the phase began.
        thread, error = self._threads.here, sys.exception()
        failed = error is not None and thread.handled.get(event) != id(error)
        function, frame = events.function_of(about), sys._getframe(1)  # noqa: SLF001
        try:
            if event == events.TRACE:
                self._end_trace(function, None if failed else duration_secs, frame, thread)
            elif event == events.LOWER and not failed:
                self._end_lowering(function, duration_secs, frame, thread)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not observe %s of %s", event, function, exc_info=True)
        if event == events.COMPILE:
            compiles = thread.compiles
            under_way = compiles.pop() if compiles else UnderWay(time.time() - duration_secs)
            if failed:
                self._profiling.end_compile(None, under_way.profile, frame)
            else:
                self._end_compile(function, duration_secs, frame, under_way)

    # --- The three phases -------------------------------------------------------------------------

    def _end_trace(
        self, function: str, seconds: float | None, frame: FrameType, thread: Thread
    ) -> None:
        traces, profile = thread.traces, self._profiling.end_trace()
        if seconds is None:
            traces.end(function, None)
            return
        ahead = described_ahead_of_time(function, frame) if self._is_describing else None
        traces.end(function, Trace(seconds, ahead, traces.began_at, profile))

    def _end_lowering(
        self, function: str, seconds: float, frame: FrameType, thread: Thread
    ) -> None:
        # Here, before XLA has run, the call is described: Python is quicker now than after.
        heard, thread.avals_in_line = thread.avals_in_line, None
        made = frames.read_lowered(frame)
        trace = thread.traces.take(function, lambda: frames.is_in_a_call(frame))
        description = self._described(function, trace.program, frame)
        self._lowerings.add(
            Lowered(
                function=function,
                kept_avals=made.kept_avals or heard,
                thread=threading.get_ident(),
                trace_s=trace.seconds,
                lower_s=seconds,
                description=description,
                began_at=trace.began_at or thread.lowering_at,
                module=made.module,
                profile=self._profiling.end_lowering(trace.profile, frame),
                # What is lowered ahead of time is in the user's hands, who may change it.
                is_small=made.is_small and description.avals is not None,
            )
        )
        if self._audience.has_takers and (whole := lowering.read_lowering(frame)) is not None:
            self._modules.add(whole)

    def _begin_compile(self, function: str, frame: FrameType, thread: Thread) -> None:
        # Read now and not at the end: XLA leaves nothing of ours in the processor's caches.
        under_way = UnderWay(time.time())
        thread.compiles.append(under_way)
        under_way.expected = self._observed(function, frame, under_way)
        if self._audience.has_guards:
            under_way.is_allowed = False
            if not settings.may_come_from_disk():
                try:
                    self._ask(under_way)
                except BaseException:
                    thread.compiles.remove(under_way)  # of its end JAX will not tell
                    raise
        if self._is_module_wanted:
            self._look_at_module(frame, under_way)
        under_way.profile = self._profiling.begin_compile(frame)

    def _look_at_module(self, frame: FrameType, under_way: UnderWay) -> None:
        """Look at what is about to be compiled, and hand it on: others can work beside XLA."""
        try:
            compilation = lowering.read_compilation(frame)
            if self._audience.has_listeners and compilation is not None:
                under_way.measured = Measured(compilation)
                if under_way.expected is None or not under_way.expected.is_small:
                    under_way.measured.get()
            if self._audience.has_takers:
                made = self._modules.lookup(compilation and compilation.module)
                under_way.portable = Portable(made, compilation)
                self._audience.give(under_way.portable)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not read what is compiled", exc_info=True)

    def _end_compile(
        self, function: str, seconds: float, frame: FrameType, under_way: UnderWay
    ) -> None:
        """Ask the guards, where they were not asked before, and only then tell of it.

        With a persistent cache, a program that cannot be kept in it is compiled without a word: its
        guards are asked here. What they refuse XLA has compiled, and JAX will not keep: it counts,
        and is no earlier program of the next compile.
        """
        seen = under_way.expected = under_way.expected or self._observed(function, frame, under_way)
        seen.compile_s = seconds
        seen.from_disk = under_way.from_disk
        seen.profile = self._profiling.end_compile(seen.profile, under_way.profile, frame)
        seen.measured, seen.portable = under_way.measured, under_way.portable
        if seen.program is not None:
            seen.program.measured = seen.measured
        is_refused = True
        try:
            if not seen.from_disk:
                self._ask(under_way)
            is_refused = False
        finally:
            self._tell(seen, is_refused=is_refused)

    def _tell(self, seen: Observation, *, is_refused: bool) -> None:
        try:
            self._audience.tell(seen, is_refused=is_refused)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not tell of %s", seen.function, exc_info=True)
        seen.portable = None  # the takers have it
        if seen.is_small and seen.measured is not None:
            self._unmeasured.add(seen.measured)

    def _ask(self, under_way: UnderWay) -> None:
        """Let the guards refuse a compile, once."""
        if under_way.expected is not None and not under_way.is_allowed:
            self._audience.ask(under_way.expected)
            under_way.is_allowed = True

    # --- What is seen -----------------------------------------------------------------------------

    def _observed(self, function: str, frame: FrameType, under_way: UnderWay) -> Observation:
        """What is seen of a compile; little where that fails, since it counts all the same."""
        try:
            seen = self._read(function, frame)
        except Exception:  # a guard must not open, a count not be lost, because observing failed
            _logger.debug("could not observe %s", function, exc_info=True)
            seen = Observation(function=function)
        seen.started_at = seen.started_at or under_way.began_at
        return seen

    def _read(self, function: str, frame: FrameType) -> Observation:
        executable = frames.read_executable(frame)
        lowered = self._lowerings.take(
            function, executable.kept_avals, threading.get_ident(), executable.module
        )
        description = lowered.description if lowered else NO_DESCRIPTION
        if description.avals is None:
            description = self._described(function, description.program, frame)
        avals = description.avals
        if avals is None:
            avals = executable.kept_avals or (lowered and lowered.kept_avals) or ()
        program = description.program
        return Observation(
            function=program.name if program and function in events.NAMELESS else function,
            avals=avals,
            platform=executable.platform or UNKNOWN,
            sites=description.sites or sites_in(frame),
            eager=description.made_by_jax,
            started_at=(lowered and lowered.began_at) or 0.0,
            trace_s=lowered.trace_s if lowered else 0.0,
            lower_s=lowered.lower_s if lowered else 0.0,
            profile=lowered.profile if lowered else None,
            program=program,
            is_small=lowered is not None and lowered.is_small,
        )

    def _described(self, function: str, program: Program | None, frame: FrameType) -> Description:
        return described(function, program, frame, in_full=self._is_describing)


def _is_line_needed() -> bool:
    return not frames.tells_lowered_avals(sys._getframe(1))  # noqa: SLF001 (documented)
