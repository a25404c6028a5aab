"""What all causes have in common, and their kinds."""

from __future__ import annotations

import enum
import os
import re
from typing import TYPE_CHECKING, ClassVar, Self

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

REDACTED = "<redacted>"
"""Stands in place of a value of the user's that is not to be shown."""


def is_redaction_requested() -> bool:
    """Whether `JITCOUNT_REDACT` in the environment is set, and not to a word for "no".

    It holds for all that is written out, errors of guards too. Left out are the texts of static
    arguments and static fields, the keys of dicts in them, the parameters of eager operations and
    the compiler's options: see `Cause.redacted`. Names stay, and so do the places in arguments that
    are not static.
    """
    return os.environ.get("JITCOUNT_REDACT", "").lower() not in {"", "0", "false", "no", "off"}


# A key that is no number, with all that follows: it may hold brackets of its own.
_KEY = re.compile(r"\[(?!\d+\]).*", re.DOTALL)


# So many places are written out; more are counted.
_MOST_PLACES = 4

# What the sentences say of one place, and of several.
_PLURALS = [
    (re.compile(r"\bwas\b"), "were"),
    (re.compile(r"\bstatic argument\b"), "static arguments"),
    (re.compile(r"\bis another (.*?object)\b"), r"are other \1s"),
    (re.compile(r"\bis a new (.*?object)\b"), r"are new \1s"),
]


def in_a_list(places: Sequence[str], last: str = " and ") -> str:
    """Several places, as people list them.

    >>> in_a_list(["x", "y", "mask"]), in_a_list(["x", "y"], ", ")
    ('x, y and mask', 'x, y')
    """
    if len(places) > _MOST_PLACES:
        more = len(places) - _MOST_PLACES + 1
        return f"{', '.join(places[: _MOST_PLACES - 1])} and {more} more"
    return last.join(filter(None, [", ".join(places[:-1]), places[-1]]))


class Kind(enum.StrEnum):
    """The kinds of cause; each is a text, and can be compared with one.

    >>> import jax, jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
    >>> kind = log.compiles[0].causes[0].kind
    >>> kind is jitcount.Kind.FIRST_CALL, kind == "first-call"
    (True, True)
    """

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

    @property
    def code(self) -> str:
        """Its code, the same in every output and release: ``"JC101"``."""
        return _CODES[self]

    @property
    def in_words(self) -> str:
        """The kind in words: ``"static argument"``."""
        return self.value.replace("-", " ")


_CODES = {
    Kind.FIRST_CALL: "JC001",
    Kind.SHAPE: "JC101",
    Kind.DTYPE: "JC102",
    Kind.WEAK_TYPE: "JC103",
    Kind.DEVICE: "JC104",
    Kind.SHARDING: "JC105",
    Kind.STATIC_ARGUMENT: "JC201",
    Kind.CALL_CONVENTION: "JC202",
    Kind.PYTREE: "JC203",
    Kind.NEW_FUNCTION: "JC301",
    Kind.TRANSFORM: "JC302",
    Kind.JIT_OPTIONS: "JC303",
    Kind.CONFIG: "JC401",
    Kind.CACHES_CLEARED: "JC402",
    Kind.UNKNOWN: "JC901",
}


class Precedence(enum.IntEnum):
    """What decides first which of several earlier programs is the nearest; lower is earlier.

    One difference of a level makes two programs farther apart than all differences of the levels
    below it together. `diff.distance` and the weights of `history` both follow this order.
    """

    FUNCTION = enum.auto()
    TRANSFORM = enum.auto()
    STATIC = enum.auto()
    OPTIONS = enum.auto()
    SETTINGS = enum.auto()
    STRUCTURE = enum.auto()
    ARRAY = enum.auto()
    NO_DIFFERENCE = enum.auto()
    """The cause names nothing that differs: a first call, for example."""


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

    precedence: ClassVar[Precedence]
    """How far apart this difference puts two programs."""

    holds_user_values: ClassVar[bool]
    """Whether `before`, `after` and the keys in `where` can be values of the user's.

    It has no default, as a forgotten one would show such values where they are to be left out.
    """

    sentence: ClassVar[str] = ""
    """The text of the cause, with its own fields in braces; `__str__` where that is not enough.

    Without one, it says what its `subject` went from, and to what.
    """

    remedy: ClassVar[str] = ""
    """The text of its advice, with its own fields in braces."""

    subject: ClassVar[str] = ""
    """What has changed, with its own fields in braces: for ``subject: before → after``."""

    where: str
    """The place, as the user would write it: ``params['dense']['kernel']``."""

    @property
    def before(self) -> str:
        """What the nearest earlier program has at that place."""
        return ""

    @property
    def after(self) -> str:
        """What this program has at that place."""
        return ""

    @property
    def advice(self) -> str:
        """What to do about it."""
        return self.remedy.format(self=self)

    @property
    def is_fine_if_few(self) -> bool:
        """Whether a few programs of this kind are as it should be: one for ``"train"``, ``"eval"``.

        There is nothing to fix then; the advice is to have no more of them.
        """
        return False

    def advice_at(self, places: Sequence[str]) -> str:
        """What to do about it where it happened at several places."""
        return msgspec.structs.replace(self, where=in_a_list(places, ", ")).advice

    def brief_at(self, places: Sequence[str], between: str = ": ") -> str:
        """The shortest way to say that it happened at several places."""
        joined = msgspec.structs.replace(self, where=in_a_list(places, ", "))
        if len(places) == 1 or all(joined.changed):
            return joined.brief(between)
        said = str(msgspec.structs.replace(self, where=in_a_list(places)))
        for pattern, plural in _PLURALS:
            said = pattern.sub(plural, said)
        return said

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

    def redacted(self) -> Self:
        """The same cause without the user's values: that they differ is said, not what they are.

        Names stay: of functions, arguments, types and settings.

        >>> from jitcount._explain.causes.arguments import StaticValue
        >>> print(StaticValue("config['tokens'].rate", "'a secret'", "'another'").redacted())
        static argument config[<redacted>] went from <redacted> to <redacted>
        """
        if not self.holds_user_values:
            return self
        where = _KEY.sub(f"[{REDACTED}]", self.where)
        texts = {"before", "after"}.intersection(self.__struct_fields__)
        return msgspec.structs.replace(self, where=where, **dict.fromkeys(texts, REDACTED))

    def __str__(self) -> str:
        sentence = self.sentence or f"{self.subject} went from {{self.before}} to {{self.after}}"
        return sentence.format(self=self)


class TextCause(Cause, frozen=True):
    """A cause whose two sides are texts: what the user wrote, or JAX's own words."""

    before: str
    after: str
