"""What the ear needs to know of its audience, and what it tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from types import FrameType

    from jitcount._observe.in_flight import Observation, Portable


class Profiler(Protocol):
    """What finds out where a compile's time goes; called in the thread that compiles.

    What it gives is handed back to it with the next phase of the same compile.
    """

    def begin_trace(self) -> None:
        """A trace begins, perhaps within another."""

    def end_trace(self) -> Any:
        """The innermost trace has ended."""

    def end_lowering(self, traced: Any, frame: FrameType) -> Any:
        """A program was lowered, whose trace gave `traced`; None where it was not seen."""

    def begin_compile(self, frame: FrameType) -> Any:
        """XLA begins."""

    def end_compile(self, lowered: Any, begun: Any, frame: FrameType) -> Any:
        """XLA has ended: gives the profile, not yet written out."""


class Audience(Protocol):
    """What a `CompileListener` calls, in the thread that compiles, inside the user's call."""

    @property
    def has_guards(self) -> bool:
        """Whether a compile may be refused."""

    @property
    def has_listeners(self) -> bool:
        """Whether what is dear to find out is wanted."""

    @property
    def has_takers(self) -> bool:
        """Whether programs are wanted, to compile them elsewhere too."""

    @property
    def profiler(self) -> Profiler | None:
        """What profiles; None where no profile is wanted."""

    def ask(self, observation: Observation) -> None:
        """Raise, into the user's call, where this compile must not be."""

    def give(self, portable: Portable) -> None:
        """Take a program that is about to be compiled."""

    def tell(self, observation: Observation, *, is_refused: bool) -> None:
        """Hear of a compile that has ended, or that was refused after it had."""
