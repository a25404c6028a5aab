"""Processes that try faults on cases, one for each core."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import tempfile
from typing import TYPE_CHECKING

import jax

from jitcount._show.progress import progress
from jitcount._suite.cases import CASES
from tools.faults import FAULTS
from tools.faults.trying import Tried, try_case

if TYPE_CHECKING:
    from collections.abc import Sequence


def try_cases(cases: Sequence[str], faults: list[str], workers: int) -> list[Tried]:
    """Try the faults on each case, several cases at once.

    The cases at the end of the list are the largest programs, so they start first.
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
    """Set up a worker: compile quickly, and compile only once what no fault changes."""
    jax.config.update("jax_disable_most_optimizations", True)  # noqa: FBT003
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _try(case: str, faults: Sequence[str]) -> Tried:
    (only,) = (one for one in CASES if one.id == case)
    return try_case(only, [fault for fault in FAULTS if fault.id in faults])
