"""JAX's persistent compilation cache, kept out of a process of ours."""

from __future__ import annotations

from jax._src import compilation_cache as _compilation_cache


def keep_off() -> None:
    """Neither read nor write the persistent cache in this process, whatever the program sets.

    Both ways lead through one question, and here it is answered. A release without it is left to
    ``JAX_ENABLE_COMPILATION_CACHE``, which a program can set otherwise.
    """
    if hasattr(_compilation_cache, "is_cache_used"):
        _compilation_cache.is_cache_used = lambda *_, **__: False
