"""Which part of an array each device has, by the sharding that XLA writes."""

from __future__ import annotations

import re

_TYPE = re.compile(r"tensor<((?:\d+x)*)(.+)>")
_TILES = re.compile(r"\{devices=\[([\d,]+)\]")


def part_of(kind: str, sharding: str) -> str:
    """The MLIR type of the part of an array that one device has.

    >>> part_of("tensor<64x128xf32>", "{devices=[8,1]<=[8]}")
    'tensor<8x128xf32>'

    Raises:
        ValueError: it is not divided evenly among all devices.
    """
    if sharding in {"{replicated}", "{manual}"}:
        return kind
    tiles = _TILES.match(sharding)
    whole = _TYPE.fullmatch(kind)
    if tiles is None or whole is None:
        raise ValueError(f"an array with the sharding {sharding}")
    extents = list(map(int, whole[1].split("x")[:-1]))
    counts = list(map(int, tiles[1].split(",")))[: len(extents)]
    if any(extent % count for extent, count in zip(extents, counts, strict=True)):
        raise ValueError(f"{kind} is not divided evenly by {sharding}")
    parts = [str(extent // count) for extent, count in zip(extents, counts, strict=True)]
    return f"tensor<{'x'.join([*parts, whole[2]])}>"
