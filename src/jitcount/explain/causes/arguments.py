"""A static argument changed, or the way an argument is passed."""

from __future__ import annotations

from typing import ClassVar

from jitcount.explain.causes.cause import Cause, Kind, TextCause


class StaticValue(TextCause, frozen=True, tag="static-argument/value"):
    """A static argument has another value."""

    kind: ClassVar = Kind.STATIC_ARGUMENT

    @property
    def advice(self) -> str:
        """Trace it instead."""
        place = self.where
        return f"pass {place} as an array if the program can do with one for all values of {place}"

    def __str__(self) -> str:
        return f"static argument {self.where} went from {self.before} to {self.after}"


class NoEquality(TextCause, frozen=True, tag="static-argument/object"):
    """A static object that compares by identity."""

    kind: ClassVar = Kind.STATIC_ARGUMENT
    type_name: str

    @property
    def advice(self) -> str:
        """Say what makes two of them equal."""
        return (
            f"give {self.type_name} __eq__ and __hash__ (a frozen dataclass has both), "
            f"or pass the same object as {self.where}"
        )

    def __str__(self) -> str:
        return (
            f"static argument {self.where} is another {self.type_name} object, "
            f"and {self.type_name} has no __eq__ to say that they are equal"
        )


class StaticFunction(TextCause, frozen=True, tag="static-argument/function"):
    """A function that is passed as a static argument."""

    kind: ClassVar = Kind.STATIC_ARGUMENT

    @property
    def advice(self) -> str:
        """Make it once."""
        return f"make the function that is passed as {self.where} once, outside of the loop"

    def __str__(self) -> str:
        if self.before == self.after:
            return f"static argument {self.where} is a new function object: {self.after}"
        return f"static argument {self.where} went from {self.before} to {self.after}"


class Parameter(TextCause, frozen=True, tag="static-argument/parameter"):
    """An operation outside of jit has something else compiled in."""

    kind: ClassVar = Kind.STATIC_ARGUMENT

    @property
    def advice(self) -> str:
        """Jit it."""
        return f"put the operation into a jitted function, or keep its {self.where} the same"

    def __str__(self) -> str:
        return f"parameter {self.where} went from {self.before} to {self.after}"


class CallConvention(Cause, frozen=True, tag="call-convention"):
    """By keyword instead of by position, or the other way round."""

    kind: ClassVar = Kind.CALL_CONVENTION
    by_keyword: bool
    """Now; before it was the other way round."""

    @property
    def before(self) -> str:
        """How it was passed."""
        return "by position" if self.by_keyword else "by keyword"

    @property
    def after(self) -> str:
        """How it was passed."""
        return "by keyword" if self.by_keyword else "by position"

    @property
    def advice(self) -> str:
        """Choose one."""
        return f"pass {self.where} {self.before} in every call"

    def __str__(self) -> str:
        return f"{self.where} was passed {self.after} instead of {self.before}"
