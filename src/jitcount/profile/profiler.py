"""Follows a compile through its phases, and keeps what a profile is written from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._jax.profiling import lowered_jaxpr

if TYPE_CHECKING:
    from types import FrameType

    from jitcount.profile.result import Loop


@dataclass(slots=True)
class Draft:
    """What was found of one compile, not yet written out; it holds no object of JAX's."""

    loops: tuple[Loop, ...] = ()


class Profiler:
    """Called by `observe` in the thread that compiles."""

    def begin_trace(self) -> None:
        """A trace begins, perhaps within another."""

    def end_trace(self) -> Any:
        """The innermost trace has ended."""

    def end_lowering(self, _traced: Any, frame: FrameType) -> Draft:
        """A program was lowered: look at it while JAX holds it."""
        jaxpr = lowered_jaxpr(frame)
        return Draft() if jaxpr is None else Draft(loops=())  # here: find_loops(jaxpr)

    def begin_compile(self, frame: FrameType) -> Any:
        """XLA begins."""

    def end_compile(self, lowered: Draft | None, _begun: Any, _frame: FrameType) -> Draft:
        """XLA has ended."""
        return lowered or Draft()

    def rest(self) -> None:
        """No profile is wanted for now."""
