"""Targets by name: ``tpu:v5e``, ``tpu:v5e:8``, ``tpu:v5e:2x4``, ``cuda:h100``, ``cuda:h100:8``.

A name without a size stands for as many devices as a program is sharded over; with one, for that
machine and no larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._targets.chips import CHIPS
from jitcount._targets.chips.cpu import Cpu
from jitcount._text import did_you_mean

if TYPE_CHECKING:
    from jitcount._targets.chips.chip import Chip


ROUNDING = "rounding"
"""What computes on this machine with other roundings: a name for `as_if`, and no target."""

_DIGITS_OF_A_SEED = 10


class TargetTooSmallError(ValueError):
    """A program is sharded over more devices than a target has."""


@dataclass(frozen=True, slots=True)
class Target:
    """A chip to compile for, in a machine of some size."""

    name: str
    """The target's name, as the user wrote it."""

    chip: Chip
    size: tuple[int, ...] = ()
    """How the chips are laid out, or how many there are; empty where the name does not say."""

    @property
    def platform(self) -> str:
        """The chip's platform: ``"tpu"``."""
        return self.chip.platform


TARGETS = tuple(Target(f"{chip.platform}:{chip.name}", chip) for chip in CHIPS)
"""Every target without a size: one for each chip."""

_KNOWN = {target.name: target for target in TARGETS}


def parse(name: str) -> Target:
    """The target that a name stands for.

    >>> parse("tpu:v5e:16x16").size, parse("tpu:v5e:8").size, parse("cuda:h100").size
    ((16, 16), (2, 4), ())

    Raises:
        ValueError: there is no such target.
        TypeError: it is no name.
    """
    if not isinstance(name, str):
        raise TypeError(f"a target is a name, as 'tpu:v5e'; it was given {name!r}")
    platform, _, rest = name.partition(":")
    if platform == ROUNDING:
        raise ValueError(
            f"{name!r} is no target to compile for, but a way to compute on this machine: "
            f"--as-if {name}"
        )
    if platform == Cpu.platform:
        return Target(name, Cpu())
    chip, colon, size = rest.partition(":")
    known = _KNOWN.get(f"{platform}:{chip}")
    if known is None:
        nearest = did_you_mean(f"{platform}:{chip}", _KNOWN)
        known_are = f"known are {', '.join(_KNOWN)}"
        raise ValueError(f"unknown target {name!r}; {nearest} {known_are}".replace("  ", " "))
    return Target(name, known.chip, known.chip.size_of(size, name)) if colon else known


def topology(target: Target, devices: int) -> dict[str, Any]:
    """The arguments of JAX's `get_topology_desc` for at least that many devices of a target.

    >>> topology(parse("tpu:v5e"), 8)["topology_name"], topology(parse("cuda:h100"), 8)["topology"]
    ('v5e:2x4', '1x1x8')

    Raises:
        TargetTooSmallError: the name has a size, and the program needs more.
    """
    machine = target.chip.machine(target.size, devices)
    if machine.devices < devices:
        raise TargetTooSmallError(
            f"it is sharded over {devices} devices, and {target.name} has {machine.devices}"
        )
    return machine.topology


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
    if not (seed.isascii() and seed.isdecimal() and len(seed) < _DIGITS_OF_A_SEED):
        raise ValueError(f"{name!r}: a seed is a whole number from 0 on, as in 'rounding:7'")
    return int(seed)
