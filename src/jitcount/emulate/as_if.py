"""`jitcount.as_if`: what is compiled in a block computes as a target's own program would."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from jitcount._jax.substituting import substituted
from jitcount.emulate.emulating import Emulated, Emulator
from jitcount.emulate.result import EmulatedProgram, Emulation, by_line
from jitcount.explain.explaining import explained
from jitcount.explain.hub import hub
from jitcount.targets.installed import require_installed
from jitcount.targets.names import TARGETS, parse

if TYPE_CHECKING:
    from types import TracebackType

    from jitcount._jax.substituting import Compilable
    from jitcount.observe.observation import Observation, Portable
    from jitcount.targets.names import Target

# Tells in JAX's keys what is compiled as if for a target; the target's number follows.
_FIRST_NUMBER = 1_000_000


class as_if:  # noqa: N801 (reads as words where it is used)
    """Compute as a target would: with its compiler's program, and its arithmetic.

    What JAX compiles for the CPU while the block is open, in any thread, is compiled by the target's
    own compiler, without the device; what that made is rewritten for this machine, with the roundings
    of that chip, and runs in place of the program. Outside of the block everything is as before: JAX's
    caches keep the two apart.

    What cannot be carried over runs as on the CPU; `Emulation.programs` says what and why.

    Args:
        target: a name as ``jitcount targets`` lists them: "tpu:v5e", "cuda:h100".
        timeout: how many seconds one compile may take.

    Raises:
        ValueError: there is no such target, or a block for another one is open.
        ImportError: the target's compiler is not installed; the text says how to install it.
    """

    _open: as_if | None = None
    _changing = threading.RLock()

    def __init__(self, target: str, *, timeout: float = 600.0) -> None:
        self._target = parse(target)
        require_installed(self._target)
        self._timeout = timeout
        self._blocks: list[contextlib.ExitStack] = []

    def __enter__(self) -> Emulation:
        with _changing:
            outer = _open[-1] if _open else None
            if outer is not None and outer.name != self._target.name:
                raise ValueError(
                    f"as_if({self._target.name!r}) inside as_if({outer.name!r}): a program "
                    "computes as one target at a time; end the other block first"
                )
            block = _Block(Emulator.of(self._target, self._timeout))
            with contextlib.ExitStack() as stack:
                _open.append(self._target)
                stack.callback(_open.remove, self._target)
                block.begin(stack, _number(self._target))
                self._blocks.append(stack.pop_all())
            return block.emulation

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _changing:
            self._blocks.pop().close()


_open: list[Target] = []
_changing = threading.RLock()


def _number(target: Target) -> int:
    """One for each chip, however many of it there are."""
    numbers = {known.chip.name: at for at, known in enumerate(TARGETS)}
    return _FIRST_NUMBER + numbers[target.chip.name]


class _Block:
    """What an open block does with each compile: three calls, all in the thread that compiles."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._here = threading.local()
        self.emulation = Emulation(emulator.target.name)

    def begin(self, stack: contextlib.ExitStack, number: int) -> None:
        """Stand in for the compiler, until the stack is closed."""
        self._emulator.get_ready()
        take, note = self._take, self._note  # one object each: a bound method is a new one each time
        hub.supply(take)
        stack.callback(hub.stop_supplying, take)
        hub.listen(note)
        stack.callback(hub.forget, note)
        stack.enter_context(substituted(self._compile, number))

    def _take(self, portable: Portable) -> None:
        """First: the program, before it is compiled."""
        self._here.portable = portable

    def _compile(self, compilable: Compilable) -> Any:
        """Then: an executable, in place of the compiler's; None where there is none."""
        portable = self._here.__dict__.pop("portable", None)
        self._here.emulated = made = self._emulator.emulate(compilable, portable)
        return made.executable

    def _note(self, observation: Observation) -> None:
        """Last: what was compiled."""
        made: Emulated | None = self._here.__dict__.pop("emulated", None)
        if made is None or observation.from_disk:
            return
        compiled = explained(observation)
        self.emulation.programs.append(
            EmulatedProgram(
                function=compiled.function,
                signature=compiled.signature,
                call_site=compiled.call_site,
                faithful=made.executable is not None,
                reason=made.reason,
                roundings=by_line(made.sites),
            )
        )
