"""Stands between what is heard and whoever wants to know: puts each compile beside earlier ones.

It listens from `import jitcount` on, so that later it can be said what has changed since. While the
user's program waits, only the nearest earlier programs are looked up; the causes are worked out
when someone asks for them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import jax

from jitcount.explain.compile import Compile
from jitcount.explain.differences import cleared, differences, first_call, unknown
from jitcount.explain.history import History
from jitcount.observe import hearing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jitcount.explain.cause import Cause
    from jitcount.observe.observation import Observation
    from jitcount.observe.program import Program
    from jitcount.targets.result import OnTarget

    Listener = Callable[["Explained"], None]

_logger = logging.getLogger("jitcount")
_listeners: tuple[Listener, ...] = ()
_guards: tuple[Guard, ...] = ()
_asking = threading.Lock()
_history = History()


@dataclass(frozen=True, slots=True)
class Explained:
    """A compile, with the earlier programs that may be the nearest."""

    observation: Observation
    earlier: tuple[Program, ...]

    def compile(self, on: Mapping[str, OnTarget] | None = None) -> Compile:
        """Write it out, with what the compilers of some targets say of it."""
        return Compile.of(self.observation, self._causes(), {} if on is None else on)

    def _causes(self) -> tuple[Cause, ...]:
        program = self.observation.program
        if program is None:
            return (unknown("JAX's frames could not be read"),)
        try:
            return causes_of(program, self.earlier)
        except Exception as error:  # observing must never fail the program that is observed
            _logger.debug("could not explain %s", self.observation, exc_info=True)
            return (unknown(f"{type(error).__name__} while explaining"),)


def causes_of(program: Program, earlier: tuple[Program, ...]) -> tuple[Cause, ...]:
    """All that differs from the nearest of some earlier programs."""
    if not earlier:
        return (first_call(program),)
    nearest = min((differences(candidate, program) for candidate in earlier), key=len)
    if nearest:
        return tuple(nearest)
    if not program.is_known:
        return (unknown("the call cannot be seen from where JAX compiles it"),)
    return (cleared(program),)


def listen(listener: Listener) -> None:
    """Tell `listener` of every compile, in the thread that compiles, until `forget`."""
    global _listeners  # noqa: PLW0603 (one history for the process)
    with hearing.lock:
        _listeners = (*_listeners, listener)
        hearing.hear_lines(wanted=True)


def forget(listener: Listener) -> None:
    """Stop telling `listener`."""
    global _listeners  # noqa: PLW0603
    with hearing.lock:
        _listeners = tuple(other for other in _listeners if other is not listener)
        hearing.hear_lines(wanted=bool(_listeners))


class Guard(Protocol):
    """Someone who may refuse a compile."""

    def check(self, explained: Explained) -> None:
        """Raise where the compile must not be."""

    def count(self, explained: Explained) -> None:
        """Take note of a compile that nobody refused."""


def guard(one: Guard) -> None:
    """Ask a guard before each compile, in the thread that compiles."""
    global _guards  # noqa: PLW0603
    with hearing.lock:
        _guards = (*_guards, one)
        hearing.ask_before(_on_question)


def unguard(one: Guard) -> None:
    """Stop asking it."""
    global _guards  # noqa: PLW0603
    with hearing.lock:
        _guards = tuple(other for other in _guards if other is not one)
        hearing.ask_before(_on_question if _guards else None)


def new_history() -> None:
    """Begin again as in a new process, for whoever has cleared JAX's caches on purpose."""
    global _history  # noqa: PLW0603
    _history = History()


@contextlib.contextmanager
def own_history() -> Iterator[None]:
    """A history of its own for a block, as in a new process; for programs that test causes."""
    global _history  # noqa: PLW0603
    before, _history = _history, History()
    try:
        yield
    finally:
        _history = before


def _on_question(observation: Observation) -> None:
    program = observation.program
    earlier = () if program is None else _history.look(program)
    if program is not None and _is_for_a_profile(program, earlier):
        return
    explained = Explained(observation, earlier)
    with _asking:  # what one guard refuses, no other one counts
        for one in _guards:
            one.check(explained)
        for one in _guards:
            one.count(explained)


def _is_for_a_profile(program: Program, earlier: tuple[Program, ...]) -> bool:
    """Whether JAX compiles the same program again, better, now that it has a profile of it."""
    is_wanted = bool(jax.config.values["jax_enable_pgle"])
    return is_wanted and any(p.numbers == program.numbers for p in earlier)


def _on_observation(observation: Observation) -> None:
    program = observation.program
    earlier = () if program is None else _history.add(program)
    for listener in _listeners:
        listener(Explained(observation, earlier))


hearing.start(_on_observation)
