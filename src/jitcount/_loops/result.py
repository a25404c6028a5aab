"""Loops that were unrolled, and what each would cost as a `jax.lax.scan`."""

from __future__ import annotations

from jitcount._observe.call_site import CallSite
from jitcount._stored import Stored


class Measured(Stored, frozen=True):
    """A loop for one compiler, as it is and as a scan."""

    compiler: str
    """``"cpu"``, or a target's name."""

    unrolled_s: float = 0.0
    """Seconds of the processor that its compiler took for the program as it is."""

    scan_s: float = 0.0
    """The same, with this loop as a `jax.lax.scan`."""

    stacked_s: float | None = None
    """The same, with the arguments that the scan stacks stacked before the program is called."""

    error: str = ""
    """Why there is no figure."""


class AsScan(Stored, frozen=True):
    """What came of it when a loop was rolled up into a `jax.lax.scan`, or all of a program's."""

    measured: tuple[Measured, ...] = ()
    values: str = ""
    """How its results compare: ``"the same bits"``, ``"within rounding"``."""

    loops: int = 1
    """How many were rolled up at once."""

    stacked: tuple[int, ...] = ()
    """How many arguments each array holds that was stacked beforehand."""

    reason: str = ""
    """Why it was not rolled up, or its figures are not to be used."""


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
    """How often they are there."""

    operations: int
    """How many they are, in one copy."""

    backward: tuple[int, int] | None = None
    """Copies and operations of its backward pass, where that was found too."""

    as_scan: AsScan | None = None
    """With ``--what-if``, what a scan would change."""
