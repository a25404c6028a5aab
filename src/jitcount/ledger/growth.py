"""Programs that have grown from one ledger to the next: operations are the same in every run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jitcount.explain.compile import Compile
    from jitcount.ledger.environment import Environment
    from jitcount.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Growth:
    """One program that has more operations, or fewer, than in the ledger before.

    >>> print(Growth("train.py", "step", "after", 2113, 8449, "model.py:22 in net"))
    after: step 2,113 → 8,449 operations, at model.py:22 in net
    """

    case: str
    function: str
    ledger: str
    before: int
    after: int
    call_site: str
    """The line that most of it comes from; of ledgers with no profile, that of the call."""

    def __str__(self) -> str:
        change = f"{self.before:,} → {self.after:,} operations"
        return f"{self.ledger}: {self.function} {change}, at {self.call_site}"


def growths(ledgers: Mapping[str, Ledger]) -> list[Growth]:
    """What has changed its size from each ledger to the next, the largest change first.

    Compared are programs of one platform, with the same function and signature, in the same case;
    of several such, one after the other.
    """
    found = []
    for (_, before), (name, after) in itertools.pairwise(ledgers.items()):
        if _is_other(before.environment, after.environment):
            continue
        for case, entry in after.cases.items():
            earlier = before.cases.get(case)
            if earlier is None:
                continue
            known: dict[str, list[Compile]] = {}
            for compiled in earlier.compiles:
                known.setdefault(compiled.call, []).append(compiled)
            for compiled in entry.compiles:
                same = known.get(compiled.call)
                one = same.pop(0) if same else None
                if one and one.operations and one.operations != compiled.operations:
                    found.append(_growth(case, name, one, compiled))
    return sorted(found, key=lambda each: -abs(each.after - each.before))


def _is_other(one: Environment, other: Environment) -> bool:
    """Another JAX, or another platform, lowers the same program to other operations."""
    return (one.kind, one.jax) != (other.kind, other.jax)


def _growth(case: str, ledger: str, before: Compile, after: Compile) -> Growth:
    counts = {(line.file, line.line): line.operations for line in before.lines}
    changes = [
        (abs(line.operations - counts.get((line.file, line.line), 0)), str(line.call_site))
        for line in after.lines
        if line.is_attributed
    ]
    place = max(changes)[1] if changes and before.lines else str(after.call_site)
    return Growth(case, after.function, ledger, before.operations, after.operations, place)
