"""Processes that compute together on one machine, and that no other machine can reach.

JAX can be told where its coordinator listens, but not where the CPU's collectives (Gloo) do: each
process listens at the address that the machine's name stands for. What makes them takes an address,
which JAX leaves out. So it is put in here, for a process of jitcount's own; a release that makes
them in another way listens as it always did.
"""

from __future__ import annotations

import contextlib
import functools

import jax
from jax._src import xla_bridge

LOOPBACK = "127.0.0.1"


def join(port: int, count: int, number: int) -> None:
    """Meet the other processes, over loopback alone; before JAX has started a backend."""
    address = f"{LOOPBACK}:{port}"
    _keep_collectives_here()
    jax.distributed.initialize(address, count, number, coordinator_bind_address=address)


def _keep_collectives_here() -> None:
    for name in ("_jax", "xla_client"):  # the latter up to 0.7
        with contextlib.suppress(AttributeError):
            made_by = getattr(xla_bridge, name)
            made_by = getattr(made_by, "_xla", made_by)
            make = made_by.make_gloo_tcp_collectives
            made_by.make_gloo_tcp_collectives = functools.partial(make, hostname=LOOPBACK)
            return
