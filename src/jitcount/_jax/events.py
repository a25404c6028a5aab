"""What JAX reports of itself: names of events, lines of its log, and how to listen to both."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from jax import monitoring
from jax._src import monitoring as _monitoring

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Sequence

# `jax.monitoring` is public, the names of what it reports are not documented. A release that
# renames one of the first three leaves nothing to count: the tests of `_jax` fail there.
TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
DISK_HIT = "/jax/compilation_cache/cache_hits"

PHASES = frozenset({TRACE, LOWER, COMPILE})

# The logger of the line "Compiling %s with global shapes and types %s. Argument mapping: %s.",
# whose arguments are objects. It tells what is lowered where the stack does not; without both, a
# lowering is matched with its compile by name alone.
COMPILE_LOGGER = "jax._src.interpreters.pxla"

# The logger of the line "PERSISTENT COMPILATION CACHE MISS for '%s' with key %r", the last word
# before a program that is not on disk is compiled. Without it a guard speaks after that compile.
DISK_LOGGER = "jax._src.compiler"

# The logger of the lines "Finished ... in ... sec". JAX asks whether they are wanted at the end of
# each phase, just before it tells its listeners: the last moment to be one of them again, where the
# program has called `jax.monitoring.clear_event_listeners`.
PHASE_LOGGER = "jax._src.dispatch"


def avals_in(line: logging.LogRecord) -> Sequence[Any] | None:
    """The avals in a line "Compiling ..."; None for other lines."""
    if not str(line.msg).startswith("Compiling ") or not isinstance(line.args, tuple):
        return None
    return next((argument for argument in line.args if isinstance(argument, list | tuple)), None)


def is_disk_miss(line: logging.LogRecord) -> bool:
    """Whether a line says that a program is not in the persistent cache."""
    return str(line.msg).startswith("PERSISTENT COMPILATION CACHE MISS")


PLACEHOLDER_NAMES = frozenset({"_fun", "<unnamed function>", "<unnamed wrapped function>"})
"""What JAX calls callable objects, and what `jax.pmap` maps."""


@functools.lru_cache(maxsize=1024)
def function_in(name: str) -> str:
    """The function's name in JAX's name of what it traces, lowers or compiles.

    >>> function_in("jit(sum)"), function_in("jit(<lambda>)"), function_in("sum")
    ('sum', '<lambda>', 'sum')
    """
    prefix, parenthesis, rest = name.partition("(")
    if parenthesis and rest.endswith(")") and prefix.isidentifier():
        return rest[:-1]
    return name


def function_of(about: dict[str, Any]) -> str:
    """The function's name in what JAX says with an event; "unknown" where it says none.

    >>> function_of({"fun_name": "jit(sum)"}), function_of({})
    ('sum', 'unknown')
    """
    return function_in(str(about.get("fun_name") or "unknown"))


Handlers = dict[str, "Callable[..., None]"]
"""What to call, by kind: "scalar" before a phase, "event_duration" after it, "event" for others."""


def register(listener: Handlers) -> None:
    """Listen to JAX; what listens already is not registered twice."""
    by_kind: dict[str, Callable[[Any], None]] = {
        "scalar": monitoring.register_scalar_listener,
        "event": monitoring.register_event_listener,
        "event_duration": monitoring.register_event_duration_secs_listener,
    }
    for kind, callback in listener.items():
        if callback not in vars(_monitoring).get(_LISTS[kind], _told[kind]):
            by_kind[kind](callback)
            _told[kind].append(callback)


def ensure_registered(listener: Handlers) -> None:
    """Be among JAX's listeners, also after `jax.monitoring.clear_event_listeners`.

    It is asked four times a compile: where JAX has not cleared the list of ends, it has not cleared
    the others.
    """
    ends = vars(_monitoring).get(_LISTS["event_duration"], ())
    if listener["event_duration"] not in ends:
        with _registering:
            register(listener)


# JAX returns copies of two of these lists, not of the third. In a release that renames one, what
# was registered once is taken as registered: that someone has cleared it away is not seen.
_LISTS = {
    "scalar": "_scalar_listeners",
    "event": "_event_listeners",
    "event_duration": "_event_duration_secs_listeners",
}


# A garbage collection in here may run a finalizer that compiles.
_registering = threading.RLock()

_told: dict[str, list[Callable[..., None]]] = {kind: [] for kind in _LISTS}
"""By kind, what was registered, whether it still is or not."""
