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

CACHE_SETTINGS = "JAX_COMPILATION_CACHE_DIR=FOLDER JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0"
"""The environment that lets JAX keep everything that it compiles."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to change in a program, and what that saves."""

    code: str
    """The code of what is wrong, the same in every output and release: ``"JC101"``."""

    title: str
    """What is wrong, in a word or two: ``"shape"``."""

    what: str
    """What is compiled too often: ``"step"``, ``"model.init"``; empty for some lines."""

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

    advices: tuple[str, ...]
    """What to do, each with an arrow of its own; never empty."""

    compiles: tuple[Compile, ...] = field(default=(), repr=False)
    """The compiles that would go."""

    @property
    def advice(self) -> str:
        """What to do, in one line."""
        return "; and ".join(self.advices)

    @property
    def is_only_kept(self) -> bool:
        """Whether there is nothing to change but to keep what is compiled for the next run."""
        return any(CACHE_SETTINGS in advice for advice in self.advices)

    @property
    def in_words(self) -> str:
        """What is compiled too often, and how often: ``"step at train.py:42: 3 recompiles"``."""
        noun = "operation" if self.code in {OUTSIDE_JIT, IMPORTS} else "recompile"
        counted = f"{self.count} {noun}" if self.count == 1 else f"{self.count} {noun}s"
        if self.code == OUTSIDE_JIT:
            counted = f"{counted} outside of jit"
        if not self.what:
            return f"{self.call_site}: {counted}"
        return f"{self.what} at {self.call_site}: {counted}"
