"""A static argument or a static field changed, or the way an argument is passed."""

from __future__ import annotations

from typing import ClassVar, Self, TypeAlias

import msgspec

from jitcount._explain.causes.cause import Cause, Kind, Precedence, TextCause

_QUOTES = ("'", '"')


def _is_whole(text: str) -> bool:
    return text in {"True", "False"} or text.removeprefix("-").isdigit()


class _StaticCause(TextCause, frozen=True):
    """Something that is compiled in has changed; what it was are values of the user's."""

    kind: ClassVar = Kind.STATIC_ARGUMENT
    precedence: ClassVar = Precedence.STATIC
    holds_user_values: ClassVar = True


class StaticValue(_StaticCause, frozen=True, tag="static-argument/value"):
    """A static argument has another value, or a field of it has."""

    subject: ClassVar = "static argument {self.where}"
    is_number: bool = False

    @property
    def advice(self) -> str:
        """To pass it as an array, if that can be."""
        place = self.where
        if self.is_number:
            return (
                f"pass {place} as an array if it is only computed with; "
                "if it gives a shape or chooses a branch, keep to a few values"
            )
        return f"each value of {place} has a program of its own: keep to a few of them"

    @property
    def is_fine_if_few(self) -> bool:
        """Whether it chooses what is computed, or a shape; a fraction is only computed with."""
        is_whole = all(map(_is_whole, (self.before, self.after)))
        return is_whole or not self.is_number


class Identity(_StaticCause, frozen=True):
    """A static argument that is known by its identity: another one may look just the same."""

    subject: ClassVar = "static argument {self.where}"
    sentence_if_alike: ClassVar = ""
    remedy_if_alike: ClassVar = ""

    @property
    def _is_alike(self) -> bool:
        return self.before == self.after

    @property
    def advice(self) -> str:
        """What to do about two objects that differ, or about two that look the same."""
        return (self.remedy_if_alike if self._is_alike else self.remedy).format(self=self)

    @property
    def changed(self) -> tuple[str, str]:
        """What the two objects are; blanks for two that look the same."""
        return ("", "") if self._is_alike else super().changed

    def __str__(self) -> str:
        return self.sentence_if_alike.format(self=self) if self._is_alike else super().__str__()


class NoEquality(Identity, frozen=True, tag="static-argument/object"):
    """A static argument is another object of a class without ``__eq__``."""

    remedy: ClassVar = (
        "each {self.type_name} object has a program of its own: keep to a few of them, "
        "or pass what differs as an array"
    )
    sentence_if_alike: ClassVar = (
        "static argument {self.where} is another {self.type_name} object, "
        "and {self.type_name} has no __eq__ to say that they are equal"
    )
    remedy_if_alike: ClassVar = (
        "give {self.type_name} __eq__ and __hash__ (a frozen dataclass has both), "
        "or pass the same object as {self.where}"
    )
    type_name: str


class StaticFunction(Identity, frozen=True, tag="static-argument/function"):
    """Another function was passed as a static argument, or in one."""

    remedy: ClassVar = (
        "each function for {self.where} has a program of its own: keep to a few of them"
    )
    sentence_if_alike: ClassVar = (
        "static argument {self.where} is a new function object: {self.after}"
    )
    remedy_if_alike: ClassVar = (
        "make the function that is passed as {self.where} once; "
        "pass what it reads, if that changes, as an argument"
    )

    @property
    def is_fine_if_few(self) -> bool:
        """Whether two functions were passed, and not one that is made anew each time."""
        return not self._is_alike

    def redacted(self) -> Self:
        """The same cause without the user's values; not of the line that made both."""
        hidden = super().redacted()
        if not self._is_alike:
            return hidden
        return msgspec.structs.replace(hidden, before=self.before, after=self.after)


class StaticField(_StaticCause, frozen=True, tag="static-argument/field"):
    """What a node of a pytree keeps beside its arrays: a field that is compiled in."""

    subject: ClassVar = "{self.where}"
    remedy: ClassVar = (
        "{self.where} is compiled in: keep it the same, or keep what changes in an array field of "
        "{self.type_name}"
    )
    type_name: str

    @property
    def is_fine_if_few(self) -> bool:
        """Whether it chooses what is computed, as a text or a bool does."""
        is_text = self.before[:1] in _QUOTES and self.after[:1] in _QUOTES
        return is_text or {self.before, self.after} == {"True", "False"}


class StaticObject(_StaticCause, frozen=True, tag="static-argument/field-object"):
    """A static field of a pytree's node that holds something that is known by its identity."""

    sentence: ClassVar = "{self.where} is another object"
    remedy: ClassVar = (
        "make what {self.where} holds once, and give the same to every {self.type_name}"
    )
    type_name: str


class Parameter(_StaticCause, frozen=True, tag="static-argument/parameter"):
    """An operation outside of jit has something else compiled in."""

    subject: ClassVar = "parameter {self.where}"
    remedy: ClassVar = "put the operation into a jitted function, or keep its {self.where} the same"


class CallConvention(Cause, frozen=True, tag="call-convention"):
    """An argument is passed by keyword instead of by position, or the other way round."""

    kind: ClassVar = Kind.CALL_CONVENTION
    precedence: ClassVar = Precedence.STRUCTURE
    holds_user_values: ClassVar = False
    sentence: ClassVar = "{self.where} was passed {self.after} instead of {self.before}"
    remedy: ClassVar = (
        "pass {self.where} {self.before} in every call, or {self.after} in every call"
    )
    by_keyword: bool
    """Whether it is passed by keyword now; before it was the other way round."""

    @property
    def before(self) -> str:
        """How the argument was passed in the earlier program."""
        return "by position" if self.by_keyword else "by keyword"

    @property
    def after(self) -> str:
        """How the argument is passed now."""
        return "by keyword" if self.by_keyword else "by position"


ArgumentCause: TypeAlias = (
    StaticValue
    | NoEquality
    | StaticFunction
    | StaticField
    | StaticObject
    | Parameter
    | CallConvention
)
