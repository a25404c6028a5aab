"""Follows a compile through its phases, and keeps what a profile is written from."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from jitcount._hlo.locations import DeepStacks, transform_in
from jitcount._hlo.mlir import read_lowered
from jitcount._jax import profiling as _jax
from jitcount._jax.jaxprs import as_written, equations
from jitcount._loops.sketch import MOVES
from jitcount._profile.attribution import large_constants, note_folding, seconds_by_origin
from jitcount._profile.compiler_events import parse_compiler_events
from jitcount._profile.draft import Draft, waiting
from jitcount._profile.loops import NO_LOOPS, look_for_loops
from jitcount._profile.optimised import OptimisedProgram
from jitcount._profile.origin import origin_of
from jitcount._profile.sampling import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

    from jitcount._hlo.mlir import Operation
    from jitcount._jax.jaxprs import Equation
    from jitcount._profile.origin import Origin

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


def _look_at(lowered: _Lowered, jaxpr: Any) -> None:
    """Look at a program as JAX traced it, which is not kept."""
    draft = lowered.draft
    if jaxpr is None:
        draft.notes.append("JAX's frames do not show the jaxpr")
        return
    try:
        found = list(equations(jaxpr))
        for stack in as_written(each.stack for each in found):
            lowered.deep.add(stack)
        draft.jaxpr = _origins(found)
        look_for_loops(draft, jaxpr)
    except Exception as error:  # observing must never fail the user's program
        _logger.debug("could not look at a jaxpr", exc_info=True)
        draft.notes.append(f"{NO_LOOPS}: {type(error).__name__}: {error}")


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
            target=_look_at, args=(lowered, jaxpr), name="jitcount reader", daemon=True
        )
        lowered.reader.start()
        read = partial(look_at_lowered, deep=lowered.deep, text=text)
        lowered.draft.read_later(len(text), read, "its operations are not known")
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
            lowered.is_read()
            return lowered.draft
        with self._changing:
            if begun in self._under_way:
                self._under_way.remove(begun)
            seen = self._seen(begun)
        lowered.is_read()
        executable = _jax.compiled_executable(frame)
        if executable is not None:
            made = Executable.of(executable, seen)
            read = partial(look_at_executable, deep=lowered.deep, made=made)
            lowered.draft.read_later(made.size, read, "what XLA made of it is not known")
        if begun.reason:
            lowered.draft.notes.append(begun.reason)
        waiting.add(lowered.draft)
        return lowered.draft

    @staticmethod
    def _seen(begun: _Watched) -> bytes:
        if begun.session is None:
            return b""
        try:
            seen = _jax.watched(begun.session)
        except _jax.NotWatchedError as error:
            begun.reason = str(error)
            return b""
        return b"" if begun.reason else seen

    def rest(self) -> None:
        """No profile is wanted for now."""
        self._sampler.rest()
        with self._changing:
            for each in self._under_way:
                self._seen(each)
            self._under_way.clear()


NOT_LOWERED = "it was lowered before the block began: nothing is known of its tracing"


def look_at_lowered(draft: Draft, deep: DeepStacks, text: str) -> None:
    """Add what a lowered program says."""
    lowered = read_lowered(text)
    draft.operations = _origins(lowered.operations, deep)
    draft.constants = large_constants(lowered, deep)


@dataclass(frozen=True, slots=True)
class Executable:
    """What an executable and its compiler say, not yet read."""

    text: str
    seen: bytes
    """By the compiler's profiler."""

    objects: list[dict[str, int]]

    @classmethod
    def of(cls, executable: Any, seen: bytes) -> Executable:
        """Ask it."""
        objects: list[dict[str, int]] = []
        if b"CpuCompiler::" in seen:
            try:
                objects = _jax.object_files(executable)
            except Exception:
                _logger.debug("could not read machine code", exc_info=True)
        return cls(_jax.optimised_text(executable), seen, objects)

    @property
    def size(self) -> int:
        """In bytes, about."""
        return len(self.text) + len(self.seen)


def look_at_executable(draft: Draft, deep: DeepStacks, made: Executable) -> None:
    """Add what an executable, and its compiler's events, say."""
    program = OptimisedProgram(made.text, deep)
    draft.optimised = program.counts()
    events = _jax.events_in(made.seen) if made.seen else []
    if not events:
        return
    draft.account = parse_compiler_events(events, made.objects)
    draft.units = seconds_by_origin(draft.account, program)
    note_folding(draft)
    if draft.account.note:
        draft.notes.append(draft.account.note)


def _origins(
    pieces: Iterable[Equation | Operation], deep: DeepStacks | None = None
) -> Counter[Origin]:
    """Count pieces by where they come from; where JAX wrote the stacks, `deep` knows the whole.

    What only moves data does not say what a line calls: `split(key)[0]` has more of it than of
    anything else.
    """
    found: Counter[Origin] = Counter()
    alike = Counter(
        (piece.stack, piece.name_stack, getattr(piece, "primitive", "") in MOVES)
        for piece in pieces
    )
    for (stack, name_stack, is_move), count in alike.items():
        origin = origin_of(stack if deep is None else deep.whole(stack), transform_in(name_stack))
        found[origin._replace(calls="") if is_move else origin] += count
    return found
