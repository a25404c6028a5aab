"""What ``JITCOUNT=1`` does in any Python process: waits for JAX, then counts until the end.

The line in `jitcount.pth` imports this only when the variable is set. JAX itself is not imported: a
program that never uses it is left alone.
"""

from __future__ import annotations

from jitcount._after_jax import after_import_of_jax


def _count() -> None:
    from jitcount.commands.counting import summarise_at_exit  # noqa: PLC0415 (it imports JAX)

    summarise_at_exit()


after_import_of_jax(_count)
