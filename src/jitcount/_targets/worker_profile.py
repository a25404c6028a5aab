"""Profiles that are made in the process of a target's compiler, and travel back as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._hlo.locations import DeepStacks
from jitcount._jax import profiling as _jax
from jitcount._jax.jaxprs import as_written, equations
from jitcount._observe.call_site import CallSite
from jitcount._profile.attribution import profile_of
from jitcount._profile.draft import Draft
from jitcount._profile.profiler import Executable, look_at_executable, look_at_lowered
from jitcount._profile.result import Profile

if TYPE_CHECKING:
    from jitcount._hlo.locations import Frame


class Watching:
    """One compile that is watched, from here on."""

    def __init__(self) -> None:
        self._reason = ""
        try:
            self._session = _jax.watch()
        except _jax.NotWatchedError as error:
            self._reason = str(error)

    def profile(self, bytecode: bytes, executable: Any, compile_s: float, stacks: Any) -> Any:
        """What is known of it, in plain values; a compile must not fail because of it.

        Args:
            bytecode: the program.
            executable: what was made of it.
            compile_s: how long that took.
            stacks: what `plain_stacks` gave, where the program was traced.
        """
        draft, deep = Draft(), _deep(stacks)
        try:
            seen = b"" if self._reason else _jax.watched(self._session)
            look_at_lowered(draft, deep, _jax.carried_text(bytecode))
            look_at_executable(draft, deep, Executable.of(executable, seen))
        except Exception as error:  # noqa: BLE001 (it says so)
            self._reason = self._reason or f"{type(error).__name__}: {error}"
        if self._reason:
            draft.notes.append(self._reason)
        made = profile_of(draft, trace_s=0.0, lower_s=0.0, compile_s=compile_s)
        return msgspec.to_builtins(made, enc_hook=_to_plain)


def plain_stacks(jaxpr: Any) -> Any:
    """The stacks of a program's equations, in plain values: it travels without its jaxpr."""
    frames: dict[Frame, int] = {}
    stacks = as_written(each.stack for each in equations(jaxpr))
    numbers = [[frames.setdefault(each, len(frames)) for each in stack] for stack in stacks]
    return [list(frames), numbers]


def _deep(plain: Any) -> DeepStacks:
    frames, stacks = plain or ((), ())
    found = DeepStacks()
    for stack in stacks:
        found.add(tuple(tuple(frames[number]) for number in stack))
    return found


def profile_from(plain: Any) -> Profile:
    """A profile of its plain values."""
    return msgspec.convert(plain, Profile, dec_hook=_from_plain)


def _to_plain(value: Any) -> Any:
    if isinstance(value, CallSite):
        return [str(value), value.file, value.line, value.function]
    raise NotImplementedError(type(value).__name__)


def _from_plain(form: type, value: Any) -> Any:
    if form is CallSite:
        return CallSite(*value)
    raise NotImplementedError(form.__name__)
