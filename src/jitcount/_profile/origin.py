"""Where an operation comes from: the user's line, and the function that it calls there."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jitcount._hlo.locations import sites_at
from jitcount._jax.origin import JAX_DIRECTORIES
from jitcount._observe.call_site import UNKNOWN_SITES, Sites, owner_of

if TYPE_CHECKING:
    from jitcount._hlo.locations import Stack


class Origin(NamedTuple):
    """Where an equation, an operation or an instruction comes from."""

    sites: Sites
    transform: str = ""
    """The transformation that made it of the line: ``"backward pass"``; empty for none."""

    calls: str = ""
    """The function that the user's line calls there."""


NO_ORIGIN = Origin(UNKNOWN_SITES)

# Files whose functions stand between a call and the function that was called, or make calls of
# `x + y` and `x[0]`: their names say nothing to users. With folders: `jax.random` has a `core.py`.
_WRAPPERS = tuple(
    str(Path("jax", "_src", path))
    for path in (
        "api.py", "api_util.py", "core.py", "custom_derivatives.py", "lib/__init__.py",
        "linear_util.py", "monitoring.py", "pjit.py", "profiler.py", "source_info_util.py",
        "traceback_util.py", "util.py", "interpreters/ad.py", "interpreters/batching.py",
        "interpreters/mlir.py", "interpreters/partial_eval.py", "interpreters/pxla.py",
        "numpy/array_methods.py", "numpy/indexing.py", "numpy/ufunc_api.py",
    )
)  # fmt: skip


@lru_cache(maxsize=1 << 14)
def origin_of(stack: Stack, transform: str = "") -> Origin:
    """The origin of what was traced under a stack, which has JAX's own frames in it."""
    sites = sites_at(stack)
    return Origin(sites, transform, _called(stack)) if sites != UNKNOWN_SITES else NO_ORIGIN


def _called(stack: Stack) -> str:
    """The function that the user's line calls: the outermost inside of it with a name for users."""
    is_users = [owner_of(file) == "user" for file, _, _ in stack]
    inner = stack[: is_users.index(True)] if True in is_users else stack
    for file, _, function in reversed(inner):
        is_jaxs = file.startswith(JAX_DIRECTORIES)
        if file.endswith(_WRAPPERS) or not (is_jaxs or owner_of(file) == "library"):
            continue
        name = function.replace("<locals>.", "")
        if is_jaxs:
            last = name.rpartition(".")[2]
            if last.startswith(("__", "<")):  # a method of `+`, a lambda: its name says nothing
                continue
            return last.lstrip("_")
        if "wrap" not in name.lower():  # else a decorator of the library's
            return name.removesuffix(".__call__").rpartition(".")[2]
    return ""
