"""The state of the process: who listens to compiles, who may refuse them, and what was compiled.

JAX's listeners are registered from `import jitcount` on, so that a later compile can be compared
with earlier ones. Everything that users open around a block enters the registry when the block
begins and leaves it when the block ends, in whatever order blocks end.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import jax

from jitcount._explain.history import History
from jitcount._observe.listener import CompileListener, Needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from jitcount._observe.in_flight import InFlightCompile, LoweredProgram
    from jitcount._observe.program import Program
    from jitcount._profile.loops import LoopPrograms
    from jitcount._profile.profiler import Profiler

    OnCompiled = Callable[[InFlightCompile], None]
    ProgramConsumer = Callable[[LoweredProgram], None]
    ExemptFromGuards = Callable[[InFlightCompile], bool]

_logger = logging.getLogger("jitcount")


class Guard(Protocol):
    """A block that may refuse a compile, as `freeze` does."""

    def check(self, compiling: InFlightCompile) -> None:
        """Raise where the compile is not allowed."""

    def count(self, compiling: InFlightCompile) -> None:
        """Count a compile that no guard refused."""


class Registry:
    """Listeners, guards, program consumers and the profiler of the process, and its history.

    Each collection is a tuple that is replaced, never changed: a thread that compiles reads it
    without a lock. What leaves is found by equality: a bound method is a new object each time.
    """

    def __init__(self) -> None:
        self.listeners: tuple[OnCompiled, ...] = ()
        self.guards: tuple[Guard, ...] = ()
        self.program_consumers: tuple[ProgramConsumer, ...] = ()
        self.exempt_from_guards: ExemptFromGuards | None = None
        """Says which compiles no guard is asked about, because jitcount itself causes them."""

        self.history = History()
        self.profiler: Profiler | None = None
        """The profiler, while a recorder with a profile is open."""

        self._loaded_profiler: Profiler | None = None
        self._profiles_open = 0
        self.changing = threading.RLock()
        """Held while anything of this changes, and by what must change together with it. There is
        one such lock: a garbage collection in here may run a finalizer that ends a block, and with
        two of them, in two threads, each would wait for the other."""

        self._asking = threading.RLock()
        self.listener = CompileListener(
            self._check_guards, self._hand_out_program, self._report_compile
        )
        self._refresh()

    # --- What users open around a block -----------------------------------------------------------

    def listening(self, listener: OnCompiled) -> AbstractContextManager[None]:
        """Call `listener` after every compile in this block, in the thread that compiles."""
        return self._holding("listeners", listener)

    def guarding(self, guard: Guard) -> AbstractContextManager[None]:
        """Ask `guard` before every compile in this block, in the thread that compiles."""
        return self._holding("guards", guard)

    def consuming_programs(self, consumer: ProgramConsumer) -> AbstractContextManager[None]:
        """Hand every program in this block to `consumer`, just before XLA compiles it."""
        return self._holding("program_consumers", consumer)

    def _holding(self, name: str, entry: object) -> AbstractContextManager[None]:
        """Keep an entry in one of the tuples for a block."""

        def begin() -> None:
            with self.changing:
                setattr(self, name, (*getattr(self, name), entry))
                self._refresh()

        def end() -> None:
            with self.changing:
                setattr(self, name, _without(entry, getattr(self, name)))
                self._refresh()

        return _Block(begin, end)

    def profiling(self) -> AbstractContextManager[None]:
        """Profile every compile in this block."""
        return _Block(self._begin_profiling, self._end_profiling)

    def _begin_profiling(self) -> None:
        """Profile every compile, until `_end_profiling` was called as often."""
        self.load_profiler()
        with self.changing:
            self._profiles_open += 1
            self.profiler = self._loaded_profiler
            self._refresh()

    def _end_profiling(self) -> None:
        """Profile no more, unless another block wants it."""
        with self.changing:
            self._profiles_open -= 1
            if not self._profiles_open:
                stopped, self.profiler = self.profiler, None
                self._refresh()
                if stopped is not None:
                    stopped.stop()

    @contextlib.contextmanager
    def keeping_loops(self) -> Iterator[LoopPrograms]:
        """Keep the programs with the largest loops that are profiled in this block."""
        from jitcount._profile.loops import LoopPrograms  # noqa: PLC0415 (as the profiler)

        self.load_profiler()
        kept = LoopPrograms()
        if (profiler := self._loaded_profiler) is None:
            yield kept
            return
        before, profiler.loop_programs = profiler.loop_programs, kept
        try:
            yield kept
        finally:
            profiler.loop_programs = before

    def load_profiler(self) -> None:
        """Import the profiler, which takes a while, before a block begins that it could delay.

        It imports much of JAX that most programs do not use, so only those who want it pay for it.
        """
        try:
            from jitcount._profile.profiler import Profiler  # noqa: PLC0415
        except ImportError:  # a finalizer, in the middle of this import: it has no profile
            _logger.debug("could not load the profiler", exc_info=True)
            return
        with self.changing:
            if self._loaded_profiler is None:
                self._loaded_profiler = Profiler()

    def new_history(self, programs: Iterable[Program] = ()) -> None:
        """Begin again as in a new process that has compiled these programs and no others."""
        history = History()
        for program in programs:
            history.add(program)
        self.history = history

    @contextlib.contextmanager
    def own_history(self) -> Iterator[None]:
        """A history of its own for a block, as in a new process; for cases that test causes."""
        before, self.history = self.history, History()
        try:
            yield
        finally:
            self.history = before

    def _refresh(self) -> None:
        self.listener.refresh_subscriptions(
            Needs(
                details=bool(self.listeners),
                guards=bool(self.guards),
                programs=bool(self.program_consumers),
                profiler=self.profiler,
            )
        )

    # --- What the listener calls ------------------------------------------------------------------

    def _check_guards(self, compiling: InFlightCompile) -> None:
        """Let the guards refuse a compile."""
        self._look_up(compiling, self.history.look)
        is_exempt = self.exempt_from_guards
        if _is_for_a_profile(compiling) or (is_exempt is not None and is_exempt(compiling)):
            return
        with self._asking:  # what one guard refuses, no other one counts
            guards = self.guards
            for guard in guards:
                guard.check(compiling)
            for guard in guards:
                guard.count(compiling)

    def _hand_out_program(self, program: LoweredProgram) -> None:
        for consumer in self.program_consumers:
            try:
                consumer(program)
            except Exception:  # the others need it all the same
                _logger.debug("could not hand out a program", exc_info=True)

    def _report_compile(self, compiled: InFlightCompile, is_refused: bool) -> None:  # noqa: FBT001
        """Remember a compile, and report it; what a guard refused JAX does not keep."""
        if not is_refused:
            self._look_up(compiled, self.history.add)
        for listener in self.listeners:
            try:
                listener(compiled)
            except Exception:  # the others must not lose a count
                _logger.debug("could not report %s", compiled.function, exc_info=True)

    @staticmethod
    def _look_up(
        compiling: InFlightCompile, ask: Callable[[Program], tuple[Program, ...] | None]
    ) -> None:
        """Ask the history for the neighbours of a program, and what only it can tell."""
        program = compiling.program
        if program is None:
            return
        try:
            compiling.earlier = earlier = ask(program)
            compiling.is_traced_anew = any(
                one.is_like(program) and program.is_traced_apart_from(one) for one in earlier or ()
            )
        except Exception:  # it counts, and may be refused, without a cause
            _logger.debug("could not look up %s", compiling.function, exc_info=True)


@dataclass(frozen=True, slots=True)
class _Block(contextlib.AbstractContextManager[None]):
    """A block that changes the registry when it begins, and again when it ends.

    Not a generator: Python closes one that nobody holds any more, and the block of a recorder that
    was entered and dropped (``log = record().__enter__()``) would end with it.
    """

    begin: Callable[[], None]
    end: Callable[[], None]

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *_error: object) -> None:
        self.end()


def _without(gone: object, entries: tuple[Any, ...]) -> tuple[Any, ...]:
    """The entries without the latest one that is equal to `gone`."""
    for index in range(len(entries) - 1, -1, -1):
        if entries[index] == gone:
            return entries[:index] + entries[index + 1 :]
    return entries


def _is_for_a_profile(compiling: InFlightCompile) -> bool:
    """Whether JAX compiles the same program again, better, now that it has a profile of it."""
    program = compiling.program
    if program is None or not jax.config.values.get("jax_enable_pgle"):
        return False
    return any(map(program.is_like, compiling.earlier or ()))


registry = Registry()
