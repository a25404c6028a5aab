"""The function itself, its `jax.jit` and its transformations, JAX's settings and caches."""

from __future__ import annotations

import re
from typing import ClassVar, Self, TypeAlias

from jitcount._explain.causes.cause import Cause, Kind, Precedence, TextCause

_SIZE = re.compile(r"\bof size (\d+)")

_BY_IDENTITY = "JAX knows functions as objects, not as text"


class FirstCall(Cause, frozen=True, tag="first-call"):
    """A function that had not been compiled before; `where` is its name."""

    kind: ClassVar = Kind.FIRST_CALL
    precedence: ClassVar = Precedence.NO_DIFFERENCE
    holds_user_values: ClassVar = False
    remedy: ClassVar = "nothing to mend: {self.where} must be compiled once"
    transform: str = ""

    def __str__(self) -> str:
        under = f" under {self.transform}" if self.transform else ""
        return f"first call of {self.where}{under}"


class CachesCleared(Cause, frozen=True, tag="caches-cleared"):
    """The identical program had been compiled; `where` is the function's name."""

    kind: ClassVar = Kind.CACHES_CLEARED
    precedence: ClassVar = Precedence.NO_DIFFERENCE
    holds_user_values: ClassVar = False
    sentence: ClassVar = (
        "the identical program of {self.where} had been compiled: caches were cleared, "
        "or the entry was evicted"
    )
    remedy: ClassVar = "do not call jax.clear_caches() between calls of {self.where}"


class Unknown(Cause, frozen=True, tag="unknown"):
    """A cause that cannot be known, with the reason why."""

    kind: ClassVar = Kind.UNKNOWN
    precedence: ClassVar = Precedence.NO_DIFFERENCE
    holds_user_values: ClassVar = False
    sentence: ClassVar = "the cause is not known: {self.reason}"
    reason: str


class NewFunction(TextCause, frozen=True, tag="new-function"):
    """A function object that is made again and again; `where` is the line that makes it."""

    kind: ClassVar = Kind.NEW_FUNCTION
    precedence: ClassVar = Precedence.FUNCTION
    holds_user_values: ClassVar = False
    name: str
    form: str
    """What made it, as in `Function.kind`: ``"lambda"``, ``"partial"``, ``"method"``."""

    around: str = ""
    """What was made anew around the function, where that is the same: "value_and_grad"."""

    is_librarys: bool = False
    """Whether the line is a library's."""

    operation: str = ""
    """What it was traced into outside of jit, as a body or a branch: "scan"."""

    @property
    def advice(self) -> str:
        """To make the function once."""
        if self.is_librarys and self.operation:
            return (
                f"call it inside of a jitted function: the library makes {self.name} at each call"
            )
        if self.is_librarys and self.form == "method":
            return (
                f"make the object that has this {self.name} once, before the loop, "
                "or call it inside of a jitted function"
            )
        if self.is_librarys:
            return (
                f"keep the {self.name} that the library made, and one jax.jit of it; "
                "if the library jits it itself, call it inside of a jitted function"
            )
        if self.operation:
            return f"call {self.operation} inside of a jitted function, or make {self._named} once"
        if self.around:
            return f"make the jax.jit of {self.name} once, outside of the loop"
        remedies = {
            "lambda": "make the lambda once, and its jax.jit once; "
            "pass what it reads, if that changes, as an argument",
            "partial": f"make the partial of {self.name} once, or pass what it binds as arguments",
            "method": f"keep one object, and one jax.jit of its {self.name}",
            "callable": f"keep one {self.name}, and one jax.jit of it",
            "traced": f"call {self.where} inside of a jitted function",
        }
        default = f"make {self.name} once; what it closes over can be passed as an argument"
        return remedies.get(self.form, default)

    @property
    def is_fine_if_few(self) -> bool:
        """Whether a library makes one for each of the user's models or solvers."""
        return self.is_librarys

    def __str__(self) -> str:
        if self.form == "method":
            return f"{self.name} is a method of another object than before"
        if self.form == "callable":
            return f"jax.jit was given another {self.name} than before: {_BY_IDENTITY}"
        if self.form == "traced":
            return f"{self.name} was traced anew: outside of jit, JAX may do that at each call"
        if self.around:
            return f"jax.jit was given a new {self.around} of {self.name}: {_BY_IDENTITY}"
        named = self._named.removeprefix("the ")
        return f"a new {named} was made at {self.where}: {_BY_IDENTITY}"

    @property
    def _named(self) -> str:
        named = {"lambda": "the lambda", "partial": f"the partial of {self.name}"}
        return named.get(self.form, self.name)


class Transform(TextCause, frozen=True, tag="transform"):
    """The same function under another transformation; `where` is its name."""

    kind: ClassVar = Kind.TRANSFORM
    precedence: ClassVar = Precedence.TRANSFORM
    holds_user_values: ClassVar = False
    sentence: ClassVar = "{self.where} is compiled {self.after}, and was {self.before_in_short}"
    remedy: ClassVar = (
        "each way of transforming {self.where} has a program of its own: keep to a few of them"
    )

    @property
    def is_fine_if_few(self) -> bool:
        """A gradient is another program than what it is the gradient of."""
        return True

    @property
    def before_in_short(self) -> str:
        """The earlier transformation; only the size, where nothing else differs."""
        old, new = (_SIZE.split(text) for text in (self.before, self.after))
        sizes = [o for o, n in zip(old[1::2], new[1::2], strict=False) if o != n]
        if old[::2] == new[::2] and len(sizes) == 1 and len(old) > 1:
            return f"with a size of {sizes[0]}"
        return self.before


class JitOption(TextCause, frozen=True, tag="jit-options"):
    """Another `jax.jit` of the same function; `where` is the option."""

    kind: ClassVar = Kind.JIT_OPTIONS
    precedence: ClassVar = Precedence.OPTIONS
    holds_user_values: ClassVar = True
    sentence: ClassVar = (
        "another jax.jit of the function has {self.where}={self.after} instead of {self.before}"
    )
    remedy: ClassVar = (
        "keep one jax.jit of the function, with {self.where}={self.before}, and call that"
    )

    def redacted(self) -> Self:
        """The same cause without the compiler's options; the other options are no user's values."""
        return super().redacted() if self.where == "compiler_options" else self


class Setting(TextCause, frozen=True, tag="config"):
    """A setting of JAX's that is part of its key; `where` is its name."""

    kind: ClassVar = Kind.CONFIG
    precedence: ClassVar = Precedence.SETTINGS
    holds_user_values: ClassVar = False
    subject: ClassVar = "setting {self.where}"
    sentence: ClassVar = "the setting {self.where} went from {self.before} to {self.after}"
    for_a_block: bool
    """Whether a context manager has set it."""

    in_environment: bool
    """Whether the environment has a variable of its name."""

    @property
    def advice(self) -> str:
        """To set it once; says what has set it, as far as that is known."""
        origin = "a context manager" if self.for_a_block else "jax.config.update"
        if self.in_environment and not self.for_a_block:
            origin += f" or {self.where.upper()} in the environment"
        return f"{origin} has set it; set it once, before the first call"


FunctionCause: TypeAlias = (
    FirstCall | CachesCleared | Unknown | NewFunction | Transform | JitOption | Setting
)
