"""Loops that were unrolled, and what each would cost as a `jax.lax.scan`."""

from __future__ import annotations

from jitcount._observe.call_site import CallSite
from jitcount._stored import Stored


class Measured(Stored, frozen=True):
    """How long one compiler took for a program with a loop as it is, and with it as a scan."""

    compiler: str
    """``"cpu"``, or a target's name."""

    unrolled_s: float = 0.0
    """Processor seconds that the compiler took for the program as it is."""

    scan_s: float = 0.0
    """Processor seconds with this loop as a `jax.lax.scan`."""

    stacked_s: float | None = None
    """Processor seconds with the scan's arguments stacked before the program is called."""

    error: str = ""
    """Why there are no figures."""


class AsScan(Stored, frozen=True):
    """What was measured with a loop, or all loops of a program, as a `jax.lax.scan`."""

    measured: tuple[Measured, ...] = ()
    values: str = ""
    """How the results compare: ``"the same bits"``, ``"within rounding"``."""

    loops: int = 1
    """How many loops were made into scans at once."""

    stacked: tuple[int, ...] = ()
    """For each array that was stacked beforehand, how many arguments it holds."""

    reason: str = ""
    """Why there is no scan, or its figures are not to be used."""


class Loop(Stored, frozen=True):
    """A loop of Python that was unrolled: the same operations, again and again.

    >>> import jax, jax.numpy as jnp, jitcount, numpy as np
    >>> def net(x):
    ...     for _ in range(20):
    ...         x = jnp.sin(x) * 2
    ...     return x
    >>> with jitcount.record(profile=True) as log:
    ...     _ = jax.jit(net)(np.zeros(3, np.float32))
    >>> [(loop.copies, loop.operations) for loop in log.compiles[0].loops]
    [(20, 2)]
    """

    call_site: CallSite
    copies: int
    """How often the program has these operations."""

    operations: int
    """How many operations one copy has."""

    backward: tuple[int, int] | None = None
    """Copies and operations of its backward pass, if that was found too."""

    as_scan: AsScan | None = None
    """With ``--what-if``, what it would cost as a scan."""
