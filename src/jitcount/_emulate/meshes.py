"""Devices as XLA writes them since JAX 0.10: places in a mesh whose axes have names.

A mesh is ``mesh['x'=4,'y'=2]``, with ``, device_ids=([2,4]T(1,0))`` or ``, device_ids=(3,1,2,0)``
after it where devices do not stand in their order. A part of an axis is written as ``'x':(2)2``: of
four places along ``x`` the last two, in each of the first two.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

_AXIS = re.compile(r"'([^']+)'=(\d+)")
_MESH = re.compile(rf"mesh\[((?:{_AXIS.pattern}(?:,\s*)?)*)\]")
_DEVICES = re.compile(r"\s*,\s*device_ids=\((?:\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))\)")
_REFERENCE = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")


@dataclass(frozen=True, slots=True)
class AxisPart:
    """A whole axis of a mesh, or a part of one."""

    name: str
    before: int
    """How many places of the axis are counted before this part: its stride from the left."""

    size: int


@dataclass(frozen=True)
class Mesh:
    """Devices in a grid whose axes have names."""

    sizes: dict[str, int]
    devices: np.ndarray
    """The number of the device at each place, with an axis for each of the mesh's."""

    def parts(self, text: str) -> list[AxisPart]:
        """The axes that a text names: ``'x', 'y':(2)2``.

        Raises:
            ValueError: the mesh has no such axes.
        """
        found = []
        for each in filter(None, (part.strip() for part in text.split(","))):
            reference = _REFERENCE.fullmatch(each)
            if reference is None or reference[1] not in self.sizes:
                raise ValueError(f"no axis {each} in a mesh of {', '.join(self.sizes)}")
            name, before, size = reference.groups()
            whole = self.sizes[name]
            part = AxisPart(name, int(before or 1), int(size or whole))
            if whole % (part.before * part.size):
                raise ValueError(f"an axis of {whole} has no part {each}")
            found.append(part)
        return found

    def ordered(self, *groups: list[AxisPart]) -> np.ndarray:
        """The devices' numbers with one axis for each group of parts; first, one for what is left.

        Raises:
            ValueError: parts overlap.
        """
        split = [(name, *cut) for name in self.sizes for cut in self._cuts(name, groups)]
        grid = self.devices.reshape([size for *_, size in split])
        places = {(name, before): at for at, (name, before, _) in enumerate(split)}
        along = [[places[part.name, part.before] for part in group] for group in groups]
        taken = [at for each in along for at in each]
        rest = [at for at in range(grid.ndim) if at not in taken]
        counts = [math.prod(grid.shape[at] for at in each) for each in along]
        return grid.transpose([*rest, *taken]).reshape([-1, *counts])

    def _cuts(self, name: str, groups: tuple[list[AxisPart], ...]) -> list[tuple[int, int]]:
        """An axis cut into the parts that are named and what lies between: (before, size) each."""
        parts = (part for group in groups for part in group if part.name == name)
        cuts, end = [], 1
        for part in sorted(parts, key=lambda part: part.before):
            if part.before % end:
                raise ValueError(f"parts of the axis {name} that overlap")
            if part.before > end:
                cuts.append((end, part.before // end))
            cuts.append((part.before, part.size))
            end = part.before * part.size
        whole = self.sizes[name]
        if whole % end:
            raise ValueError(f"parts of the axis {name} that overlap")
        return [*cuts, (end, whole // end)] if end < whole or not cuts else cuts


def parse_mesh(text: str) -> tuple[Mesh, str] | None:
    """Read the mesh that a text begins with; returns it and what follows, or None for no mesh.

    >>> mesh, rest = parse_mesh("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'x'}")
    >>> mesh.devices.tolist(), rest
    ([[0, 2], [1, 3]], "{'x'}")

    Raises:
        ValueError: it has more or fewer devices than places.
    """
    found = _MESH.match(text)
    if found is None:
        return None
    sizes = {name: int(size) for name, size in _AXIS.findall(found[1])}
    numbers = np.arange(math.prod(sizes.values()))
    rest = text[found.end() :]
    if devices := _DEVICES.match(rest):
        shape, axes, listed = (
            [int(number) for number in (each or "").split(",") if number]
            for each in devices.groups()
        )
        numbers = np.array(listed) if listed else numbers.reshape(shape).transpose(axes or None)
        rest = rest[devices.end() :]
    return Mesh(sizes, numbers.reshape(list(sizes.values()))), rest.strip()
