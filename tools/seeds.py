"""Runs the cases again and again with other data of the same kind, to find false alarms.

``python -m tools.seeds 200`` runs all cases whose data are random with 200 seeds, or only the cases
that are named after the count. The cases are made again for each seed, in a few processes that
share the programs they compile, on disk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from jitcount._numerics.arrays import encode
from jitcount._numerics.judging import judge
from jitcount._suite.data import SEED

# Cases that take long and have no random data: their references are constants.
_LEFT_OUT = ("transformer*",)

# How many seeds one process runs, one after another.
_IN_ONE = 25


def main(arguments: list[str] | None = None) -> int:
    """Print each false alarm, and how many there were; returns 1 if there was one."""
    parser = argparse.ArgumentParser(prog="python -m tools.seeds")
    parser.add_argument("count", type=int, help="how many seeds")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of cases, with * and ?")
    parser.add_argument("--from", type=int, default=1, dest="first", help="the first seed")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.alone:
        return _run(range(asked.first, asked.first + asked.count), asked.cases)
    last = asked.first + asked.count
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        env = os.environ | {
            "JAX_COMPILATION_CACHE_DIR": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        codes = pool.map(
            lambda first: _in_a_process(first, min(_IN_ONE, last - first), asked.cases, env),
            range(asked.first, last, _IN_ONE),
        )
        alarms = sum(codes)
    print(f"{alarms} false alarms in {asked.count} runs")
    return 1 if alarms else 0


def _in_a_process(first: int, count: int, cases: list[str], env: dict[str, str]) -> int:
    command = [sys.executable, "-m", "tools.seeds", str(count), *cases]
    command += ["--from", str(first), "--alone"]
    code = subprocess.run(command, check=False, env=env).returncode  # noqa: S603
    if code < 0:  # else it would be subtracted from the alarms
        print(f"seeds from {first} on were ended by signal {-code}", flush=True)
    return code if code >= 0 else 1


def _run(seeds: range, names: list[str]) -> int:
    """Run the cases with some seeds; returns how many results were not as expected."""
    alarms = 0
    for seed in seeds:
        os.environ[SEED] = str(seed)
        for name, lines in _with_fresh_data(names):
            alarms += len(lines)
            for line in lines:
                print(f"seed {seed}, {name}: {line}", flush=True)
    return min(alarms, 99)


def _with_fresh_data(names: list[str]) -> list[tuple[str, list[str]]]:
    """Run the cases with new data; returns what was wrong with each of them."""
    for module in [name for name in sys.modules if name.startswith("jitcount._suite.")]:
        if module.endswith(("_cases", ".cases", ".running")):
            del sys.modules[module]
    from jitcount._suite.running import chosen, known_here  # noqa: PLC0415

    # What this release is known to compile wrongly is no false alarm.
    known = [pattern for miscompile in known_here() for pattern in miscompile.cases]
    left_out = {case.id for case in chosen([*_LEFT_OUT, *known])}
    found = []
    for case in chosen(names):
        if case.id in left_out or case.unsupported():
            continue
        judged = [
            judge(encode(np.asarray(value)), expected)
            for value, expected in zip(case.program(), case.expected(), strict=True)
        ]
        found.append((case.id, [str(verdict) for verdict in judged if not verdict.holds]))
    return found


if __name__ == "__main__":
    sys.exit(main())
