"""`Caller`: one of the user's lines on the way to a compile; it can be read without JAX."""

from __future__ import annotations

from jitcount._observe.call_site import CallSite
from jitcount._stored import Stored

NEEDS_VALUES = {
    "it branches on a value",
    "it makes a NumPy array",
    "it reads a value",
    "its shapes depend on values",
}
"""The reasons why a line that computes with arrays fails under a jit, as `why_not` has them."""


class Caller(Stored, frozen=True):
    """One of the user's lines on the way to a compile, and what it calls.

    >>> import jax, jitcount, numpy as np
    >>> def double(x):
    ...     return jax.numpy.multiply(2, x)
    >>> with jitcount.record() as log:
    ...     _ = double(np.zeros(77, np.float32))
    >>> [caller.calls for caller in log.compiles[0].callers]
    ['double', 'jax.numpy.multiply']
    """

    site: CallSite
    """The line: ``"train.py:42 in main"``."""

    calls: str = ""
    """What it calls, as it is written there: ``"model.init"``; empty where that is not known."""

    jitted: str = ""
    """That call under a jit: ``"jax.jit(model.init)(...)"``; empty where it cannot be jitted."""

    why_not: str = ""
    """Why it cannot be jitted, in a few words: ``"it loops"``."""

    imports: str = ""
    """The module that is imported there."""

    in_loop: bool = False
    """Whether the call stands in a loop of the same function."""

    library: str = ""
    """The package that is called there: ``"flax"``; empty for JAX and for the user's own."""
