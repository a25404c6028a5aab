"""Profiles that are made in the process of a target's compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitcount._hlo.locations import DeepStacks
from jitcount._jax import profiling as _jax
from jitcount._jax.jaxprs import as_written, equations
from jitcount._profile.attribution import profile_of
from jitcount._profile.draft import Draft
from jitcount._profile.profiler import Executable, look_at_executable, look_at_lowered
from jitcount._targets.protocol import Stacks

if TYPE_CHECKING:
    from jitcount._hlo.locations import Frame
    from jitcount._profile.result import Profile


class WorkerProfile:
    """Watches one compile in a compiler's process, from when it is made, for a profile."""

    def __init__(self) -> None:
        self._reason = ""
        try:
            self._session = _jax.watch()
        except _jax.NotWatchedError as error:
            self._reason = str(error)

    def profile(
        self, module: bytes, executable: Any, compile_s: float, stacks: Stacks | None
    ) -> Profile | None:
        """Where the compile's time went; a compile must not fail because of it.

        Args:
            module: the program that was compiled, as bytecode.
            executable: what was made of it.
            compile_s: how long that took.
            stacks: those of its equations, from `encode_stacks`.
        """
        draft = Draft()
        try:
            seen = b"" if self._reason else _jax.watched(self._session)
            deep = _decode_stacks(stacks)
            look_at_lowered(draft, deep, _jax.carried_text(module))
            look_at_executable(draft, deep, Executable.from_xla(executable, seen))
        except Exception as error:  # noqa: BLE001 (it says so)
            self._reason = self._reason or f"{type(error).__name__}: {error}"
        if self._reason:
            draft.notes.append(self._reason)
        return profile_of(draft, trace_s=0.0, lower_s=0.0, compile_s=compile_s)


def encode_stacks(jaxpr: Any) -> Stacks:
    """The stacks of a program's equations, to travel with it: it travels without its jaxpr."""
    frames: dict[Frame, int] = {}
    stacks = as_written(each.stack for each in equations(jaxpr))
    numbers = tuple(
        tuple(frames.setdefault(each, len(frames)) for each in stack) for stack in stacks
    )
    return Stacks(frames=tuple(frames), stacks=numbers)


def _decode_stacks(stacks: Stacks | None) -> DeepStacks:
    found = DeepStacks()
    if stacks is not None:
        for stack in stacks.stacks:
            found.add(tuple(stacks.frames[number] for number in stack))
    return found
