"""Puts each fault of a backend under programs like people's: is the result beyond its tolerance?

``python -m tools.tolerances.faults`` tries all faults, or those that are named. A fault that
changes no bit of any program is not counted; one that changes only what rounding may change is.
"""

from __future__ import annotations

import sys
import zlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount._jax.keys import on_host
from jitcount._tolerance.assertions import beyond
from jitcount._tolerance.tolerance import tolerance
from tools.faults import FAULTS
from tools.faults.races import CLOCK, ONCE_IN, TIME
from tools.faults.trying import concerns
from tools.faulty import operations_heard, primitives_replaced
from tools.tolerances.programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.faults.fault import Fault

_SEED = 0


def main(names: Sequence[str]) -> int:
    """Print what each fault does; returns 1 if fewer than 95 % are beyond a tolerance."""
    faults = [fault for fault in FAULTS if not names or fault.id in names]
    changed: dict[str, list[str]] = defaultdict(list)
    caught: dict[str, list[str]] = defaultdict(list)
    for name, make in PROGRAMS.items():
        f, arguments = make(np.random.default_rng(_SEED))
        print(f"{name} ...", file=sys.stderr, flush=True)
        for fault, is_changed, is_beyond in tried(faults, f, arguments):
            if is_changed:
                changed[fault.id].append(name)
            if is_beyond:
                caught[fault.id].append(name)
    for fault in faults:
        if fault.id in changed:
            count = f"{len(caught[fault.id])} of {len(changed[fault.id])} programs"
            missed = "" if caught[fault.id] else f", within all tolerances: {fault.about}"
            print(f"{fault.id}: beyond in {count}{missed}", flush=True)
        else:
            print(f"{fault.id}: changes none", flush=True)
    share = len([one for one in changed if caught[one]]) / max(len(changed), 1)
    print(f"{share:.1%} of the {len(changed)} faults that change a program are beyond a tolerance")
    return int(share < 0.95)


def tried(
    faults: Sequence[Fault], f: Callable[..., Any], arguments: Sequence[Any]
) -> list[tuple[Fault, bool, bool]]:
    """For each fault of an operation of the function: whether bits differ, and by too much."""
    with operations_heard() as operations:
        clean = _results(f, arguments, 1)
    expected = tolerance(f, *arguments).results
    found = []
    for fault in faults:
        if not concerns(fault, operations):
            continue
        CLOCK.start(zlib.crc32(fault.id.encode()) % ONCE_IN)
        with primitives_replaced(dict.fromkeys(fault.primitives, fault.wrongly)):
            wrong = _results(f, arguments, ONCE_IN if fault.family == TIME.name else 1)
        pairs = [pair for run in wrong for pair in zip(run, clean[0], strict=True)]
        is_changed = any(one.tobytes() != other.tobytes() for one, other in pairs)
        is_beyond = any(
            bool((beyond(value, result) > 1).any())
            for run in wrong
            for value, result in zip(run, expected, strict=True)
        )
        found.append((fault, is_changed, is_beyond))
    return found


def _results(f: Callable[..., Any], arguments: Sequence[Any], calls: int) -> list[list[np.ndarray]]:
    jitted = jax.jit(f)
    return [[on_host(leaf) for leaf in jax.tree.leaves(jitted(*arguments))] for _ in range(calls)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
