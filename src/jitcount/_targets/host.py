"""The platform that the user's own program runs on, while it is compiled for others."""

from __future__ import annotations

from jitcount._after_jax import after_import_of_jax


def prefer_cpu() -> None:
    """Run on the CPU, unless the program says otherwise; before any backend is started.

    JAX would look for the device of every compiler that is installed, and say at length that it
    found none. It is asked once the program has imported it: what the program has put into
    JAX_PLATFORMS until then, or sets in JAX's config later, holds. The environment, which the
    program may read and its children inherit, is left alone.
    """
    after_import_of_jax(_choose_cpu)


def _choose_cpu() -> None:
    import jax  # noqa: PLC0415 (by now it is there)

    if not jax.config.values["jax_platforms"]:
        jax.config.update("jax_platforms", "cpu")
