"""Listens to JAX while anyone wants to know, and tells them of each compile.

Three sources, all JAX's own: `jax.monitoring` for when a phase begins and how long it took, the
lines that `jax_log_compiles` turns on for what is lowered, the stack (in `_jax`) for the rest.
"""

from __future__ import annotations

import logging
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jax import monitoring

from jitcount import _jax
from jitcount.observe import compile_lines
from jitcount.observe.call_site import call_site
from jitcount.observe.compile import UNKNOWN, Compile, signature_of
from jitcount.observe.phases import Lowered, Lowerings, Traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Listener = Callable[[Compile], None]

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
DISK_HIT = "/jax/compilation_cache/cache_hits"

_PHASES = frozenset({TRACE, LOWER, COMPILE})

_logger = logging.getLogger("jitcount")
_lock = threading.Lock()
_listeners: tuple[Listener, ...] = ()
_lowerings = Lowerings()


@dataclass
class _Thread(threading.local):
    """What is under way in a thread that compiles."""

    traces: Traces = field(default_factory=Traces)
    lowering: tuple[str, ...] | None = None
    from_disk: bool = False
    handled: dict[str, int] = field(default_factory=dict)


_thread = _Thread()


def listen(listener: Listener) -> None:
    """Tell `listener` of every compile, in the thread that compiles, until `forget`."""
    global _listeners  # noqa: PLW0603 (one ear for the process)
    with _lock:
        if not _listeners:
            _register()
        _listeners = (*_listeners, listener)


def forget(listener: Listener) -> None:
    """Stop telling `listener`; with the last one JAX is left as it was found."""
    global _listeners  # noqa: PLW0603
    with _lock:
        _listeners = tuple(other for other in _listeners if other is not listener)
        if not _listeners:
            _unregister()


def _register() -> None:
    monitoring.register_scalar_listener(_on_begin)
    monitoring.register_event_listener(_on_event)
    monitoring.register_event_duration_secs_listener(_on_end)
    compile_lines.listen(_on_line)


def _unregister() -> None:
    compile_lines.forget()
    _jax.unregister("event_duration", _on_end)
    _jax.unregister("event", _on_event)
    _jax.unregister("scalar", _on_begin)


def _on_begin(event: str, value: float, **_about: Any) -> None:  # noqa: ARG001 (as JAX calls it)
    if event not in _PHASES:
        return
    _thread.handled[event] = id(sys.exception())
    if event == TRACE:
        _thread.traces.begin()
    elif event == COMPILE:
        _thread.from_disk = False


def _on_event(event: str, **_about: Any) -> None:
    if event == DISK_HIT:
        _thread.from_disk = True


def _on_line(avals: object) -> None:
    _thread.lowering = signature_of(avals)


def _on_end(event: str, duration_secs: float, **about: Any) -> None:
    if event not in _PHASES:
        return
    try:
        _end_phase(event, duration_secs, _unwrapped(str(about.get("fun_name", UNKNOWN))))
    except Exception:  # observing must never fail the program that is observed
        _logger.debug("could not observe %s %s", event, about, exc_info=True)


def _end_phase(event: str, seconds: float, function: str) -> None:
    # JAX reports a phase that raised like one that ended well, from the `__exit__` of a context
    # manager: there, an exception is being handled that was not when the phase began.
    failed = id(sys.exception()) not in {_thread.handled.get(event), id(None)}
    if event == TRACE:
        _thread.traces.end(function, None if failed else seconds)
    elif failed:
        return
    elif event == LOWER:
        signature, _thread.lowering = _thread.lowering, None
        trace_s = _thread.traces.take(function)
        me = threading.get_ident()
        _lowerings.add(Lowered(function, signature, me, trace_s, seconds))
    else:
        compiled = _compiled(function, seconds, sys._getframe(2))  # noqa: SLF001 (public, documented)
        for listener in _listeners:
            listener(compiled)


def _compiled(function: str, seconds: float, frame: FrameType) -> Compile:
    try:
        program = _jax.read_compiling(frame)
    except Exception:  # a count without a description is better than none
        _logger.debug("could not read JAX's frames", exc_info=True)
        program = _jax.Compiling()
    kept = None if program.kept_avals is None else signature_of(program.kept_avals)
    lowered = _lowerings.take(function, kept, threading.get_ident())
    if program.avals is not None:
        signature = signature_of(program.avals)
    else:
        signature = kept or (lowered and lowered.signature) or ()
    return Compile(
        function=function,
        signature=signature,
        platform=program.platform or UNKNOWN,
        call_site=call_site(frame),
        eager=program.made_by_jax,
        from_disk=_thread.from_disk,
        trace_s=lowered.trace_s if lowered else 0.0,
        lower_s=lowered.lower_s if lowered else 0.0,
        compile_s=seconds,
    )


def _unwrapped(name: str) -> str:
    """The function's name in JAX's name of the program.

    >>> _unwrapped("jit(sum)"), _unwrapped("jit(<lambda>)"), _unwrapped("sum")
    ('sum', '<lambda>', 'sum')
    """
    prefix, parenthesis, rest = name.partition("(")
    if parenthesis and rest.endswith(")") and prefix.isidentifier():
        return rest[:-1]
    return name
