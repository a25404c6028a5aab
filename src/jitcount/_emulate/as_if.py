"""`jitcount.as_if`: what is compiled in a block computes as a target's own program would."""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jitcount._emulate.active_target import activate_target
from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.emulator import Emulated, Emulator
from jitcount._emulate.result import EmulatedProgram, Emulation, by_line
from jitcount._explain.explain import to_compile
from jitcount._jax.substituting import substituted
from jitcount._registry import registry
from jitcount._targets.installed import require_installed
from jitcount._targets.names import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from jitcount._jax.substituting import Compilable
    from jitcount._observe.in_flight import InFlightCompile, LoweredProgram


class as_if:  # noqa: N801 (reads as words where it is used)
    """Compute as a target would: with its compiler's program, and its arithmetic.

    What JAX compiles for the CPU while the block is open, in any thread, is compiled by the
    target's own compiler, without the device; what that made is rewritten for this machine, with
    the roundings of that chip, and runs in place of the program. Outside of the block everything is
    as before: JAX's caches keep the two apart.

    What cannot be carried over runs as on the CPU; `Emulation.programs` says what and why.

    >>> import jitcount
    >>> with jitcount.as_if("tpu:v5e") as emulation:  # doctest: +SKIP
    ...     print(step(parameters, batch))
    2.7429266
    >>> print(emulation)  # doctest: +SKIP
    As if on tpu:v5e: 1 of 1 programs computed as there

    Args:
        target: a name as ``jitcount targets`` lists them: "tpu:v5e", "cuda:h100".
        timeout: how many seconds one compile may take.
        exact_products: compute the target's program without its rounding of products; what is
            left of a difference has another reason.

    Raises:
        ValueError: there is no such target, or a block for another one is open.
        ImportError: the target's compiler is not installed; the text says how to install it.
    """

    def __init__(
        self, target: str, *, timeout: float = 600.0, exact_products: bool = False
    ) -> None:
        named = parse(target)
        require_installed(named)
        emulator = Emulator.for_target(named, timeout)
        self._emulator = replace(emulator, arithmetic=EXACT) if exact_products else emulator
        self._blocks: list[contextlib.ExitStack] = []

    def __enter__(self) -> Emulation:
        with contextlib.ExitStack() as stack:
            found = stack.enter_context(emulated(self._emulator))
            self._blocks.append(stack.pop_all())
        return found

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._blocks.pop().close()


def as_if_or_null(target: str) -> AbstractContextManager[Emulation | None]:
    """`as_if(target)`, or a null context where the target is empty."""
    return as_if(target) if target else contextlib.nullcontext()


@contextlib.contextmanager
def emulated(emulator: Emulator, *, anew: bool = False) -> Iterator[Emulation]:
    """Let an emulator stand in for the compiler, in all threads, until the block ends.

    Programs that an earlier block of the same kind has compiled are used again, unless `anew`.
    """
    block = _Block(emulator)
    number = next(_fresh_numbers) if anew else _number(emulator)
    with activate_target(emulator.target.name), block.begun(number):
        yield block.emulation


# A number in JAX's cache keys keeps what a kind of block compiles apart from all else. Those caches
# outlive every block, so the numbers are the process's: each is used for one kind only, or once.
_FIRST_NUMBER = 1_000_000
_numbers: dict[tuple[str, bool], int] = {}
_changing = threading.RLock()
_fresh_numbers = itertools.count(2 * _FIRST_NUMBER)


def _number(emulator: Emulator) -> int:
    """The number of an emulator's blocks: the same for the same target and arithmetic."""
    key = emulator.target.name, emulator.arithmetic is EXACT
    with _changing:
        return _numbers.setdefault(key, _FIRST_NUMBER + len(_numbers))


class _Block:
    """What an open block does with each compile: three calls, all in the thread that compiles."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._here = threading.local()
        self.emulation = Emulation(emulator)

    @contextlib.contextmanager
    def begun(self, number: int) -> Iterator[None]:
        """Stand in for the compiler, until the block ends."""
        self._emulator.get_ready()
        with (
            registry.consuming_programs(self._take),
            registry.listening(self._note),
            substituted(self._compile, number, self._emulator.target.name),
        ):
            yield

    def _take(self, lowered_program: LoweredProgram) -> None:
        """First: keep the program for the compile that follows in this thread."""
        self._here.lowered_program = lowered_program

    def _compile(self, compilable: Compilable) -> Any:
        """Then: make an executable in place of the compiler's; None where it cannot be emulated."""
        lowered_program = self._here.__dict__.pop("lowered_program", None)
        self._here.emulated = made = self._emulator.emulate(compilable, lowered_program)
        return made.executable

    def _note(self, observation: InFlightCompile) -> None:
        """Last: add what was compiled to the block's programs."""
        made: Emulated | None = self._here.__dict__.pop("emulated", None)
        if made is None or observation.from_disk:
            return
        compiled = to_compile(observation)
        self.emulation.programs.append(
            EmulatedProgram(
                function=compiled.function,
                signature=compiled.signature,
                call_site=compiled.call_site,
                faithful=made.executable is not None,
                reason=made.reason,
                roundings=by_line(made.sites),
                cycles=made.cycles,
            )
        )
