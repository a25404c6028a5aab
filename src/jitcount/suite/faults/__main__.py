"""``python -m jitcount.suite.faults``: put each fault under each case that it can touch.

Ends with 1 where a fault is not noticed, or by too few of the cases that it changes.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import multiprocessing
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import jax

from jitcount.show.progress import progress
from jitcount.show.terminal import render
from jitcount.suite.cases import CASES
from jitcount.suite.faults import FAULTS
from jitcount.suite.faults.score import faults_table, scores
from jitcount.suite.faults.trying import Tried, try_case
from jitcount.suite.running import chosen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount.suite.faults.fault import Fault


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the score; 1 where it is not good enough."""
    parser = argparse.ArgumentParser(prog="python -m jitcount.suite.faults")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="only these cases; * is a wildcard")
    parser.add_argument("--fault", action="append", help="only this fault; * is a wildcard")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes at once")
    asked = parser.parse_args(arguments)
    faults, cases = _faults(asked.fault), [case.id for case in chosen(asked.cases)]
    if not faults:
        parser.error(f"no fault is called {' or '.join(asked.fault)}")
    if not cases:
        parser.error(f"no case is called {' or '.join(asked.cases)}")
    begin = time.perf_counter()
    tried = _in_processes(cases, [fault.id for fault in faults], asked.workers)
    found = scores(faults, tried)
    print(render(faults_table(found, tried, time.perf_counter() - begin)))  # noqa: T201
    is_good = not any(score.wrong for score in found) and not any(t.false_alarm for t in tried)
    return 0 if is_good else 1


def _faults(patterns: Sequence[str] | None) -> list[Fault]:
    return [
        fault
        for fault in FAULTS
        if not patterns or any(fnmatch.fnmatchcase(fault.id, pattern) for pattern in patterns)
    ]


def _in_processes(cases: Sequence[str], faults: list[str], workers: int) -> list[Tried]:
    """Try the faults on each case, several cases at once.

    Those at the end of the list are the largest programs: they are begun first.
    """
    with (
        tempfile.TemporaryDirectory() as cache,
        progress("faults", len(cases)) as step,
        concurrent.futures.ProcessPoolExecutor(
            workers,
            multiprocessing.get_context("spawn"),
            initializer=_prepare,
            initargs=(cache,),
        ) as pool,
    ):
        waiting = {pool.submit(_try, case, faults): case for case in reversed(cases)}
        found = {}
        for done in concurrent.futures.as_completed(waiting):
            found[waiting[done]] = done.result()
            step(waiting[done])
    return [found[case] for case in cases]


def _prepare(cache: str) -> None:
    """In a process of its own: compile quickly, and what a fault does not touch only once."""
    jax.config.update("jax_disable_most_optimizations", True)  # noqa: FBT003
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _try(case: str, faults: Sequence[str]) -> Tried:
    (only,) = (one for one in CASES if one.id == case)
    return try_case(only, [fault for fault in FAULTS if fault.id in faults])


if __name__ == "__main__":
    sys.exit(main())
