"""JAX's record of what `jax.jit` was called with; no public interface returns it.

It is a named tuple whose fields differ from release to release: all that are not known to be no
options of the user's are taken as options, by the names that `jax.jit` has for them.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable

_NO_OPTIONS = {
    "fun_sourceinfo",
    "fun_signature",
    "user_specified_in_shardings",
    "use_resource_env",
}

UNSPECIFIED = "Unspecified"
"""Stands in the text of what JAX puts in place of a sharding that was not given."""


def option_values(info: Any) -> tuple[object, ...]:
    """The values of the options of a `jax.jit`."""
    kind: Any = type(info)
    return _option_getter(kind)(info)


@functools.cache
def option_names(kind: Any) -> tuple[str, ...]:
    """Their names, as in `jax.jit`."""
    fields = _option_fields(kind)
    return tuple(field.removesuffix("_leaves").removesuffix("_kvs") for field in fields)


def static_argnums(info: Any) -> tuple[int, ...]:
    """The numbers of the static arguments, as the user gave them: negative ones too."""
    return tuple(info.static_argnums)


def static_argnames(info: Any) -> tuple[str, ...]:
    """The names of the static arguments; JAX adds those of the numbers."""
    return tuple(info.static_argnames)


def fun_signature(info: Any) -> inspect.Signature | None:
    """The function's signature, which JAX has worked out once."""
    return getattr(info, "fun_signature", None)


@functools.cache
def _option_getter(kind: Any) -> Callable[[Any], tuple[object, ...]]:
    return operator.attrgetter(*_option_fields(kind))


@functools.cache
def _option_fields(kind: Any) -> tuple[str, ...]:
    fields = getattr(kind, "_fields", ())
    return tuple(f for f in fields if f not in _NO_OPTIONS and not f.endswith("_treedef"))
