"""Compiles for targets by hand, as JAX's documentation shows it, and times all processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from jitcount._targets import process
from jitcount._targets.names import parse, topology

if TYPE_CHECKING:
    from collections.abc import Callable


def as_their_process() -> None:
    """Set the environment of this process as the compilers' processes have it."""
    wanted = ("TPU_", "ALLOW_", "TF_CPP")
    os.environ.update({k: v for k, v in process.environment().items() if k.startswith(wanted)})


def compile_for(name: str, fun: Callable[..., Any], *arguments: Any) -> None:
    """Compile one program for a target, ahead of time and in this process."""
    target = parse(name)
    devices = topologies.get_topology_desc(**topology(target, 1)).devices
    sharding = SingleDeviceSharding(devices[0])
    avals = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), arguments
    )
    jitted = fun if hasattr(fun, "trace") else jax.jit(fun)
    jitted.trace(*avals).lower(lowering_platforms=(target.platform,)).compile()


def seconds_with_children(call: Callable[[], object]) -> float:
    """Processor time of a call, in this process and the compilers that it has started."""
    begin = _seconds_of_all()
    call()
    return _seconds_of_all() - begin


def _seconds_of_all() -> float:
    """Processor time so far; that of running children comes from /proc (compilers need Linux)."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # gone in between
            _, parent, *rest = stat.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, rest[9:11])) if int(parent) == os.getpid() else 0
    times = os.times()
    here = times.user + times.system + times.children_user + times.children_system
    return here + ticks / os.sysconf("SC_CLK_TCK")
