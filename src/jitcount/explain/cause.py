"""A cause of a compile, and the sentence that says it."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_CALL = "first-call"
SHAPE = "shape"
DTYPE = "dtype"
WEAK_TYPE = "weak-type"
STATIC_ARGUMENT = "static-argument"
CALL_CONVENTION = "call-convention"
PYTREE = "pytree"
NEW_FUNCTION = "new-function"
DEVICE = "device"
SHARDING = "sharding"
CONFIG = "config"
JIT_OPTIONS = "jit-options"
CACHES_CLEARED = "caches-cleared"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a program was compiled, or one of several reasons.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> with jitcount.record() as log:
    ...     for length in 3, 4:
    ...         _ = double(np.zeros(length, np.float32))
    >>> cause = log.compiles[1].causes[0]
    >>> cause.kind, cause.where, cause.before, cause.after
    ('shape', 'x', 'float32[3]', 'float32[4]')
    >>> print(cause)
    axis 0 of x went from 3 to 4: float32[3] became float32[4]
    """

    kind: str
    where: str
    """The place, as the user would write it: ``params['dense']['kernel']``."""

    before: str
    after: str
    sentence: str
    advice: str
    """What to do about it."""

    def __str__(self) -> str:
        return self.sentence
