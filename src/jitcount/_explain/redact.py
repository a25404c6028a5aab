"""Leaves the user's values out of causes: that they differ is said, and not what they are.

Left out are the texts of static arguments and static fields, the keys of dicts in them, the
parameters of eager operations and the compiler's options. Names stay: of functions, arguments,
types and settings, and the places in arguments that are no static ones.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from jitcount._explain.causes.arguments import (
    NoEquality,
    Parameter,
    StaticField,
    StaticFunction,
    StaticObject,
    StaticValue,
)
from jitcount._explain.causes.cause import REDACTED
from jitcount._explain.causes.functions import JitOption
from jitcount._explain.causes.structure import StaticPart

if TYPE_CHECKING:
    from jitcount._explain.causes import AnyCause

VARIABLE = "JITCOUNT_REDACT"
"""Set in the environment, it is done to all that is written out, errors of guards too."""

_OF_VALUES = (NoEquality, StaticField, StaticFunction, StaticObject, StaticPart, StaticValue)

# A key that is no number, with all behind it: it may hold brackets of its own.
_KEY = re.compile(r"\[(?!\d+\]).*", re.DOTALL)


def is_redaction_requested() -> bool:
    """Whether the environment asks for it."""
    return os.environ.get(VARIABLE, "").lower() not in {"", "0", "false", "no", "off"}


def redacted(cause: AnyCause) -> AnyCause:
    """The same cause without the user's values.

    >>> print(redacted(StaticValue("config['tokens'].rate", "'a secret'", "'another'")))
    static argument config[<redacted>] went from <redacted> to <redacted>
    """
    texts = {"before": REDACTED, "after": REDACTED}
    if isinstance(cause, Parameter) or (
        isinstance(cause, JitOption) and cause.where == "compiler_options"
    ):
        return msgspec.structs.replace(cause, **texts)
    if not isinstance(cause, _OF_VALUES):
        return cause
    if isinstance(cause, StaticFunction) and cause.before == cause.after:
        texts = {}  # a line of source that made both
    return msgspec.structs.replace(cause, where=_KEY.sub(f"[{REDACTED}]", cause.where), **texts)
