"""`jitcount.record`: the compiles of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.explain import explaining
from jitcount.recorder.log import CompileLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from jitcount.explain.explaining import Explained


class record:  # noqa: N801 (reads as a verb where it is used, like `open`)
    """Count every compile in a block, in whichever thread it happens, and say why.

    Recorders nest, each for its own block. When the last one ends, however it ends, JAX's
    listeners and loggers are as they were before. JAX prints nothing more because of it, and a
    call that compiles nothing costs nothing.

    >>> import jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jitcount.cache_independent_count(np.zeros(77), np.zeros(78))
    >>> log.count("sum")
    2

    The log fills while the block runs.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[Explained], None]] = []

    def __enter__(self) -> CompileLog:
        log = CompileLog()
        listener = log.add  # one object: a bound method is a new one each time
        self._listeners.append(listener)
        explaining.listen(listener)
        return log

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        explaining.forget(self._listeners.pop())
