"""Listens to JAX, and makes an `Observation` of each compile.

Three sources, all JAX's own: `jax.monitoring` for when a phase begins and how long it took, the
stack (in `_jax`) for what is compiled, and, while someone wants every detail, the lines that
`jax_log_compiles` turns on for what is lowered.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount._jax import events, frames, settings
from jitcount.observe import portables
from jitcount.observe.call_site import call_site
from jitcount.observe.lines import Lines
from jitcount.observe.observation import UNKNOWN, Observation
from jitcount.observe.phases import Description, Lowered, Lowerings, Trace, Traces
from jitcount.observe.program import Program, describe, describe_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from jitcount.observe.portables import Portable

lock = threading.Lock()
"""Held by whoever changes who listens."""

_logger = logging.getLogger("jitcount")
_lowerings = Lowerings()


def _nobody(observation: Observation) -> None: ...


_tell: Callable[[Observation], None] = _nobody
_ask: Callable[[Observation], None] | None = None
_is_describing = True


@dataclass
class _Thread(threading.local):
    """What is under way in a thread that compiles."""

    traces: Traces = field(default_factory=Traces)
    lowering: Sequence[Any] | None = None
    from_disk: bool = False
    expected: Observation | None = None
    """A compile that was observed before it began, because someone asked for that."""

    is_allowed: bool = True
    is_muted: bool = False
    """What this thread compiles or lowers is our own doing."""

    portable: Portable | None = None
    handled: dict[str, int] = field(default_factory=dict)


_thread = _Thread()


def start(tell: Callable[[Observation], None]) -> None:
    """Tell of every compile from now on, in the thread that compiles."""
    global _tell  # noqa: PLW0603 (one ear for the process)
    _tell = tell
    events.register(_LISTENER)


def hear_lines(*, wanted: bool) -> None:
    """Hear JAX's compile lines too, or no longer: they tell of lowerings where frames do not."""
    if wanted and not events.is_registered(_LISTENER):  # someone has cleared JAX's listeners
        events.register(_LISTENER)
    _compile_lines.hear(wanted=wanted)


