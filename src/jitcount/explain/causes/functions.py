"""The function itself, its `jax.jit`, JAX's settings and caches."""

from __future__ import annotations

from typing import ClassVar

from jitcount.explain.causes.cause import Cause, Kind, TextCause


class FirstCall(Cause, frozen=True, tag="first-call"):
    """A function that had not been compiled before; `where` is its name."""

    kind: ClassVar = Kind.FIRST_CALL
    transform: str = ""

    @property
    def advice(self) -> str:
        """Nothing."""
        return f"nothing to mend: {self.where} must be compiled once"

    def __str__(self) -> str:
        under = f" under {self.transform}" if self.transform else ""
        return f"first call of {self.where}{under}"


class CachesCleared(Cause, frozen=True, tag="caches-cleared"):
    """The identical program had been compiled; `where` is the function's name."""

    kind: ClassVar = Kind.CACHES_CLEARED

    @property
    def advice(self) -> str:
        """Leave the caches alone."""
        return f"do not call jax.clear_caches() between calls of {self.where}"

    def __str__(self) -> str:
        return (
            f"the identical program of {self.where} had been compiled: caches were cleared, "
            "or the entry was evicted"
        )


class Unknown(Cause, frozen=True, tag="unknown"):
    """What cannot be known, with the reason why."""

    kind: ClassVar = Kind.UNKNOWN
    reason: str

    def __str__(self) -> str:
        return f"the cause is not known: {self.reason}"


class NewFunction(TextCause, frozen=True, tag="new-function"):
    """A function object that is made again and again; `where` is the line that makes it."""

    kind: ClassVar = Kind.NEW_FUNCTION
    name: str
    form: str
    """"lambda", "closure", "partial", "method", "function" or "callable"."""

    @property
    def advice(self) -> str:
        """Make it once."""
        if self.form == "lambda":
            return "hoist the lambda out of the loop: make it once, and its jax.jit once"
        if self.form == "partial":
            return f"make the partial of {self.name} once, or pass what it binds as arguments"
        if self.form == "method":
            return f"keep one object, and one jax.jit of its {self.name}"
        return f"make {self.name} once; what it closes over can be passed as an argument"

    def __str__(self) -> str:
        if self.form == "method":
            return f"{self.name} is a method of another object than before"
        named = {"lambda": "lambda", "partial": f"partial of {self.name}"}.get(self.form, self.name)
        made = f"a new {named} was made at {self.where}"
        return f"{made}: JAX knows functions as objects, not as text"


class JitOption(TextCause, frozen=True, tag="jit-options"):
    """Another `jax.jit` of the same function; `where` is the option."""

    kind: ClassVar = Kind.JIT_OPTIONS

    @property
    def advice(self) -> str:
        """Keep one of them."""
        kept = f"{self.where}={self.before}"
        return f"keep one jax.jit of the function, with {kept}, and call that"

    def __str__(self) -> str:
        changed = f"{self.where}={self.after} instead of {self.before}"
        return f"another jax.jit of the function has {changed}"


class Setting(TextCause, frozen=True, tag="config"):
    """A setting of JAX's that is part of its key; `where` is its name."""

    kind: ClassVar = Kind.CONFIG
    for_a_block: bool
    """A context manager has set it."""

    in_environment: bool
    """A variable of its name is there."""

    @property
    def advice(self) -> str:
        """Says where it comes from, as far as that can be told."""
        origin = "a context manager" if self.for_a_block else "jax.config.update"
        if self.in_environment and not self.for_a_block:
            origin += f" or {self.where.upper()} in the environment"
        return f"{origin} has set it; set it once, before the first call"

    def __str__(self) -> str:
        return f"the setting {self.where} went from {self.before} to {self.after}"
