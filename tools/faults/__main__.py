"""``python -m tools.faults``: puts each fault under each case that it can change.

Exits with 1 if a fault is not noticed, or by too few of the cases that it changes.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time
from typing import TYPE_CHECKING

from jitcount._show.terminal import render
from jitcount._suite.running import chosen
from tools.faults import FAULTS
from tools.faults.score import faults_table, scores
from tools.faults.workers import try_cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.faults.fault import Fault


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the score; returns 1 if it is not good enough."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults")
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help="only these cases; * is a wildcard"
    )
    parser.add_argument("--fault", action="append", help="only this fault; * is a wildcard")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes at once")
    asked = parser.parse_args(arguments)
    faults, cases = _faults(asked.fault), [case.id for case in chosen(asked.cases)]
    if not faults:
        parser.error(f"no fault is called {' or '.join(asked.fault)}")
    if not cases:
        parser.error(f"no case is called {' or '.join(asked.cases)}")
    begin = time.perf_counter()
    tried = try_cases(cases, [fault.id for fault in faults], asked.workers)
    found = scores(faults, tried)
    print(render(faults_table(found, tried, time.perf_counter() - begin)))
    is_good = not any(score.wrong for score in found) and not any(t.false_alarm for t in tried)
    return 0 if is_good else 1


def _faults(patterns: Sequence[str] | None) -> list[Fault]:
    return [
        fault
        for fault in FAULTS
        if not patterns or any(fnmatch.fnmatchcase(fault.id, pattern) for pattern in patterns)
    ]


if __name__ == "__main__":
    sys.exit(main())
