"""Follows a compile through its phases, and keeps what a profile is written from."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._jax import profiling as _jax
from jitcount._jax.equations import equations
from jitcount.profile.constants import large_constants, note_folding
from jitcount.profile.copies import copy_in
from jitcount.profile.lowered import read_lowered
from jitcount.profile.optimised import read_optimised
from jitcount.profile.origin import origin_of, without_jax
from jitcount.profile.places import DeepStacks
from jitcount.profile.sampling import Sampler
from jitcount.profile.units import account_of
from jitcount.profile.unrolled import unrolled_loops
from jitcount.profile.writing import Draft, seconds_by_origin

if TYPE_CHECKING:
    from types import FrameType

    from jitcount.profile.origin import Origin
    from jitcount.profile.result import Loop

_logger = logging.getLogger("jitcount")

AT_ONCE = "another program was compiled at the same time: the compiler's time is not told apart"


@dataclass(slots=True)
class _Lowered:
    """What is known of a program before it is compiled."""

    draft: Draft
    deep: DeepStacks
    reader: threading.Thread | None = None
    """Reads the program while XLA compiles it."""

    def is_read(self) -> None:
        """Wait until it has been read."""
        if self.reader is not None:
            self.reader.join()
            self.reader = None


def _look_at(lowered: _Lowered, jaxpr: Any, text: str) -> None:
    """Read a program, as JAX traced and lowered it."""
    try:
        if jaxpr is None:
            lowered.draft.notes.append("JAX's frames do not show the jaxpr")
        else:
            lowered.draft.jaxpr = _origins(equations(jaxpr), lowered.deep)
            lowered.draft.loops = _loops(lowered.draft, jaxpr)
        look_at_lowered(lowered.draft, lowered.deep, text)
    except Exception:  # observing must never fail the user's program
        _logger.debug("could not read a program", exc_info=True)
        lowered.draft.notes.append("the program could not be read: its operations are not known")


_keeping = threading.Lock()


def _loops(draft: Draft, jaxpr: Any) -> tuple[Loop, ...]:
    try:
        with _keeping:  # some are kept for later, in one place
            return unrolled_loops(jaxpr)
    except Exception as error:  # noqa: BLE001 (the rest of the profile is there)
        draft.notes.append(f"no loops were looked for: {type(error).__name__}: {error}")
        return ()


@dataclass(slots=True)
class _Watched:
    """A compile that is under way."""

    session: Any = None
    reason: str = ""
    """Why it is not watched, or not to be believed."""


class Profiler:
    """Called by `observe` in the thread that compiles."""

    def __init__(self) -> None:
        self._sampler = Sampler()
        self._under_way: list[_Watched] = []
        self._changing = threading.RLock()

    def begin_trace(self) -> None:
        """A trace begins, perhaps within another."""
        self._sampler.begin()

    def end_trace(self) -> dict[Origin, float]:
        """The innermost trace has ended: seconds by where they were spent."""
        found: dict[Origin, float] = {}
        for stack, seconds in self._sampler.end().items():
            origin = origin_of(stack)
            found[origin] = found.get(origin, 0.0) + seconds
        return found

    def end_lowering(self, traced: dict[Origin, float] | None, frame: FrameType) -> _Lowered:
        """A program was lowered: look at it while JAX holds it."""
        lowered = _Lowered(Draft(trace=traced or {}), DeepStacks())
        jaxpr, text = _jax.lowered_jaxpr(frame), _jax.lowered_text(frame)
        # XLA compiles meanwhile, and does not need the interpreter.
        lowered.reader = threading.Thread(
            target=_look_at, args=(lowered, jaxpr, text), name="jitcount reader", daemon=True
        )
        lowered.reader.start()
        return lowered

    def begin_compile(self, _frame: FrameType) -> _Watched:
        """XLA begins: watch it, unless another compile is under way."""
        begun = _Watched()
        with self._changing:
            if self._under_way:
                begun.reason = AT_ONCE
                for each in self._under_way:
                    each.reason = each.reason or AT_ONCE
            else:
                try:
                    begun.session = _jax.watch()
                except _jax.NotWatchedError as error:
                    begun.reason = str(error)
            self._under_way.append(begun)
        return begun

    def end_compile(
        self, lowered: _Lowered | None, begun: _Watched | None, frame: FrameType
    ) -> Draft:
        """XLA has ended, well or not."""
        lowered = lowered or _Lowered(Draft(notes=[NOT_LOWERED]), DeepStacks())
        if begun is None:  # a profile was not yet wanted when it began
            return lowered.draft
        with self._changing:
            if begun in self._under_way:
                self._under_way.remove(begun)
            events = self._events(begun)
        lowered.is_read()
        executable = _jax.compiled_executable(frame)
        if executable is not None:
            draft_of_executable(lowered.draft, lowered.deep, executable, events)
        if begun.reason:
            lowered.draft.notes.append(begun.reason)
        return lowered.draft

    @staticmethod
    def _events(begun: _Watched) -> list[_jax.Event]:
        if begun.session is None:
            return []
        try:
            events = _jax.watched(begun.session)
        except _jax.NotWatchedError as error:
            begun.reason = str(error)
            return []
        return [] if begun.reason else events

    def rest(self) -> None:
        """No profile is wanted for now."""
        self._sampler.rest()
        with self._changing:
            for each in self._under_way:
                self._events(each)
            self._under_way.clear()


NOT_LOWERED = "it was lowered before the block began: nothing is known of its tracing"


def look_at_lowered(draft: Draft, deep: DeepStacks, text: str) -> None:
    """Add what a lowered program says."""
    lowered = read_lowered(text)
    draft.operations = _origins(lowered.operations, deep)
    draft.constants = large_constants(lowered, deep)


def draft_of_executable(
    draft: Draft, deep: DeepStacks, executable: Any, events: list[_jax.Event]
) -> None:
    """Add what an executable, and its compiler's events, say."""
    program = read_optimised(_jax.optimised_text(executable), deep)
    draft.optimised = program.counts()
    if not events:
        return
    objects: list[dict[str, int]] = []
    if any(event.name.startswith("CpuCompiler::") for event in events):
        try:
            objects = _jax.object_files(executable)
        except Exception:
            _logger.debug("could not read machine code", exc_info=True)
    draft.account = account_of(events, objects)
    draft.units = seconds_by_origin(draft.account, program)
    note_folding(draft)
    if draft.account.note:
        draft.notes.append(draft.account.note)


def _origins(pieces: Any, deep: DeepStacks) -> Counter[Origin]:
    found: Counter[Origin] = Counter()
    for piece in pieces:
        deep.add(without_jax(piece.stack))
        found[origin_of(piece.stack, copy_in(piece.name_stack))] += 1
    return found
