"""Targets by name, and what JAX is asked for."""

import pytest

from jitcount._targets.names import TARGETS, parse, topology

KNOWN = (
    "tpu:v4, tpu:v5e, tpu:v5p, tpu:v6e, tpu:7x, "
    "cuda:v100, cuda:a100, cuda:h100, cuda:h200, cuda:b200"
)


def test_these_targets_there_are() -> None:
    assert ", ".join(target.name for target in TARGETS) == KNOWN
    assert [parse(target.name) for target in TARGETS] == list(TARGETS)


@pytest.mark.parametrize("name", ["cuda:gtx", "rocm:mi300", "v5e", ""])
def test_an_unknown_target_is_one_line_that_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is asserted)
        parse(name)
    assert str(caught.value) == f"unknown target {name!r}; known are {KNOWN}"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("tpu:v5", "tpu:v5p, tpu:v5e or tpu:v4"),
        ("TPU:v5e", "tpu:v5e, tpu:v6e or tpu:v5p"),
        ("cuda:h10", "cuda:h100, cuda:v100 or cuda:h200"),
        ("tpu:v5:2x2", "tpu:v5p, tpu:v5e or tpu:v4"),
    ],
)
def test_a_mistyped_target_offers_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is asserted)
        parse(name)
    asked = f"did you mean {nearest}?"
    assert str(caught.value) == f"unknown target {name!r}; {asked} known are {KNOWN}"


@pytest.mark.parametrize("size", ["3x3", "2x2x1", "axb", "1", "6", "12", "512", "0x2", "2x-2", ""])
def test_a_size_that_no_tpu_has_is_refused(size: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(f"tpu:v5e:{size}")
    assert str(caught.value) == (
        f"target 'tpu:v5e:{size}' has no such size: tpu:v5e has 4, 8, 16, 32, 64, 128 or 256 "
        "chips, or a layout like tpu:v5e:2x2, the first two sides even"
    )


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("tpu:v5e:4", "2x2"),
        ("tpu:v5e:8", "2x4"),
        ("tpu:v5e:16", "4x4"),
        ("tpu:v5e:32", "4x8"),
        ("tpu:v6e:256", "16x16"),
        ("tpu:v4:4", "2x2x1"),
        ("tpu:v4:8", "2x2x2"),
        ("tpu:v5p:64", "4x4x4"),
        ("tpu:v5p:4096", "16x16x16"),
        ("tpu:7x:8", "2x2x2"),
    ],
)
def test_a_number_of_chips_is_the_slice_that_has_so_many(name: str, layout: str) -> None:
    chip = name.rpartition(":")[0]
    assert topology(parse(name), 1) == topology(parse(f"{chip}:{layout}"), 1)
    assert topology(parse(name), 1)["topology_name"].endswith(f":{layout}")


@pytest.mark.parametrize("size", ["0", "2x2", "many"])
def test_a_number_of_gpus_that_is_none_is_refused(size: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(f"cuda:h100:{size}")
    assert str(caught.value) == (
        f"target 'cuda:h100:{size}' has no such size: cuda:h100:8 stands for eight of cuda:h100"
    )


@pytest.mark.parametrize(
    ("name", "devices", "expected"),
    [
        ("tpu:v5e", 1, "v5e:2x2"),
        ("tpu:v5e", 4, "v5e:2x2"),
        ("tpu:v5e", 8, "v5e:2x4"),
        ("tpu:v6e", 256, "v6e:16x16"),
        ("tpu:v5e:16x16", 1, "v5e:16x16"),
        ("tpu:v4", 8, "v4:2x2x2"),
        ("tpu:v5p", 32, "v5p:2x4x4"),
        ("tpu:7x", 8, "tpu7x:2x2x1"),  # two devices a chip
        ("tpu:7x", 9, "tpu7x:2x2x2"),
    ],
)
def test_a_tpu_slice_is_as_large_as_the_program_needs(
    name: str, devices: int, expected: str
) -> None:
    assert topology(parse(name), devices)["topology_name"] == expected


@pytest.mark.parametrize(
    ("name", "devices", "expected"),
    [
        ("cuda:h100", 1, "1x1x1"),
        ("cuda:h100", 8, "1x1x8"),
        ("cuda:h100:8", 2, "1x1x8"),
        ("cuda:b200", 16, "1x2x8"),
    ],
)
def test_gpus_are_eight_to_a_host(name: str, devices: int, expected: str) -> None:
    assert topology(parse(name), devices)["topology"] == expected


@pytest.mark.parametrize(("name", "has"), [("tpu:v5e:2x2", 4), ("cuda:h100:4", 4)])
def test_a_size_that_is_too_small_for_the_program_says_so(name: str, has: int) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        topology(parse(name), 8)
    assert str(caught.value) == f"it is sharded over 8 devices, and {name} has {has}"


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(TypeError) as caught:
        parse(None)  # type: ignore[arg-type]
    assert str(caught.value) == "a target is a name, as 'tpu:v5e'; it was given None"
