"""`jitcount.freeze` and `jitcount.max_compiles`: refuse a compile before XLA starts."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from jitcount.explain.explaining import explained
from jitcount.explain.hub import hub

if TYPE_CHECKING:
    from types import TracebackType

    from jitcount.explain.causes import Cause
    from jitcount.explain.compile import Compile
    from jitcount.observe.observation import Observation


class RecompileError(RuntimeError):
    """A compile that was refused.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> try:
    ...     with jitcount.freeze():
    ...         double(np.zeros(3, np.float32))
    ... except jitcount.RecompileError as error:
    ...     print(error.function, error.signature, error.causes[0])
    <lambda> ('float32[3]',) first call of <lambda>
    """

    def __init__(self, message: str, compiled: Compile) -> None:
        super().__init__(message)
        self.function: str = compiled.function
        self.signature: tuple[str, ...] = compiled.signature
        self.causes: tuple[Cause, ...] = compiled.causes
        self.call_site: str = compiled.call_site


class max_compiles(contextlib.ContextDecorator):  # noqa: N801 (reads as a verb, like `record`)
    """Allow so many compiles in a block, of one function or of all, and refuse the next.

    The refused call raises `RecompileError` at the user's line, before XLA starts; the program can
    go on after it. What comes from the persistent cache is not a compile. Guards nest, and each
    counts for itself; as a decorator it counts each call of the function anew.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> with jitcount.max_compiles(2, "<lambda>"):
    ...     for length in 3, 4, 3:
    ...         _ = double(np.zeros(length, np.float32))

    Args:
        limit: how many compiles are allowed.
        function: the name of the function whose compiles count; by default all do, also those of
            eager operations.
        this_thread_only: let other threads compile as they like.
    """

    def __init__(
        self, limit: int, function: str | None = None, *, this_thread_only: bool = False
    ) -> None:
        _require_count(limit)
        self._limit = limit
        self._function = function
        self._this_thread_only = this_thread_only
        self._count = 0
        self._thread: int | None = None

    def _recreate_cm(self) -> max_compiles:
        """Called for each call of a decorated function, which has a count of its own."""
        return max_compiles(self._limit, self._function, this_thread_only=self._this_thread_only)

    def __enter__(self) -> None:
        self._count = 0
        self._thread = threading.get_ident()
        hub.guard(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        hub.unguard(self)

    def check(self, observation: Observation) -> None:
        """Raise `RecompileError` at one compile too many; called before each compile."""
        if self._concerns(observation) and self._count >= self._limit:
            compiled = explained(observation)
            raise RecompileError(self._message(compiled), compiled)

    def count(self, observation: Observation) -> None:
        """Count a compile that no guard refused."""
        if self._concerns(observation):
            self._count += 1

    def _concerns(self, observation: Observation) -> bool:
        if self._this_thread_only and threading.get_ident() != self._thread:
            return False
        return self._function in {None, observation.function}

    def _message(self, compiled: Compile) -> str:
        headline = f"{compiled.call} would be compiled at {compiled.call_site}, and {self._rule()}"
        return "\n".join([headline, *compiled.reasons()])

    def _rule(self) -> str:
        of = f" of {self._function}" if self._function else ""
        if self._limit == 0:
            return f"jitcount.freeze() allows no compile{of} here"
        compiles = "compile" if self._limit == 1 else "compiles"
        return f"jitcount.max_compiles allows {self._limit} {compiles}{of} here"


class freeze(max_compiles):  # noqa: N801 (the same)
    """Allow no compile in a block: what a server does after its warm-up.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> _ = double(np.zeros(3, np.float32))
    >>> with jitcount.freeze():
    ...     _ = double(np.zeros(3, np.float32))

    Args:
        this_thread_only: let other threads compile as they like.
    """

    def __init__(self, *, this_thread_only: bool = False) -> None:
        super().__init__(0, this_thread_only=this_thread_only)


def _require_count(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ValueError(f"max_compiles takes a count of 0 or more; limit is {limit!r}")
