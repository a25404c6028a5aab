"""Which devices an operation joins, in all the ways that HLO writes it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jitcount.emulate.hlo import Instruction

_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\]\s*\{([^}]*)\}")


def groups_of(instruction: Instruction, devices: int) -> list[list[int]]:
    """Its groups of devices; all in one where none are written.

    Raises:
        ValueError: they are written in a way that is not known.
    """
    text = instruction.attributes.get("replica_groups", "{}")
    if re.fullmatch(r"[{}\d,\s]*", text):
        rows = re.findall(r"\{([\d,\s]+)\}", text)
        found = [[int(number) for number in row.split(",")] for row in rows]
        return found or [list(range(devices))]
    if iota := _IOTA.fullmatch(text):
        return _of_iota(*(_numbers(each) for each in iota.groups()))
    if mesh := _MESH.fullmatch(text):
        return _of_mesh(mesh[1], mesh[2])
    raise ValueError(f"groups of devices written as {text}")


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []


def _of_iota(shape: list[int], given: list[int], axes: list[int]) -> list[list[int]]:
    """``[4,2]<=[2,4]T(1,0)``: all numbers, in a shape, turned, in another shape."""
    numbers = np.arange(math.prod(given)).reshape(given)
    turned = numbers.transpose(axes) if axes else numbers
    return _rows(turned.reshape(shape))


def _of_mesh(axes: str, joined: str) -> list[list[int]]:
    """``mesh['x'=4,'y'=2] {'x'}``: the devices that differ in their places along these axes."""
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", axes)}
    names = [name.strip() for name in joined.split(",")]
    if not all(re.fullmatch(r"'[^']+'", name) and name[1:-1] in sizes for name in names):
        raise ValueError(f"groups of devices written as mesh[{axes}] {{{joined}}}")
    order = list(sizes)
    along = [order.index(name[1:-1]) for name in names]
    others = [axis for axis in range(len(order)) if axis not in along]
    numbers = np.arange(math.prod(sizes.values())).reshape(list(sizes.values()))
    count = math.prod(numbers.shape[axis] for axis in along)
    return _rows(numbers.transpose([*others, *along]).reshape(-1, count))


def _rows(numbers: np.ndarray) -> list[list[int]]:
    return [[int(number) for number in row] for row in numbers]
