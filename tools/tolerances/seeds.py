"""Runs the programs again and again with other data: nothing may be beyond its tolerance.

``python -m tools.tolerances.seeds 200`` runs all programs with 200 seeds, or only those that are
named after the count. It also shows how much of its tolerance each program used at most: the median
of these shares says how wide tolerances are.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount._tolerance.assertions import beyond
from jitcount._tolerance.tolerance import tolerance
from tools.tolerances.programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.tolerances.programs import Program


def main(arguments: list[str] | None = None) -> int:
    """Print each false alarm and the programs' shares; returns 1 if there was an alarm."""
    parser = argparse.ArgumentParser(prog="python -m tools.tolerances.seeds")
    parser.add_argument("count", type=int, help="how many seeds")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="all by default")
    asked = parser.parse_args(arguments)
    alarms, largest = 0, []
    for name in asked.programs or PROGRAMS:
        shares = list(shares_of(PROGRAMS[name], asked.count))
        wrong = [seed for seed, share in enumerate(shares) if share > 1]
        alarms += len(wrong)
        largest.append(max(shares))
        seeds = f"; beyond it with seeds {wrong}" if wrong else ""
        print(f"{name}: {largest[-1]:.2f} of its tolerance{seeds}", flush=True)
    median = statistics.median(largest)
    print(
        f"{alarms} alarms in {asked.count} runs; the median of the largest shares is {median:.2f}"
    )
    return 1 if alarms else 0


def shares_of(make: Callable[[np.random.Generator], Program], count: int) -> Iterator[float]:
    """How much of its tolerance a program uses at most, with one seed after another."""
    jitted = None
    for seed in range(count):
        f, arguments = make(np.random.default_rng(seed))
        jitted = jitted or jax.jit(f)  # all seeds make the same function
        found = map(np.asarray, jax.tree.leaves(jitted(*arguments)))
        expected = tolerance(f, *arguments).results
        pairs = zip(found, expected, strict=True)
        yield max(float(beyond(*pair).max(initial=0.0)) for pair in pairs)


if __name__ == "__main__":
    sys.exit(main())
