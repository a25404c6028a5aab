"""Runs the cases on whatever backend JAX has, and makes the ledger of it."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from jitcount.ledger.environment import environment
from jitcount.ledger.ledger import CaseEntry, Ledger
from jitcount.suite.case import Case, run_case
from jitcount.suite.cases import CASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def chosen(patterns: Sequence[str], cases: Iterable[Case] = CASES) -> list[Case]:
    """The cases whose ids match one of some patterns; without patterns, all.

    >>> [case.id for case in chosen(["sum-1*0", "matmul"])][:3]
    ['sum-10', 'sum-100', 'sum-1000']
    """
    return [
        case
        for case in cases
        if not patterns or any(fnmatch.fnmatchcase(case.id, pattern) for pattern in patterns)
    ]


def run_suite(
    cases: Iterable[Case],
    *,
    timed: bool = False,
    targets: Sequence[str] = (),
    after: Callable[[Case, CaseEntry], None],
) -> Ledger:
    """Run cases one by one; `after` is told what each gave."""
    found = {}
    for case in cases:
        found[case.id] = run_case(case, timed=timed, targets=targets)
        after(case, found[case.id])
    return Ledger(environment=environment(), cases=found)
