"""The structure of the arguments changed: keys, lengths, containers, None, what is given at all."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from jitcount._explain.causes.cause import Kind, Precedence, TextCause

NOT_GIVEN = "not given"


class _StructureCause(TextCause, frozen=True):
    """The arguments, or a node among them, hold something else than before."""

    kind: ClassVar = Kind.PYTREE
    precedence: ClassVar = Precedence.STRUCTURE


class Keys(_StructureCause, frozen=True, tag="pytree/keys"):
    """A dict with other keys, or a node of another library's with other children."""

    holds_user_values: ClassVar = False
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def advice(self) -> str:
        """To pass the same keys in every call."""
        changed = ", ".join((*self.gained, *self.lost))
        return f"pass {changed} of {self.where} in every call, or in none"

    def __str__(self) -> str:
        changes = ("gained", self.gained), ("lost", self.lost)
        parts = [f"{verb} {', '.join(keys)}" for verb, keys in changes if keys]
        return f"{self.where} {' and '.join(parts)}"


class Length(_StructureCause, frozen=True, tag="pytree/length"):
    """A list or tuple of another length."""

    holds_user_values: ClassVar = False
    sentence: ClassVar = (
        "{self.where} went from a {self.container} of {self.lengths[0]} to one of {self.lengths[1]}"
    )
    remedy: ClassVar = "pad {self.where} to one length, or to a few (buckets)"
    container: str
    lengths: tuple[int, int]


class StaticPart(_StructureCause, frozen=True, tag="pytree/static"):
    """What a node keeps beside its arrays has changed, and no field of it can be named."""

    holds_user_values: ClassVar = True
    sentence: ClassVar = (
        "the static part of {self.where} changed: {self.before} became {self.after}"
    )
    remedy: ClassVar = (
        "keep what changes in {self.where} in an array field of {self.type_name}; "
        "its static fields are compiled in"
    )
    type_name: str


class Optional(_StructureCause, frozen=True, tag="pytree/optional"):
    """An argument is given in one of the two calls only."""

    holds_user_values: ClassVar = False
    remedy: ClassVar = "give {self.where} in every call, or in none"

    def __str__(self) -> str:
        if self.before == NOT_GIVEN:
            return f"{self.where} was given, and was not before: {self.after}"
        return f"{self.where} was not given, and was before: {self.before}"


class Container(_StructureCause, frozen=True, tag="pytree/container"):
    """A place holds another type of container, or None in place of an array."""

    holds_user_values: ClassVar = False
    subject: ClassVar = "{self.where}"

    @property
    def advice(self) -> str:
        """To pass the same type in every call."""
        if "None" in {self.before, self.after}:
            zeros = "zeros, say, where there is nothing to pass"
            return f"pass an array for {self.where} in every call: {zeros}"
        return f"pass {self.where} as {self.before} in every call"


StructureCause: TypeAlias = Keys | Length | StaticPart | Optional | Container
