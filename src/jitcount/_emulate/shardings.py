"""Which part of an array each device has, by the sharding that XLA writes."""

from __future__ import annotations

import re

from jitcount._emulate.meshes import parse_mesh

_TYPE = re.compile(r"tensor<((?:\d+x)*)(.+)>")
_TILES = re.compile(r"\{devices=\[([\d,]+)\]")
_NAMED = re.compile(r"\[((?:\{[^{}]*\}(?:,\s*)?)*)\](?:,\s*replicated=\{[^{}]*\})?")


def in_tiles(kind: str, sharding: str) -> str:
    """A sharding as every release of XLA reads it: in tiles, without the names of axes.

    >>> in_tiles("tensor<64x128xf32>", "{mesh['x'=4,'y'=2], [{'y'}, {}]}")
    '{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}'

    Raises:
        ValueError: it is none that divides an array into equal parts.
    """
    read = parse_mesh(sharding[1:-1])
    if read is None:
        return sharding
    mesh, rest = read
    rest = rest.removeprefix(",").strip()
    if rest in {"manual", "replicated"}:
        return f"{{{rest}}}"
    named = _NAMED.fullmatch(rest)
    whole = _TYPE.fullmatch(kind)
    if named is None or whole is None:
        raise ValueError(f"an array with the sharding {sharding}")
    axes = [mesh.parts(each.replace("?", "")) for each in re.findall(r"\{([^{}]*)\}", named[1])]
    rank = whole[1].count("x")
    axes += [[] for _ in range(rank - len(axes))]
    if not any(axes):
        return "{replicated}"
    devices = mesh.ordered(*axes)
    copies, *tiles = devices.shape
    numbers = ",".join(map(str, devices.reshape(copies, -1).T.ravel()))
    if copies == 1:
        return f"{{devices=[{','.join(map(str, tiles))}]{numbers}}}"
    return f"{{devices=[{','.join(map(str, [*tiles, copies]))}]{numbers} last_tile_dim_replicate}}"


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
