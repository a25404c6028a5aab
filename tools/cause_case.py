"""A case of the catalogue: a small program, and the causes of the compiles that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax

from jitcount._record.record import record
from jitcount._registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._explain.compile import Compile

# The causes of one compile, as "kind where" each.
Causes = list[str]


@dataclass(frozen=True, slots=True)
class CauseCase:
    """A recompile whose cause is known."""

    id: str
    program: Callable[[], object]
    function: str
    """Whose compiles are looked at; others are how the program makes its arguments."""

    causes: Sequence[Causes]
    """Of each compile of the function, in order."""

    devices: int = 1
    """How many of them it needs."""


def run_cause_case(case: CauseCase) -> list[Compile]:
    """The compiles of the function, with their causes, from empty caches and an empty history."""
    jax.clear_caches()
    with registry.own_history(), record() as log:
        case.program()
    return [c for c in log.compiles if c.function == case.function]


def causes_found(compiles: Sequence[Compile]) -> list[Causes]:
    """The causes of compiles as a case writes them."""
    return [[f"{cause.kind} {cause.where}".strip() for cause in c.causes] for c in compiles]


def is_right(case: CauseCase, found: Sequence[Causes]) -> bool:
    """Whether exactly the causes of the case were found.

    A new function's place is a line of the catalogue, which the case does not name.
    """
    named = [
        [
            cause.partition(" ")[0] if cause.startswith("new-function ") else cause
            for cause in causes
        ]
        for causes in found
    ]
    return named == list(case.causes)
