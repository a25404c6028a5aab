"""How arrays lie on devices, and which devices speak with which: as XLA's texts say it."""

import pytest

from jitcount._emulate.rules.collectives import groups_of
from jitcount._emulate.shardings import part_of
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
    ],
)
def test_groups_of_devices_are_read_however_they_are_written(
    written: str, groups: list[list[int]]
) -> None:
    assert _groups(written) == groups


@pytest.mark.parametrize("written", ["mesh['a'=8] {'a':(1)2}", "mesh['a'=8] {'b'}", "<whatever>"])
def test_groups_in_another_way_are_named(written: str) -> None:
    with pytest.raises(ValueError, match="groups of devices written as") as error:
        _groups(f", replica_groups={written}")
    assert str(error.value) == f"groups of devices written as {written}"
