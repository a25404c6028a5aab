"""`jitcount.record`: the compiles of a block."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from jitcount.explain import explaining
from jitcount.recorder.log import CompileLog

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def record() -> Iterator[CompileLog]:
    """Count every compile in a block, in whichever thread it happens.

    Recorders nest, each for its own block. When the last one ends, however it ends, JAX's
    listeners and loggers are as they were before. JAX prints nothing more because of it, and a
    call that compiles nothing costs nothing.

    >>> import jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jitcount.cache_independent_count(np.zeros(77), np.zeros(78))
    >>> log.count("sum")
    2

    Yields:
        The log, which fills while the block runs.
    """
    log = CompileLog()
    listener = log.add  # one object: a bound method is a new one each time
    explaining.listen(listener)
    try:
        yield log
    finally:
        explaining.forget(listener)
