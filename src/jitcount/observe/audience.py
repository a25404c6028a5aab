"""What the ear needs to know of its audience, and what it tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from jitcount.observe.observation import Observation, Portable


class Audience(Protocol):
    """What an `Ear` tells; all of it in the thread that compiles, inside the user's call."""

    @property
    def has_guards(self) -> bool:
        """Whether a compile may be refused."""

    @property
    def has_listeners(self) -> bool:
        """Whether what is dear to find out is wanted."""

    @property
    def has_takers(self) -> bool:
        """Whether programs are wanted, to compile them elsewhere too."""

    def ask(self, observation: Observation) -> None:
        """Raise, into the user's call, where this compile must not be."""

    def give(self, portable: Portable) -> None:
        """Take a program that is about to be compiled."""

    def tell(self, observation: Observation, *, is_refused: bool) -> None:
        """Hear of a compile that has ended, or that was refused after it had."""
