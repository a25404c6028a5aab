"""``rounding`` and ``rounding:7``: how to compute, by name; needs no JAX."""

from __future__ import annotations

from jitcount._targets.installed import require_installed
from jitcount._targets.names import ROUNDING, parse


def seed_of(name: object) -> int | None:
    """The seed of ``rounding:7``, 0 of ``rounding``; None for the name of a target.

    >>> seed_of("rounding:7"), seed_of("rounding"), seed_of("tpu:v5e")
    (7, 0, None)

    Raises:
        ValueError: what follows the colon is no seed.
    """
    word, colon, seed = name.partition(":") if isinstance(name, str) else ("", "", "")
    if word != ROUNDING:
        return None
    if not colon:
        return 0
    if not (seed.isascii() and seed.isdecimal() and len(seed) < _DIGITS):
        raise ValueError(f"{name!r}: a seed is a whole number from 0 on, as in 'rounding:7'")
    return int(seed)


_DIGITS = 10


def require_usable(name: str) -> None:
    """Raise one line where nothing can compute so on this machine.

    Raises:
        ValueError: there is no such target, or the seed is none.
        ImportError: the target's compiler is not installed.
    """
    if seed_of(name) is None:
        require_installed(parse(name))
