"""Runs the suite in several processes that compute together over loopback (`jax.distributed`)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from jitcount._jax.distributed import LOOPBACK, join

if TYPE_CHECKING:
    from collections.abc import Sequence

# Set in each process: its number, how many there are, and the port where they meet.
_VARIABLE = "JITCOUNT_SUITE_PROCESS"


def run_in_processes(count: int, arguments: Sequence[str]) -> int:
    """Run ``jitcount suite`` in `count` processes; the first one prints and writes the ledger.

    Returns:
        The worst of their exit codes.
    """
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    processes = []
    try:
        for number in range(count):
            quiet = None if number == 0 else subprocess.DEVNULL
            processes.append(
                subprocess.Popen(  # noqa: S603
                    [sys.executable, "-m", "jitcount", "suite", *arguments],
                    env=os.environ | {_VARIABLE: f"{number}/{count}@{port}"},
                    stdin=subprocess.DEVNULL,
                    stdout=quiet,
                    stderr=quiet,
                )
            )
        return max(abs(process.wait()) for process in processes)
    finally:
        for process in processes:
            process.kill()


def join_the_others() -> bool:
    """Connect to the other processes, if any; returns whether this is the one that prints."""
    place = os.environ.get(_VARIABLE)
    if place is None:
        return True
    number, _, rest = place.partition("/")
    count, _, port = rest.partition("@")
    join(int(port), int(count), int(number))
    return number == "0"
