"""Prints which backend JAX has, and fails if it is not the one that was asked for.

A session runs ``python -m tools.backend gpu`` after its install, because JAX falls back to the CPU
silently if a plugin does not load and ``JAX_PLATFORMS`` is not set.
"""

from __future__ import annotations

import sys

from jitcount._ledger.environment import environment


def main(wanted: str) -> int:
    """Print the environment; returns 1 if the platform is not `wanted`."""
    try:
        found = environment()
    except RuntimeError as error:  # JAX_PLATFORMS names a backend that cannot start
        print(f"no {wanted} backend: {error}", file=sys.stderr)
        return 1
    if found.platform != wanted:
        print(f"no {wanted} backend: JAX chose {found}", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
