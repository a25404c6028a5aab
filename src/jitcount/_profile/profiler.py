"""Follows a compile through its phases, and keeps what a profile is written from."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from dataclasses import dataclass, field
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
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from jitcount._hlo.mlir import Operation
    from jitcount._jax.jaxprs import Equation
    from jitcount._profile.loops import LoopPrograms
    from jitcount._profile.origin import Origin

_logger = logging.getLogger("jitcount")

GAVE_WAY = (
    "a jax.profiler trace or server of the program's own began while it was compiled: the "
    "compiler's time is not known"
)
AT_ONCE = "another program was compiled at the same time: the compiler's time is not told apart"


@dataclass(slots=True, eq=False)
class CompileProfile(Draft):
    """The profile of one compile while it is in flight; called in the thread that compiles."""

    is_complete: bool = False
    profiler: Profiler | None = None
    """Who watches XLA for it; None once the compile has ended."""

    deep: DeepStacks = field(default_factory=DeepStacks)
    reader: threading.Thread | None = None
    """Reads the program while XLA compiles it."""

    is_watched: bool = False
    """Whether this profile had begun when XLA did, even if XLA could not be watched."""

    session: _jax.Session | None = None
    """JAX's profiler session that watches XLA, until XLA has ended."""

    not_watched: str = ""
    """Why XLA was not watched, or what was seen is not to be believed."""

    def end_lowering(self, frame: FrameType) -> None:
        """A program was lowered: look at it while JAX holds it."""
        jaxpr, text = _jax.lowered_jaxpr(frame), _jax.lowered_text(frame)
        # XLA compiles meanwhile, and does not need the interpreter.
        keep_in = None if self.profiler is None else self.profiler.loop_programs
        self.reader = threading.Thread(
            target=self._look_at, args=(jaxpr, keep_in), name="jitcount reader", daemon=True
        )
        self.reader.start()
        read = partial(look_at_lowered, deep=self.deep, text=text)
        self.read_later(len(text), read, "its operations are not known")
        if NOT_LOWERED in self.notes:
            self.notes.remove(NOT_LOWERED)

    def _look_at(self, jaxpr: Any, keep_in: LoopPrograms | None) -> None:
        """Look at a program as JAX traced it, which is not kept."""
        if jaxpr is None:
            self.notes.append("JAX's frames do not show the jaxpr")
            return
        try:
            found = list(equations(jaxpr))
            for stack in as_written(each.stack for each in found):
                self.deep.add(stack)
            self.jaxpr = _origins(found)
            look_for_loops(self, jaxpr, keep_in)
        except Exception as error:  # observing must never fail the user's program
            _logger.debug("could not look at a jaxpr", exc_info=True)
            self.notes.append(f"{NO_LOOPS}: {type(error).__name__}: {error}")

    def begin_compile(self, _frame: FrameType) -> None:
        """XLA begins: watch it, unless another compile is in flight."""
        if self.profiler is not None:
            self.profiler.begin_watching(self)

    def end_compile(self, frame: FrameType) -> None:
        """XLA has ended, successfully or not."""
        profiler, self.profiler = self.profiler, None
        events = b"" if profiler is None else profiler.end_watching(self)
        if self.reader is not None:
            self.reader.join()
            self.reader = None
        self.is_complete = True
        if not self.is_watched:  # no profile was wanted yet when XLA began
            return
        executable = _jax.compiled_executable(frame)
        if executable is not None:
            made = Executable.from_xla(executable, events)
            read = partial(look_at_executable, deep=self.deep, made=made)
            self.read_later(made.size, read, "what XLA made of it is not known")
        if self.not_watched:
            self.notes.append(self.not_watched)
        waiting.add(self)


class Profiler:
    """Samples traces, and watches XLA, one compile at a time; one for the process."""

    def __init__(self) -> None:
        self.loop_programs: LoopPrograms | None = None
        """Where programs with loops are kept, while a block wants to measure them."""

        self._sampler = Sampler()
        self._in_flight: list[CompileProfile] = []
        self._changing = threading.RLock()

    def begin_trace(self) -> None:
        """A trace begins, perhaps within another."""
        self._sampler.begin()

    def end_trace(self) -> CompileProfile:
        """The innermost trace has ended: the profile begins with where its seconds were spent."""
        found: dict[Origin, float] = {}
        for stack, seconds in self._sampler.end().items():
            origin = origin_of(stack)
            found[origin] = found.get(origin, 0.0) + seconds
        return CompileProfile(profiler=self, trace=found)

    def begin_untraced(self) -> CompileProfile:
        """The profile of a program that was traced and lowered before the block began."""
        return CompileProfile(profiler=self, notes=[NOT_LOWERED])

    def begin_watching(self, profile: CompileProfile) -> None:
        """Let JAX's profiler watch XLA; it cannot tell two compiles at the same time apart."""
        profile.is_watched = True
        with self._changing:
            if self._in_flight:
                profile.not_watched = AT_ONCE
                for each in self._in_flight:
                    each.not_watched = each.not_watched or AT_ONCE
            else:
                try:
                    profile.session = _jax.watch(self._giving_way)
                except _jax.NotWatchedError as error:
                    profile.not_watched = str(error)
            self._in_flight.append(profile)

    def end_watching(self, profile: CompileProfile) -> bytes:
        """Stop watching XLA: what the compiler did, as JAX's profiler wrote it down."""
        with self._changing:
            if profile in self._in_flight:
                self._in_flight.remove(profile)
            return _end_session(profile)

    @contextlib.contextmanager
    def _giving_way(self) -> Iterator[None]:
        """End our session and begin none, while one of the program's own begins in this thread."""
        with self._changing:
            for each in self._in_flight:
                if each.session is not None:
                    _end_session(each)
                    each.not_watched = each.not_watched or GAVE_WAY
            yield

    def stop(self) -> None:
        """No profile is wanted any more: end the sessions of compiles that are in flight."""
        self._sampler.rest()
        with self._changing:
            for each in self._in_flight:
                _end_session(each)
            self._in_flight.clear()


def _end_session(profile: CompileProfile) -> bytes:
    session, profile.session = profile.session, None
    if session is None:
        return b""
    try:
        seen = _jax.watched(session)
    except _jax.NotWatchedError as error:
        profile.not_watched = str(error)
        return b""
    return b"" if profile.not_watched else seen


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
    def from_xla(cls, executable: Any, seen: bytes) -> Executable:
        """Read the optimised program, and the machine code where that is needed."""
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
