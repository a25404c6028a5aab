"""The one place where a process keeps what listens to compiles, what may refuse them, and the past.

JAX's listeners are there from `import jitcount` on, so that later it can be said what has changed
since. All that users open around a block is put in here when the block begins, and taken out when
it ends.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Protocol

import jax

from jitcount._explain.history import History
from jitcount._observe.listener import CompileListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jitcount._observe.in_flight import Observation, Portable
    from jitcount._observe.program import Program
    from jitcount._profile.profiler import Profiler

    Listener = Callable[[Observation], None]
    Taker = Callable[[Portable], None]
    Excuse = Callable[[Observation], bool]

_logger = logging.getLogger("jitcount")


class Guard(Protocol):
    """What may refuse a compile."""

    def check(self, observation: Observation) -> None:
        """Raise where the compile must not be."""

    def count(self, observation: Observation) -> None:
        """Take note of a compile that no guard refused."""


class Registry:
    """Listeners, guards and takers of programs, and the history; as `Audience`, it hears of JAX.

    What is here is replaced, never changed: a thread that compiles reads it without a lock.
    """

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()
        self.guards: tuple[Guard, ...] = ()
        self.takers: tuple[Taker, ...] = ()
        self.excuse: Excuse | None = None
        """Tells the compiles that no guard is asked about, because jitcount is why they are."""

        self.profiler: Profiler | None = None
        """What profiles, while a recorder with a profile is open."""

        self._profiler: Profiler | None = None
        self._profiles_wanted = 0
        self.history = History()
        self.listener = CompileListener(self)
        # A garbage collection in here may run a finalizer that opens a recorder, or compiles.
        self._changing = threading.RLock()
        self._asking = threading.RLock()

    def start(self) -> Registry:
        """Listen to JAX from now on."""
        self.listener.refresh_subscriptions()
        return self

    # --- What users open around a block -----------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of every compile, in the thread that compiles, until `forget`."""
        with self._changing:
            self.listeners += (listener,)
            self.listener.refresh_subscriptions()

    def forget(self, listener: Listener) -> None:
        """Stop telling `listener`."""
        with self._changing:
            self.listeners = tuple(one for one in self.listeners if one is not listener)
            self.listener.refresh_subscriptions()

    def guard(self, guard: Guard) -> None:
        """Ask a guard before each compile, in the thread that compiles."""
        with self._changing:
            self.guards += (guard,)
            self.listener.refresh_subscriptions()

    def unguard(self, guard: Guard) -> None:
        """Stop asking it."""
        with self._changing:
            self.guards = tuple(one for one in self.guards if one is not guard)
            self.listener.refresh_subscriptions()

    def supply(self, taker: Taker) -> None:
        """Give `taker` every program, in the thread that compiles it and before it does."""
        with self._changing:
            self.takers += (taker,)
            self.listener.refresh_subscriptions()

    def stop_supplying(self, taker: Taker) -> None:
        """Give it no more."""
        with self._changing:
            self.takers = tuple(one for one in self.takers if one is not taker)
            self.listener.refresh_subscriptions()

    def load_profiler(self) -> None:
        """Import what profiles, which takes a while; nothing has begun that it could interrupt.

        Its room is large, and takes more of JAX than most programs do: not for those without it.
        """
        try:
            from jitcount._profile.profiler import Profiler  # noqa: PLC0415
        except ImportError:  # a finalizer, in the midst of this import: it has no profile
            _logger.debug("could not load the profiler", exc_info=True)
            return
        with self._changing:
            if self._profiler is None:
                self._profiler = Profiler()

    def profile(self) -> None:
        """Profile every compile, until `stop_profiling` was called as often."""
        self.load_profiler()
        with self._changing:
            self._profiles_wanted += 1
            self.profiler = self._profiler

    def stop_profiling(self) -> None:
        """Profile no more, unless others want it."""
        with self._changing:
            self._profiles_wanted -= 1
            if not self._profiles_wanted:
                rested, self.profiler = self.profiler, None
                if rested is not None:
                    rested.rest()

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

    # --- What is heard ----------------------------------------------------------------------------

    @property
    def has_listeners(self) -> bool:
        """Whether a recorder is open."""
        return bool(self.listeners)

    @property
    def has_guards(self) -> bool:
        """Whether a compile may be refused."""
        return bool(self.guards)

    @property
    def has_takers(self) -> bool:
        """Whether a recorder with targets is open."""
        return bool(self.takers)

    def give(self, portable: Portable) -> None:
        """Hand on a program that is about to be compiled."""
        for taker in self.takers:
            taker(portable)

    def ask(self, observation: Observation) -> None:
        """Let the guards refuse a compile."""
        program = observation.program
        self._remember(observation, self.history.look)
        if program is not None and _is_for_a_profile(program, observation.earlier or ()):
            return
        if self.excuse is not None and self.excuse(observation):
            return
        with self._asking:  # what one guard refuses, no other one counts
            for guard in self.guards:
                guard.check(observation)
            for guard in self.guards:
                guard.count(observation)

    def tell(self, observation: Observation, *, is_refused: bool) -> None:
        """Remember a compile, and tell of it; what a guard refused JAX does not keep."""
        if not is_refused:
            self._remember(observation, self.history.add)
        for listener in self.listeners:
            listener(observation)

    @staticmethod
    def _remember(
        observation: Observation, ask: Callable[[Program], tuple[Program, ...] | None]
    ) -> None:
        """Ask the history for the neighbours of a program, and what only now can be known."""
        program = observation.program
        if program is None:
            return
        observation.earlier = earlier = ask(program)
        observation.is_traced_anew = any(
            one.is_like(program) and program.is_traced_apart_from(one) for one in earlier or ()
        )


def _is_for_a_profile(program: Program, earlier: tuple[Program, ...]) -> bool:
    """Whether JAX compiles the same program again, better, now that it has a profile of it."""
    is_wanted = bool(jax.config.values["jax_enable_pgle"])
    return is_wanted and any(map(program.is_like, earlier))


registry = Registry().start()
