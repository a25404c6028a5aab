"""Targets by name: ``tpu:v5e``, ``tpu:v5e:16x16``, ``cuda:h100``, ``cuda:h100:8``.

A name without a size stands for as many devices as a program is sharded over; with one, for that
machine and no larger one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jitcount.targets.chips import GPUS, TPUS, Gpu, Tpu, target_config


class TargetTooSmallError(ValueError):
    """A program is sharded over more devices than a target has."""


# What one host of NVIDIA's own machines holds.
_GPUS_PER_HOST = 8


@dataclass(frozen=True, slots=True)
class Target:
    """A chip to compile for."""

    name: str
    """As the user wrote it."""

    platform: str
    """``"tpu"`` or ``"cuda"``; ``"cpu"`` stands for this machine's own compiler, in tests."""

    chip: Tpu | Gpu | None = None
    size: tuple[int, ...] = ()
    """How the chips are laid out, or how many they are, where the name says so."""


_CHIPS: dict[str, Target] = {
    **{f"tpu:{chip.name}": Target(f"tpu:{chip.name}", "tpu", chip) for chip in TPUS},
    **{f"cuda:{chip.name}": Target(f"cuda:{chip.name}", "cuda", chip) for chip in GPUS},
}

TARGETS = tuple(_CHIPS.values())
"""All that there are, without a size."""


def parse(name: str) -> Target:
    """The target of that name.

    >>> parse("tpu:v5e:16x16").size, parse("cuda:h100").size
    ((16, 16), ())

    Raises:
        ValueError: there is no such target.
    """
    platform, _, rest = name.partition(":")
    chip, _, size = rest.partition(":")
    if platform == "cpu":
        return Target(name, "cpu")
    known = _CHIPS.get(f"{platform}:{chip}")
    if known is None:
        raise ValueError(f"unknown target {name!r}; known are {', '.join(_CHIPS)}")
    if not size and not name.endswith(":"):
        return known
    return Target(name, known.platform, known.chip, _size(name, known, size))


def _size(name: str, known: Target, text: str) -> tuple[int, ...]:
    parts = text.split("x")
    size = tuple(int(part) for part in parts if part.isdecimal() and int(part) > 0)
    if len(size) == len(parts) and _is_possible(known, size):
        return size
    if isinstance(known.chip, Tpu):
        example = "x".join(map(str, known.chip.layout))
        raise ValueError(  # noqa: TRY004
            f"target {name!r} has no such layout: {known.name} is laid out like "
            f"{known.name}:{example}, the first two sides even"
        )
    raise ValueError(
        f"target {name!r} has no such size: {known.name}:8 stands for eight of {known.name}"
    )


def _is_possible(known: Target, size: tuple[int, ...]) -> bool:
    if isinstance(known.chip, Tpu):
        # A host holds a square of two by two chips.
        return len(size) == len(known.chip.layout) and not any(side % 2 for side in size[:2])
    return len(size) == 1


def topology(target: Target, devices: int) -> dict[str, Any]:
    """How JAX is asked for that many devices of a target, or for more of them.

    >>> topology(parse("tpu:v5e"), 8)["topology_name"], topology(parse("cuda:h100"), 8)["topology"]
    ('v5e:2x4', '1x1x8')

    Raises:
        TargetTooSmallError: the name has a size, and the program needs more.
    """
    if isinstance(target.chip, Tpu):
        return _tpu_topology(target, target.chip, devices)
    if isinstance(target.chip, Gpu):
        count = target.size[0] if target.size else devices
        _require(target, count, devices)
        hosts = math.ceil(count / _GPUS_PER_HOST)
        return {
            "platform": "cuda",
            "topology_name": "",
            "target_config": target_config(target.chip),
            "topology": f"1x{hosts}x{min(count, _GPUS_PER_HOST)}",
        }
    return {"platform": "cpu"}


def _tpu_topology(target: Target, chip: Tpu, devices: int) -> dict[str, Any]:
    layout = list(target.size or chip.layout)
    while not target.size and math.prod(layout) * chip.devices_per_chip < devices:
        # The shortest side, the last of equals: 2x2, 2x4, 4x4; 2x2x1, 2x2x2, 2x2x4, 2x4x4.
        shortest = min(reversed(range(len(layout))), key=lambda side: layout[side])
        layout[shortest] *= 2
    _require(target, math.prod(layout) * chip.devices_per_chip, devices)
    name = f"{chip.system}:{'x'.join(map(str, layout))}"
    return {"platform": "tpu", "topology_name": name, **chip.options}


def _require(target: Target, count: int, devices: int) -> None:
    if count < devices:
        raise TargetTooSmallError(
            f"it is sharded over {devices} devices, and {target.name} has {count}"
        )
