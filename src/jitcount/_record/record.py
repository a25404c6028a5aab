"""`jitcount.record`: the compiles of a block."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

from jitcount._observe.callers import callers_in
from jitcount._record.log import CompileLog
from jitcount._record.open_blocks import OpenBlocks
from jitcount._registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from jitcount._explain.compile import Compile
    from jitcount._observe.in_flight import InFlightCompile
    from jitcount._targets.names import Target
    from jitcount._targets.session import Session

_logger = logging.getLogger("jitcount")


class record:  # noqa: N801 (reads as a verb where it is used, like `open`)
    """Count every compile in a block, in whichever thread it happens, and say why.

    Recorders nest, each for its own block; of one recorder that is entered twice, in threads or
    tasks, each with-statement has a log of its own. When the last one ends, however it ends, JAX's
    listeners and loggers are as they were before. JAX prints nothing more because of it, and a
    call that compiles nothing costs nothing.

    >>> import jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jitcount.cache_independent_count(np.zeros(77), np.zeros(78))
    >>> log.count("sum")
    2

    The log fills while the block runs.

    With `targets` each program is also compiled for these, by the real compilers and without the
    devices, beside the block and in processes of their own; the end of the block waits for them.
    Then ``c.on["tpu:v5e"]`` of each compile ``c`` has that compiler's figures, or its refusal.

    Args:
        targets: names as ``jitcount targets`` lists them: "tpu:v5e", "cuda:h100:8".
        keep_hlo: keep each optimised program, as text.
        timeout: how many seconds one compile for a target may take; also, the start of a
            compiler that a program waits for.
        progress: show on stderr how far the target compiles are, when that takes a while.
        redact: leave out what static arguments and static fields were: that they differ is said,
            and their names. ``JITCOUNT_REDACT=1`` in the environment does so everywhere, in the
            errors of `freeze` and `max_compiles` too.
        profile: find out where the time of each compile goes: ``c.lines``, by the lines of the
            user's source, and ``c.loops``. Tracing is sampled, and XLA watched by JAX's profiler.
        on_compile: called with each `Compile` as soon as it is made, in the thread that compiles,
            while the program waits. What it raises is logged once, and never reaches the program;
            of what it compiles itself it is not told.

    Raises:
        ValueError: there is no such target.
        ImportError: a target's compiler is not installed; the text says how to install it.
    """

    def __init__(  # noqa: PLR0913 (keywords, each of its own)
        self,
        targets: Sequence[str] = (),
        *,
        keep_hlo: bool = False,
        timeout: float = 600.0,
        progress: bool = False,
        redact: bool = False,
        profile: bool = False,
        on_compile: Callable[[Compile], object] | None = None,
    ) -> None:
        self._targets = _known(targets)
        self._keep_hlo = keep_hlo
        self._timeout = timeout
        self._progress = progress
        self._redact = redact
        self._profile = profile
        self._on_compile = on_compile
        self._open = OpenBlocks()

    def __enter__(self) -> CompileLog:
        if self._profile:
            registry.load_profiler()
        session = self._begin_session() if self._targets else None
        log = CompileLog(session, redact=self._redact)
        listener: Callable[[InFlightCompile], None] = log.add
        if self._on_compile is not None:
            listener = OnCompileCallback(log, self._on_compile)
        recording = self._open.begin(sys._getframe(1))  # noqa: SLF001 (documented)
        if session is not None:
            recording.push(functools.partial(self._end_session, session))
            recording.enter_context(registry.consuming_programs(session.add_program))
        if self._profile:  # before a compile is reported that it could miss
            recording.enter_context(registry.profiling())
        recording.enter_context(registry.listening(listener))
        recording.callback(_end, log)  # before the compilers of targets are waited for
        log.outer = callers_in(sys._getframe(1))  # noqa: SLF001 (as the listener does)
        log.started_at = time.time()
        return log

    def _begin_session(self) -> Session:
        # Compilers in processes of their own, and profiles from there: not for those without.
        from jitcount._targets.session import Session  # noqa: PLC0415

        session = Session(
            self._targets,
            keep_hlo=self._keep_hlo,
            timeout=self._timeout,
            profile=self._profile,
        )
        session.begin()
        return session

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        begun = self._open.take(sys._getframe(1))  # noqa: SLF001 (the same)
        begun.__exit__(kind, error, traceback)

    def _end_session(
        self, session: Session, _kind: object, error: BaseException | None, _traceback: object
    ) -> None:
        """Wait for the targets' compilers, unless the user interrupted the block."""
        if session.is_forked():
            return
        if isinstance(error, KeyboardInterrupt):
            session.stop()
            return
        try:
            self._wait(session)
        except BaseException:  # Ctrl-C, most likely
            session.stop()
            raise
        session.end()

    def _wait(self, session: Session) -> None:
        if session.wait(1.0 if self._progress else threading.TIMEOUT_MAX):
            return
        # As in `CompileLog`: a progress bar is in a room on the right.
        from jitcount._show.progress import show_waiting  # noqa: PLC0415

        show_waiting(session.progress, session.wait)


def _end(log: CompileLog) -> None:
    log.ended_at = time.time()


def _known(names: Sequence[str]) -> tuple[Target, ...]:
    """The targets of these names, each once, if they can be compiled for."""
    if isinstance(names, str):
        raise TypeError(f"targets is a sequence of names: [{names!r}]")
    if not names:
        return ()
    from jitcount._targets.installed import installed_targets  # noqa: PLC0415 (for some only)

    return installed_targets(names)


class _ThreadState(threading.local):
    is_calling_back: bool = False


class OnCompileCallback:
    """The listener of ``record(on_compile=f)``: fills a log, and calls `f` with each compile.

    `f` is called in the thread that compiles, as soon as XLA is done. What it compiles itself is in
    the log, and it is not called for that.
    """

    def __init__(self, log: CompileLog, on_compile: Callable[[Compile], object]) -> None:
        self._log = log
        self._on_compile = on_compile
        self._thread = _ThreadState()
        self._has_failed = False

    def __call__(self, compiled: InFlightCompile) -> None:
        """Add one compile, and call back."""
        self._log.add(compiled)
        if self._thread.is_calling_back:
            return
        self._thread.is_calling_back = True
        try:
            self._on_compile(self._log.written(compiled))
        except KeyboardInterrupt:  # Ctrl-C is for the program
            raise
        except BaseException:  # whatever it is: it is not the program's
            if not self._has_failed:
                self._has_failed = True
                _logger.warning("on_compile raised; this is said once", exc_info=True)
        finally:
            self._thread.is_calling_back = False
