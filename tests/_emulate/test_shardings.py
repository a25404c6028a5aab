"""How arrays lie on devices, and which devices speak with which: as XLA's texts say it."""

import pytest

from jitcount._emulate.rules.collectives import groups_of
from jitcount._emulate.shardings import in_tiles, part_of
from jitcount._hlo import parser
from tests._emulate.cases import module


@pytest.mark.parametrize(
    ("kind", "sharding", "part"),
    [
        ("tensor<64x128xf32>", "{devices=[8,1]<=[8]}", "tensor<8x128xf32>"),
        ("tensor<64x128xf32>", "{replicated}", "tensor<64x128xf32>"),
        ("tensor<f32>", "{replicated}", "tensor<f32>"),
        (
            "tensor<8x6xcomplex<f32>>",
            "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
            "tensor<8x3xcomplex<f32>>",
        ),
        ("tensor<4xui32>", "{devices=[2]0,1}", "tensor<2xui32>"),
    ],
)
def test_each_device_has_its_part(kind: str, sharding: str, part: str) -> None:
    assert part_of(kind, sharding) == part


@pytest.mark.parametrize(
    ("sharding", "why"),
    [
        (
            "{devices=[4,1]<=[4]}",
            "tensor<6x2xf32> is not divided evenly by {devices=[4,1]<=[4]}",
        ),
        ("{maximal device=3}", "an array with the sharding {maximal device=3}"),
    ],
)
def test_what_has_no_equal_parts_is_named(sharding: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"an array with|not divided") as error:
        part_of("tensor<6x2xf32>", sharding)
    assert str(error.value) == why


@pytest.mark.parametrize(
    ("sharding", "tiles"),
    [
        ("{replicated}", "{replicated}"),
        ("{devices=[8,1]<=[8]}", "{devices=[8,1]<=[8]}"),
        ("{mesh['x'=4], [{'x'}, {}]}", "{devices=[4,1]0,1,2,3}"),
        ("{mesh['x'=4], [{}, {'x', ?}]}", "{devices=[1,4]0,1,2,3}"),
        ("{mesh['x'=4], [{}, {}]}", "{replicated}"),
        ("{mesh['x'=4], replicated}", "{replicated}"),
        ("{mesh['x'=4], [{'x'}]}", "{devices=[4,1]0,1,2,3}"),
        (
            "{mesh['x'=4,'y'=2], [{'y'}, {}], replicated={'x'}}",
            "{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}",
        ),
        ("{mesh['x'=4,'y'=2], [{'y','x'}, {}]}", "{devices=[8,1]0,2,4,6,1,3,5,7}"),
        (
            "{mesh['x'=4], [{'x':(1)2}, {}]}",
            "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}",
        ),
        (
            "{mesh['x'=4], [{'x':(2)2}, {}]}",
            "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}",
        ),
        ("{mesh['x'=4], [{'x':(2)2}, {'x':(1)2}]}", "{devices=[2,2]0,2,1,3}"),
        ("{mesh['x'=4], device_ids=(3,2,1,0), [{'x'}, {}]}", "{devices=[4,1]3,2,1,0}"),
        (
            "{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), [{'x'}, {'y'}]}",
            "{devices=[2,2]0,2,1,3}",
        ),
    ],
)
def test_a_sharding_by_names_of_axes_is_one_in_tiles(sharding: str, tiles: str) -> None:
    assert in_tiles("tensor<8x6xf32>", sharding) == tiles


@pytest.mark.parametrize(
    ("sharding", "why"),
    [
        (
            "{mesh['x'=4], [{'x'}, {}], unreduced={'y'}}",
            "an array with the sharding {mesh['x'=4], [{'x'}, {}], unreduced={'y'}}",
        ),
        ("{mesh['x'=4], [{'y'}, {}]}", "no axis 'y' in a mesh of x"),
        ("{mesh['x'=4], [{'x':(2)4}, {}]}", "an axis of 4 has no part 'x':(2)4"),
        ("{mesh['x'=4], [{'x'}, {'x':(2)2}]}", "parts of the axis x that overlap"),
    ],
)
def test_a_sharding_by_names_that_says_something_else_is_named(sharding: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"an array with|no axis|no part|overlap") as error:
        in_tiles("tensor<8x6xf32>", sharding)
    assert str(error.value) == why


def _groups(written: str, devices: int = 8) -> list[list[int]]:
    text = module(f"%p0 = f32[] parameter(0)\nROOT %a = f32[] all-reduce(%p0){written}")
    return groups_of(parser.parse(text).entry.root, devices)


@pytest.mark.parametrize(
    ("written", "groups"),
    [
        ("", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (", replica_groups={}", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (", replica_groups={{0,1},{2,3}}", [[0, 1], [2, 3]]),
        (", replica_groups=[2,4]<=[8]", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (", replica_groups=[2,4]<=[4,2]T(1,0)", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        (", replica_groups=mesh['a'=4,'b'=2] {'b'}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (", replica_groups=mesh['a'=4,'b'=2] {'a'}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        (", replica_groups=mesh['a'=2,'b'=2,'c'=2] {'c','a'}", [[0, 4, 1, 5], [2, 6, 3, 7]]),
        (", replica_groups=mesh['a'=4] {'a':(2)2}", [[0, 1], [2, 3]]),
        (", replica_groups=mesh['a'=4] {'a':(1)2}", [[0, 2], [1, 3]]),
        (", replica_groups=mesh['a'=8] {'a':(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        (", replica_groups=mesh['a'=4], device_ids=(3,1,2,0) {'a':(2)2}", [[3, 1], [2, 0]]),
        (
            ", replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}",
            [[0, 2], [1, 3]],
        ),
    ],
)
def test_groups_of_devices_are_read_however_they_are_written(
    written: str, groups: list[list[int]]
) -> None:
    assert _groups(written) == groups


@pytest.mark.parametrize(
    ("written", "more"),
    [
        ("mesh['a'=8] {'a':(3)2}", ": an axis of 8 has no part 'a':(3)2"),
        ("mesh['a'=8] {'b'}", ": no axis 'b' in a mesh of a"),
        ("mesh['a'=8] {'a':(1)4,'a':(2)2}", ": parts of the axis a that overlap"),
        ("mesh['a'=8]", ""),
        ("<whatever>", ""),
    ],
)
def test_groups_in_another_way_are_named(written: str, more: str) -> None:
    with pytest.raises(ValueError, match="groups of devices written as") as error:
        _groups(f", replica_groups={written}")
    assert str(error.value) == f"groups of devices written as {written}{more}"