def ask_before(ask: Callable[[Observation], None] | None) -> None:
    """Ask before each compile, in the thread that compiles: what `ask` raises, the user gets."""
    global _ask  # noqa: PLW0603 (one ear for the process)
    _ask = ask
    _disk_lines.hear(wanted=ask is not None)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Hear nothing of what this thread does, for a block."""
    before, _thread.is_muted = _thread.is_muted, True
    try:
        yield
    finally:
        _thread.is_muted = before


@contextlib.contextmanager
def undescribed() -> Iterator[None]:
    """Count and time, but describe nothing that causes need, for a block: for benchmarks too."""
    global _is_describing  # noqa: PLW0603
    _is_describing = False
    try:
        yield
    finally:
        _is_describing = True


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """JAX as it is without jitcount, for a block: what benchmarks compare with."""
    heard_lines = _compile_lines.are_heard
    events.unregister(_LISTENER)
    _compile_lines.hear(wanted=False)
    try:
        yield
    finally:
        events.register(_LISTENER)
        hear_lines(wanted=heard_lines)


def _on_begin(event: str, value: float, **about: Any) -> None:  # noqa: ARG001 (as JAX calls it)
    if event not in events.PHASES or _thread.is_muted:
        return
    _thread.handled[event] = id(sys.exception())
    if event == events.TRACE:
        _thread.traces.begin()
    elif event == events.COMPILE:
        _thread.from_disk = False
        _thread.expected = None
        _thread.is_allowed = True
        if _ask is not None:
            _thread.is_allowed = False
            _thread.expected = _expected(_function(about), sys._getframe(1))  # noqa: SLF001
            if not settings.may_come_from_disk():
                _ask_for(_thread.expected)
        _thread.portable = portables.on_compile(sys._getframe(1))  # noqa: SLF001


def _expected(function: str, frame: FrameType) -> Observation:
    try:
        return _observed(function, 0.0, frame)
    except Exception:  # a guard must not open because observing failed
        _logger.debug("could not observe %s", function, exc_info=True)
        return Observation(function, (), UNKNOWN, UNKNOWN, False, False, 0.0, 0.0, 0.0, None)  # noqa: FBT003


def _ask_for(observation: Observation | None) -> None:
    """Let whoever asked refuse a compile, once."""
    if _ask is not None and observation is not None and not _thread.is_allowed:
        _ask(observation)
        _thread.is_allowed = True


def _on_event(event: str, **_about: Any) -> None:
    if event == events.DISK_HIT and not _thread.is_muted:
        _thread.from_disk = True


def _on_compile_line(line: logging.LogRecord) -> None:
    """Take the avals of "Compiling %s with global shapes and types %s. Argument mapping: %s."."""
    if (avals := events.avals_in(line)) is not None:
        _thread.lowering = avals


def _on_disk_line(line: logging.LogRecord) -> None:
    """A program that is not on disk is about to be compiled."""
    if events.is_disk_miss(line):
        _ask_for(_thread.expected)


_compile_lines = Lines(events.COMPILE_LOGGER, _on_compile_line)
_disk_lines = Lines(events.DISK_LOGGER, _on_disk_line)


def _on_end(event: str, duration_secs: float, **about: Any) -> None:
    if event not in events.PHASES or _thread.is_muted:
        return
    try:
        _end_phase(event, duration_secs, _function(about))
    except Exception:  # observing must never fail the program that is observed
        _logger.debug("could not observe %s %s", event, about, exc_info=True)
    if event == events.COMPILE and not _thread.from_disk:
        # With a persistent cache, a program that cannot be kept in it is compiled without a word.
        _ask_for(_thread.expected)


def _end_phase(event: str, seconds: float, function: str) -> None:
    # JAX reports a phase that raised like one that ended well, from the `__exit__` of a context
    # manager: there, an exception is being handled that was not when the phase began.
    failed = id(sys.exception()) not in {_thread.handled.get(event), id(None)}
    if event == events.TRACE:
        ahead = None if failed else _described_ahead_of_time(function, sys._getframe(2))  # noqa: SLF001
        _thread.traces.end(function, None if failed else Trace(seconds, ahead))
    elif failed:
        return
    elif event == events.LOWER:
        # Here, before XLA has run, the call is described: Python is quicker now than after.
        frame = sys._getframe(2)  # noqa: SLF001 (public, documented)
        heard, _thread.lowering = _thread.lowering, None
        kept_avals = frames.read_lowered_avals(frame) or heard
        trace = _thread.traces.take(function)
        description = _describe(function, trace.program, frame)
        me = threading.get_ident()
        _lowerings.add(Lowered(function, kept_avals, me, trace.seconds, seconds, description))
        portables.on_lowered(frame)
    else:
        observation = _thread.expected or _observed(function, seconds, sys._getframe(2))  # noqa: SLF001
        observation.compile_s = seconds
        observation.from_disk = _thread.from_disk
        observation.portable = _thread.portable
        _tell(observation)
        observation.portable = _thread.portable = None  # whoever wants it has it


def _described_ahead_of_time(function: str, frame: FrameType) -> Program | None:
    """The program of a `.trace()` or `.lower()`, described while its arguments are there."""
    try:
        call = frames.read_tracing(frame) if _is_describing else None
        return None if call is None else describe_call(call, function)
    except Exception:  # a count without a description is better than none
        _logger.debug("could not describe %s", function, exc_info=True)
        return None


def _describe(function: str, program: Program | None, frame: FrameType) -> Description:
    """Describe a call, unless that was done when it was traced."""
    try:
        call = frames.read_call(frame)
    except Exception:  # a count without a description is better than none
        _logger.debug("could not read JAX's frames", exc_info=True)
        return Description()
    try:
        if _is_describing:
            program = program or describe(call, function)
    except Exception:  # the same
        _logger.debug("could not describe %s", function, exc_info=True)
    return Description(call.avals, program, call.made_by_jax, call_site(frame))


def _observed(function: str, seconds: float, frame: FrameType) -> Observation:
    executable = frames.read_executable(frame)
    lowered = _lowerings.take(function, executable.kept_avals, threading.get_ident())
    description = lowered.description if lowered else Description()
    if description.avals is None:
        description = _describe(function, description.program, frame)
    avals = description.avals
    if avals is None:
        avals = executable.kept_avals or (lowered and lowered.kept_avals) or ()
    return Observation(
        function=function,
        avals=avals,
        platform=executable.platform or UNKNOWN,
        call_site=description.call_site or call_site(frame),
        eager=description.made_by_jax,
        from_disk=_thread.from_disk,
        trace_s=lowered.trace_s if lowered else 0.0,
        lower_s=lowered.lower_s if lowered else 0.0,
        compile_s=seconds,
        program=description.program,
    )


def _function(about: dict[str, Any]) -> str:
    return events.function_in(str(about.get("fun_name", UNKNOWN)))


_LISTENER: events.Listener = {
    "scalar": _on_begin,
    "event": _on_event,
    "event_duration": _on_end,
}
