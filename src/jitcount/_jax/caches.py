"""Whether JAX's caches have been cleared; no public interface tells.

JAX clears all caches that it has made, one of ours among them: what it holds is then made anew.
"""

from __future__ import annotations

import itertools

from jax._src import util as _util

_clearings = itertools.count()


def _next_clearing() -> int:
    return next(_clearings)


# A release without such caches leaves None: then they may always have been cleared.
try:
    _current_clearing = _util.cache(trace_context_in_key=False)(_next_clearing)
except (AttributeError, TypeError):
    _current_clearing = None


def times_cleared() -> int | None:
    """A number that another call of `jax.clear_caches` changes; None where that cannot be told."""
    return None if _current_clearing is None else _current_clearing()
