"""`jitcount.as_if`: what is compiled in a block computes as a target's own program would.

The caches of JAX, the function that is replaced and the setting are the process's, and so is an
emulation: it is one *run* from the first of the blocks that overlap to the last one, in whatever
threads, tasks or generators they are opened and closed, and in whatever order. Each run has a
number of its own in JAX's cache keys. So no block finds what another run has compiled, be it for
another target, or as on the CPU because a compiler was too slow that time.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import threading
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jitcount._emulate.active_target import activate_target
from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.emulator import Emulated, Emulator
from jitcount._emulate.other_rounding.program import OtherRounding
from jitcount._emulate.result import EmulatedProgram, Emulation, by_line
from jitcount._jax import settings, substituting
from jitcount._jax.frames import calls_under_way
from jitcount._observe.call_site import UNKNOWN_SITE, sites_in
from jitcount._observe.in_flight import describe_call_under_way
from jitcount._observe.values import signature_of
from jitcount._record.open_blocks import OpenBlocks
from jitcount._registry import registry
from jitcount._targets.installed import require_installed
from jitcount._targets.names import parse, seed_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType, TracebackType

    from jitcount._jax.substituting import Compilable
    from jitcount._observe.call_site import CallSite
    from jitcount._observe.in_flight import LoweredProgram


class as_if:  # noqa: N801 (reads as words where it is used)
    """Compute as a target would: with its compiler's program, and its arithmetic.

    Or, as if with "rounding", as this machine would with other roundings than its own: each
    operation of each program is moved within its rounding, as any backend may round it. That needs
    no target's compiler. "rounding:7" moves everything otherwise, and the same in every run.

    What JAX compiles for the CPU while the block is open, in any thread, is compiled by the
    target's own compiler, without the device; what that made is rewritten for this machine, with
    the roundings of that chip, and runs in place of the program. Outside of the block everything is
    as before: JAX's caches keep the two apart.

    What cannot be carried over runs as on the CPU; `Emulation.programs` says what and why. So does
    what another thread was compiling when the block began or ended.

    Blocks of the same kind may overlap, in threads, tasks and generators, and end in any order: the
    threads of the process compute as the target until the last one has ended. A block that begins
    meanwhile uses what was compiled since the first one began, so its programs include these.

    >>> import jitcount
    >>> with jitcount.as_if("tpu:v5e") as emulation:  # doctest: +SKIP
    ...     print(step(parameters, batch))
    2.7429266
    >>> print(emulation)  # doctest: +SKIP
    As if on tpu:v5e: 1 of 1 programs computed as there

    Args:
        target: a name as ``jitcount targets`` lists them: "tpu:v5e", "cuda:h100"; or "rounding",
            or "rounding:7".
        timeout: how many seconds one compile may take; of blocks that overlap, the longest counts.
        exact_products: compute the target's program without its rounding of products; what is
            left of a difference has another reason.
        scale: with "rounding", how far everything is moved: 1 as another backend's rounding may,
            0 not at all, and then it gives this machine's own bits.

    Raises:
        ValueError: there is no such target, an argument is not for it, or a block of another kind
            is open in the process.
        ImportError: the target's compiler is not installed; the text says how to install it.
    """

    def __init__(
        self,
        target: str,
        *,
        timeout: float = 600.0,
        exact_products: bool = False,
        scale: float | None = None,
    ) -> None:
        self._emulator: Emulator | OtherRounding
        seed = seed_of(target)
        if seed is None:
            self._emulator = _emulator_of_target(target, timeout, scale, is_exact=exact_products)
        else:
            self._emulator = _other_rounding(target, seed, scale, is_exact=exact_products)
        self._blocks = OpenBlocks()

    def __enter__(self) -> Emulation:
        frame = sys._getframe(1)  # noqa: SLF001 (documented)
        emulation = _runs.begin_block(self._emulator, sites_in(frame).user)
        self._blocks.begin(frame).callback(_runs.end_block, emulation)
        return emulation

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._blocks.take(sys._getframe(1)).close()  # noqa: SLF001 (the same)


def _emulator_of_target(
    target: str, timeout: float, scale: float | None, *, is_exact: bool
) -> Emulator:
    if scale is not None:
        raise ValueError(f"as_if({target!r}) has no scale: it is for as_if('rounding')")
    named = parse(target)
    require_installed(named)
    emulator = Emulator.for_target(named, timeout)
    return replace(emulator, arithmetic=EXACT) if is_exact else emulator


def _other_rounding(
    target: str, seed: int, scale: float | None, *, is_exact: bool
) -> OtherRounding:
    if is_exact:
        raise ValueError(
            f"as_if({target!r}) rounds no products otherwise: exact_products is no use"
        )
    if scale is None:
        return OtherRounding(seed)
    if not 0 <= scale < math.inf:
        raise ValueError(f"as_if({target!r}): a scale is from 0 on; it was given {scale!r}")
    return OtherRounding(seed, float(scale))


def as_if_or_null(target: str) -> AbstractContextManager[Emulation | None]:
    """`as_if(target)`, or a null context where the target is empty."""
    return as_if(target) if target else contextlib.nullcontext()


@contextlib.contextmanager
def emulated_instead(emulator: Emulator | OtherRounding) -> Iterator[Emulation]:
    """Let an emulator stand in for the compiler, in all threads, instead of the one in force."""
    emulator.get_ready()
    run = _Run(emulator)
    with _runs.set_aside():
        emulation = run.begin_alone()
        try:
            yield emulation
        finally:
            run.end_alone(emulation)


@contextlib.contextmanager
def as_on_the_cpu() -> Iterator[None]:
    """Compute as outside of the blocks that are open, in all threads, until this ends."""
    with _runs.set_aside():
        suspension = substituting.suspended()
        with registry.changing:
            suspension.__enter__()
        try:
            yield
        finally:
            with registry.changing:
                suspension.__exit__(None, None, None)


@contextlib.contextmanager
def emulated_here(emulator: Emulator | OtherRounding) -> Iterator[Emulation]:
    """Let an emulator stand in for the compiler in this thread; others compute as they did."""
    emulator.get_ready()
    run = _Run(emulator, is_for_one_thread=True)
    emulation = run.begin_alone()
    try:
        with run.in_this_thread():
            yield emulation
    finally:
        run.end_alone(emulation)


_BEGAN_BEFORE = "JAX had begun to compile it when the block began"
_STILL_UNDER_WAY = "it was not compiled yet, in another thread, when the block ended"

# A number in JAX's cache keys keeps what one run compiles apart from all else. Those caches outlive
# every run, so each number is used once.
_numbers = itertools.count(1_000_000)

_begun: Counter[str] = Counter()


def _name_of_a_new_block(emulator: Emulator | OtherRounding) -> str:
    """What causes call it: "tpu:v5e", and then "tpu:v5e, block 2", for each compiles anew."""
    name = emulator.name
    _begun[name] += 1
    return name if _begun[name] == 1 else f"{name}, block {_begun[name]}"


@dataclass(frozen=True, slots=True)
class _Late:
    """A block that ended while threads had programs under way, and other blocks were open."""

    emulation: Emulation
    waits_for: frozenset[object]


class _Run:
    """What happens to each compile, from the first of the blocks that overlap to the last one."""

    def __init__(
        self, emulator: Emulator | OtherRounding, *, is_for_one_thread: bool = False
    ) -> None:
        self._emulator = emulator
        self._thread = threading.get_ident() if is_for_one_thread else None
        self._number = next(_numbers)
        self._block = substituting.Block(
            self._compile, self._number, _name_of_a_new_block(emulator), is_for_one_thread
        )
        self._open = contextlib.ExitStack()
        self._here = threading.local()
        self._emulations: tuple[Emulation, ...] = ()
        self._programs: list[EmulatedProgram] = []
        self._late: list[_Late] = []
        self._latest: dict[int, object] = {}
        """By thread, the call that its latest program was compiled for."""

    @property
    def written(self) -> str:
        """The call that opens its blocks; only those that are opened so may overlap."""
        return self._emulator.written

    @property
    def is_open(self) -> bool:
        """Whether any of its blocks is."""
        return bool(self._emulations)

    def has(self, emulation: Emulation) -> bool:
        """Whether that is one of its open blocks."""
        return any(one is emulation for one in self._emulations)

    def begin(self) -> None:
        """Stand in for the compiler."""
        self._open.enter_context(registry.consuming_programs(self._take))
        if self._thread is None:
            self._open.enter_context(activate_target(self._emulator.name))
        substituting.blocks.begin(self._block)

    def begin_alone(self) -> Emulation:
        """Begin with the only block of the run."""
        with registry.changing:
            emulation = self.join(self._emulator)
            self.begin()
            return emulation

    def end_alone(self, emulation: Emulation) -> None:
        """End with the only block of the run."""
        with registry.changing:
            self.leave(emulation)
            self.end(emulation)

    def in_this_thread(self) -> AbstractContextManager[None]:
        """Let this thread find what the run compiles; for a run of one thread."""
        return settings.number_in_this_thread(self._number)

    def join(self, emulator: Emulator | OtherRounding) -> Emulation:
        """A block begins: it finds in JAX's caches what the run has compiled so far."""
        with registry.changing:
            longest = max(self._emulator.timeout, emulator.timeout)
            self._emulator = replace(self._emulator, timeout=longest)
            emulation = Emulation(emulator, list(self._programs))
            self._emulations = (*self._emulations, emulation)
        return emulation

    def leave(self, emulation: Emulation) -> bool:
        """A block ends; returns whether it was the last one."""
        with registry.changing:
            self._emulations = tuple(one for one in self._emulations if one is not emulation)
            if not self._emulations:
                return True
            if calls := frozenset(call for call, _ in self._not_compiled(calls_under_way())):
                self._late.append(_Late(emulation, calls))
            return False

    def end(self, last: Emulation) -> None:
        """Let JAX compile as before; what is not compiled yet is listed in `last`, too."""
        calls = substituting.blocks.end(self._block)
        self._open.close()
        with registry.changing:
            for call, frame in self._not_compiled(calls):
                described = describe_call_under_way(frame)
                program = EmulatedProgram(
                    function=described.function,
                    signature=described.signature,
                    call_site=sites_in(frame).user,
                    faithful=False,
                    reason=_STILL_UNDER_WAY,
                )
                last.add(program)
                self._tell_late(program, call)

    def _not_compiled(
        self, calls: Iterable[tuple[int, FrameType]]
    ) -> Iterator[tuple[object, FrameType]]:
        """Those calls of JAX's whose program was not listed yet."""
        for thread, frame in calls:
            if self._thread is None or self._thread == thread:
                call = _identity(thread, frame)
                if call != self._latest.get(thread):
                    yield call, frame

    def _take(self, lowered_program: LoweredProgram) -> None:
        """First: keep the program for the compile that follows in this thread."""
        if self._thread is None or self._thread == threading.get_ident():
            self._here.lowered_program = lowered_program

    def _compile(self, compilable: Compilable) -> Any:
        """Then: make an executable in place of the compiler's; None where it cannot be emulated."""
        lowered_program = self._here.__dict__.pop("lowered_program", None)
        if compilable.was_under_way:
            made = Emulated(reason=_BEGAN_BEFORE)
        else:
            made = self._emulator.emulate(compilable, lowered_program)
        executable = compilable.as_ever() if made.executable is None else made.executable
        seen = registry.listener.compile_here()
        program = EmulatedProgram(
            function=seen.function if seen else compilable.name,
            signature=signature_of(seen.avals or ()) if seen else (),
            call_site=seen.sites.user if seen else UNKNOWN_SITE,
            faithful=made.executable is not None,
            reason=made.reason,
            roundings=by_line(made.sites),
            cycles=made.cycles,
            fallback=made.fallback,
        )
        thread = threading.get_ident()
        call = None if compilable.call is None else _identity(thread, compilable.call)
        with registry.changing:
            if not self._emulations:  # all blocks have ended meanwhile, and it is listed
                return executable if made.executable is None else None
            if call is not None:
                self._latest[thread] = call
            self._programs.append(program)
            for emulation in self._emulations:
                emulation.add(program)
            self._tell_late(program, call)
        return executable

    def _tell_late(self, program: EmulatedProgram, call: object) -> None:
        for late in self._late:
            if call is not None and call in late.waits_for:
                late.emulation.add(program)


