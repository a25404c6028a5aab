"""Whether JAX has started a backend: nothing public says so without starting one."""

from __future__ import annotations

from jax._src import xla_bridge


def has_started() -> bool:
    """Whether there are devices to describe; to ask JAX for them would start a backend.

    Where a release does not say, it is taken to have started one, as a program that compiles has.
    """
    has = getattr(xla_bridge, "backends_are_initialized", None)
    return has is None or bool(has())
