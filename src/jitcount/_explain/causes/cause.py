"""What all causes have in common, and their kinds."""

from __future__ import annotations

import enum
from typing import ClassVar

import msgspec

REDACTED = "<redacted>"
"""Stands in place of a user's value that is not to be told."""


class Kind(enum.StrEnum):
    """The kinds of cause, as users write them."""

    FIRST_CALL = "first-call"
    SHAPE = "shape"
    DTYPE = "dtype"
    WEAK_TYPE = "weak-type"
    STATIC_ARGUMENT = "static-argument"
    CALL_CONVENTION = "call-convention"
    PYTREE = "pytree"
    NEW_FUNCTION = "new-function"
    TRANSFORM = "transform"
    DEVICE = "device"
    SHARDING = "sharding"
    CONFIG = "config"
    JIT_OPTIONS = "jit-options"
    CACHES_CLEARED = "caches-cleared"
    UNKNOWN = "unknown"


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Why a program was compiled, or one of several reasons.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> with jitcount.record() as log:
    ...     for length in 3, 4:
    ...         _ = double(np.zeros(length, np.float32))
    >>> cause = log.compiles[1].causes[0]
    >>> cause.kind, cause.where, cause.before, cause.after
    (<Kind.SHAPE: 'shape'>, 'x', 'float32[3]', 'float32[4]')
    >>> print(cause)
    axis 0 of x went from 3 to 4: float32[3] became float32[4]
    """

    kind: ClassVar[Kind]
    """In a file it is the kind and, where it has several, the form: ``"pytree/keys"``."""

    sentence: ClassVar[str] = ""
    """What it says, with its own facts in braces; `__str__` where that is not enough."""

    remedy: ClassVar[str] = ""
    """The same for its advice."""

    subject: ClassVar[str] = ""
    """The same for what has changed, where a table can say ``subject: before → after``."""

    where: str
    """The place, as the user would write it: ``params['dense']['kernel']``."""

    @property
    def before(self) -> str:
        """What was there in the nearest earlier program."""
        return ""

    @property
    def after(self) -> str:
        """What is there now."""
        return ""

    @property
    def advice(self) -> str:
        """What to do about it."""
        return self.remedy.format(self=self)

    @property
    def changed(self) -> tuple[str, str]:
        """What has changed and how, in short: ``("axis 0 of x", "3 → 4")``; else two blanks."""
        if not self.subject:
            return "", ""
        return self.subject.format(self=self), f"{self.before} → {self.after}"

    def brief(self, between: str = ": ") -> str:
        """The shortest way to say it, for tables and summaries."""
        subject, change = self.changed
        return f"{subject}{between}{change}" if change else str(self)

    def __str__(self) -> str:
        return self.sentence.format(self=self)


class TextCause(Cause, frozen=True):
    """A cause whose two sides are texts: what the user wrote, or JAX's own words."""

    before: str
    after: str
