"""How the arrays of a program lie on several devices, as XLA's text says it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layouts:
    """Of arguments and of results: shardings as XLA writes them."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]


def layouts_in(text: str) -> Layouts | None:
    """What the comments at the end of a program say; None where there are none."""
    found = dict(re.findall(r"^// shardings of (\w+): (.*)$", text, re.MULTILINE))
    if {"arguments", "results"} - set(found):
        return None
    return Layouts(_separate(found["arguments"]), _separate(found["results"]))


def _separate(text: str) -> tuple[str, ...]:
    return tuple(text.split("; ")) if text else ()


_TYPE = re.compile(r"tensor<((?:\d+x)*)(.+)>")
_TILES = re.compile(r"\{devices=\[([\d,]+)\]")


def part_of(kind: str, sharding: str) -> str:
    """The type of what one device has, of an array of that type.

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
