"""`Fix`: one thing to change in a program, and what that saves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount._explain.compile import Compile
    from jitcount._observe.call_site import CallSite

OUTSIDE_JIT = "JC501"
"""The code of operations outside of jit, which are compiled one by one."""

IMPORTS = "JC502"
"""The code of an import that compiles."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to change in a program, and what that saves."""

    code: str
    """The code of what is wrong, the same in every output and release: ``"JC101"``."""

    title: str
    """What is wrong, in a word or two: ``"shape"``."""

    what: str
    """What is compiled too often: ``"step"``, ``"model.init"``."""

    call_site: CallSite
    """The user's line."""

    count: int
    """How many compiles would go."""

    seconds: float
    """How many seconds of the clock would be saved."""

    is_at_most: bool
    """Whether `seconds` is an upper bound: what is compiled in their place is not known."""

    changes: tuple[str, ...]
    """What changed from compile to compile, summed up, most often first."""

    advice: str
    """What to do; never empty."""

    compiles: tuple[Compile, ...] = field(default=(), repr=False)
    """The compiles that would go."""
