"""A fault: one way in which a backend can compute wrongly, and the primitives that it is in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    # Takes the original and an operation's operands and parameters; returns the faulty result.
    Wrongly = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a backend: what it computes instead of some primitives."""

    id: str
    about: str
    family: str
    primitives: tuple[str, ...]
    wrongly: Wrongly
    """A function that JAX can trace; if there is nothing to do wrong, it calls the original."""


@dataclass(frozen=True, slots=True)
class Family:
    """Faults of one kind, as in the table of scores."""

    name: str
    faults: list[Fault] = field(default_factory=list)

    def fault(self, id: str, about: str, *primitives: str) -> Callable[[Wrongly], Wrongly]:  # noqa: A002
        """Add the decorated function to the family, as a fault of these primitives."""

        def taken(wrongly: Wrongly) -> Wrongly:
            self.faults.append(Fault(id, about, self.name, primitives, wrongly))
            return wrongly

        return taken