def _identity(thread: int, frame: FrameType) -> object:
    """What tells a call from the next one of the thread, without keeping it."""
    return thread, id(frame), describe_call_under_way(frame)


class _Runs:
    """The run that blocks of the process have begun, if any is open."""

    def __init__(self) -> None:
        self._run: _Run | None = None
        self._aside: list[_Run | None] = []
        self._since = ""

    def begin_block(self, emulator: Emulator | OtherRounding, site: CallSite) -> Emulation:
        """Begin a run, or join the one that is open.

        Raises:
            ValueError: it is of another kind.
        """
        emulator.get_ready()
        with registry.changing:
            if self._run is not None and self._run.written != emulator.written:
                raise ValueError(
                    f"{emulator.written} while {self._run.written} is open, since "
                    f"{self._since}: all threads of a process compute in one way at a time; "
                    "end the other block first"
                )
            if self._run is not None:
                return self._run.join(emulator)
            self._run = run = _Run(emulator)
            self._since = f"{site} in thread {threading.current_thread().name}"
            emulation = run.join(emulator)
            run.begin()
            return emulation

    def end_block(self, emulation: Emulation) -> None:
        """End a block, and with the last one the run."""
        with registry.changing:
            run = next(run for run in (self._run, *self._aside) if run and run.has(emulation))
            if run.leave(emulation):
                if run is self._run:
                    self._run = None
                run.end(emulation)

    @contextlib.contextmanager
    def set_aside(self) -> Iterator[None]:
        """Let blocks that begin here be of another kind than those that are open."""
        with registry.changing:
            run, self._run = self._run, None
            self._aside.append(run)
        try:
            yield
        finally:
            with registry.changing:
                self._aside.remove(run)
                if run is not None and run.is_open:
                    self._run = run


_runs = _Runs()
