"""A case: a small program, the values it must give and the compiles it must make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount.recorder.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jitcount.recorder.log import CompileLog


@dataclass(frozen=True, slots=True)
class Case:
    """One claim about what JAX compiles, with the program that shows it."""

    id: str
    claim: str
    program: Callable[[], Sequence[jax.Array]]
    values: Sequence[float]
    """What the program gives. All partial sums are representable: equal on every backend."""

    compiles: Mapping[str, int]
    """How often each function is compiled, eager operations too, from empty caches."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case gave on the backend at hand."""

    case: Case
    values: Sequence[np.ndarray]
    log: CompileLog

    def differences(self) -> list[str]:
        """What is not as the case says, a line each; empty when all is."""
        lines = []
        found = [value.tolist() for value in self.values]
        if found != list(self.case.values):
            lines.append(f"values: expected {list(self.case.values)}, found {found}")
        if self.log.counts() != dict(self.case.compiles):
            lines.append(
                f"compiles: expected {dict(self.case.compiles)}, found {self.log.counts()}"
            )
        return lines


def run_case(case: Case) -> Outcome:
    """Run a case from empty caches, so that its counts do not depend on what ran before."""
    jax.clear_caches()
    with record() as log:
        values = case.program()
    return Outcome(case, [np.asarray(value) for value in values], log)
