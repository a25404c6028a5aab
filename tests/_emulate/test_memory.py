"""Bitcasts against a model: where in memory each element lies, one element at a time."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitcount._emulate.translate import NotKnownError, translate
from jitcount._emulate.writer import numpy_type
from jitcount._hlo.parser import Shape
from tests._emulate.cases import module

if TYPE_CHECKING:
    from tests._emulate.conftest import Run

TILES = [
    (),
    ((8, 128),),
    ((4, 128),),
    ((2, 128),),
    ((1, 128),),
    ((1024,),),
    ((128,),),
    ((8, 128), (2, 1)),
    ((4, 128), (2, 1)),
    ((2, 128), (4, 1)),
    ((8, 128), (4, 1)),
    ((2, 2),),
    ((3, 4),),
    ((3,), (2,)),
]


def _written(shape: Shape) -> str:
    extents = ",".join(map(str, shape.extents))
    axes = ",".join(map(str, shape.minor_to_major or ()))
    tiles = "".join(f"({','.join(map(str, tile))})" for tile in shape.tiles)
    return f"{shape.element}[{extents}]{{{axes}{f':T{tiles}' if tiles else ''}}}"


def _place(shape: Shape, index: tuple[int, ...]) -> tuple[int, int]:
    """Where an element lies, counted in elements; and how many places there are in all."""
    order = (shape.minor_to_major or ())[::-1]
    at, extents = [index[axis] for axis in order], [shape.extents[axis] for axis in order]
    for tile in shape.tiles:
        while len(at) < len(tile):
            at, extents = [0, *at], [1, *extents]
        rest = len(at) - len(tile)
        inner, outer = zip(at[rest:], tile, strict=True), zip(extents[rest:], tile, strict=True)
        blocks = [(i // side, i % side) for i, side in inner]
        counts = [math.ceil(extent / side) for extent, side in outer]
        at = at[:rest] + [block for block, _ in blocks] + [inside for _, inside in blocks]
        extents = extents[:rest] + counts + list(tile)
    place = 0
    for i, extent in zip(at, extents, strict=True):
        place = place * extent + i
    return place, math.prod(extents)


def _indices(shape: Shape) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, shape.extents)))


def _bitcast(value: np.ndarray, source: Shape, target: Shape) -> np.ndarray:
    """By way of bytes; what lies beyond the source is zero."""
    from_type, to_type = numpy_type(source.element), numpy_type(target.element)
    _, have = _place(source, (0,) * len(source.extents))
    _, want = _place(target, (0,) * len(target.extents))
    size = max(have * from_type.itemsize, want * to_type.itemsize)
    memory = np.zeros(math.ceil(size / 8) * 8, np.uint8)
    for index in _indices(source):
        place = _place(source, index)[0] * from_type.itemsize
        memory[place : place + from_type.itemsize] = np.frombuffer(value[index].tobytes(), np.uint8)
    taken = memory.view(to_type)
    found = np.zeros(target.extents, to_type)
    for index in _indices(target):
        found[index] = taken[_place(target, index)[0]]
    return found


_EXTENTS = st.sampled_from([1, 2, 3, 5, 8, 9, 16])
_LAST = st.sampled_from([1, 2, 7, 64, 128, 130])


@st.composite
def _shapes(draw: st.DrawFn, element: str = "f32") -> Shape:
    rank = draw(st.integers(0, 3))
    extents = [draw(_EXTENTS) for _ in range(rank)]
    order = draw(st.permutations(range(rank)))
    if rank:
        extents[order[0]] = draw(_LAST)
    tiles = draw(st.sampled_from(TILES))
    return Shape(element, tuple(extents), tuple(order), tiles)


def _alike(source: Shape, extents: tuple[int, ...], order: tuple[int, ...]) -> Shape:
    return Shape(source.element, extents, order, source.tiles)


def _check(pairs: list[tuple[Shape, Shape]], run_hlo: Run) -> None:
    """All in one program: to compile is what takes time."""
    lines = [f"%p{i} = {_written(source)} parameter({i})" for i, (source, _) in enumerate(pairs)]
    lines += [f"%b{i} = {_written(target)} bitcast(%p{i})" for i, (_, target) in enumerate(pairs)]
    types = ", ".join(_written(target) for _, target in pairs)
    names = ", ".join(f"%b{i}" for i in range(len(pairs)))
    text = module("\n".join([*lines, f"ROOT %t = ({types}) tuple({names})"]))
    values = [_numbers(source) for source, _ in pairs]
    made = run_hlo(text, *values)
    for value, result, (source, target) in zip(values, made, pairs, strict=True):
        wanted = _bitcast(value, source, target)
        assert result.tobytes() == wanted.tobytes(), (_written(source), _written(target))


def _numbers(shape: Shape) -> np.ndarray:
    """No two alike, none zero, and no NaN: that one's bits may change on the way."""
    numbers = np.arange(1, shape.size + 1).reshape(shape.extents)
    dtype = numpy_type(shape.element)
    if dtype.itemsize == 2:
        return (numbers % 0x7000 + 1).astype(np.uint16).view(dtype)
    return numbers.astype(dtype)


@pytest.mark.thorough
@given(pairs=st.lists(st.tuples(_shapes(), _shapes()), min_size=6, max_size=6))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_bitcast_gives_the_same_memory_another_shape(
    pairs: list[tuple[Shape, Shape]], run_hlo: Run
) -> None:
    _check(pairs, run_hlo)


@pytest.mark.thorough
@given(
    shapes=st.lists(_shapes(), min_size=6, max_size=6),
    order=st.permutations(range(3)),
)
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_bitcast_to_ones_more_and_another_order(
    shapes: list[Shape], order: list[int], run_hlo: Run
) -> None:
    """What compilers write most: the same memory with its axes named in another order."""
    pairs = []
    for shape in shapes:
        rank = len(shape.extents)
        turned = [order.index(axis) if rank == 3 else axis for axis in range(rank)]
        extents = [0] * rank
        for axis, to in enumerate(turned):
            extents[to] = shape.extents[axis]
        to_order = tuple(turned[axis] for axis in shape.minor_to_major or ())
        pairs.append((shape, _alike(shape, tuple(extents), to_order)))
        one_more = (*(axis + 1 for axis in shape.minor_to_major or ()), 0)
        pairs.append((shape, _alike(shape, (1, *shape.extents), one_more)))
    _check(pairs, run_hlo)


def test_known_bitcasts_of_xla_tpu(run_hlo: Run) -> None:
    row, block = ((1024,),), ((8, 128),)
    packed, bytes_ = ((8, 128), (2, 1)), ((8, 128), (4, 1))
    _check(
        [
            # A row in tiles of 1,024 is one tile of 8 by 128, its padding too.
            (Shape("f32", (1000,), (0,), row), Shape("f32", (8, 128), (1, 0), block)),
            (Shape("f32", (8, 128), (1, 0), block), Shape("f32", (1024,), (0,), row)),
            (Shape("f32", (3, 5), (0, 1), ()), Shape("f32", (5, 3), (1, 0), ())),
            # Two of bfloat16 are one whole number of 32 bits: pairs of rows.
            (Shape("bf16", (16, 128), (1, 0), packed), Shape("u32", (8, 128), (1, 0), block)),
            (Shape("u32", (8, 128), (1, 0), block), Shape("bf16", (16, 128), (1, 0), packed)),
            (Shape("u32", (3, 7), (1, 0), ()), Shape("bf16", (3, 7, 2), (2, 1, 0), ())),
            (Shape("s8", (32, 128), (1, 0), bytes_), Shape("s32", (8, 128), (1, 0), block)),
            (Shape("bf16", (3,), (0,), ()), Shape("u32", (2,), (0,), ())),
            (Shape("f32", (), (), ()), Shape("f32", (1, 1), (1, 0), block)),
            (Shape("f32", (), (), ((128,),)), Shape("s32", (1,), (0,), ((128,),))),
            (Shape("f32", (0, 4), (1, 0), ()), Shape("f32", (4, 0), (1, 0), ())),
        ],
        run_hlo,
    )


def test_the_model_knows_a_tile() -> None:
    shape = Shape("bf16", (16, 256), (1, 0), ((8, 128), (2, 1)))
    places = [_place(shape, at)[0] for at in ((0, 0), (1, 0), (0, 1), (2, 0), (0, 128), (8, 0))]
    assert places == [0, 1, 2, 256, 1024, 2048]
    assert ml_dtypes.bfloat16 == numpy_type("bf16")


def test_booleans_are_bytes_of_0_and_1(run_hlo: Run) -> None:
    text = module(
        "%p0 = pred[]{:T(512)} parameter(0)\n%w = u32[]{:T(128)} bitcast(%p0)\n"
        "%p1 = pred[6]{0} parameter(1)\n%v = u32[2]{0} bitcast(%p1)\n"
        "%b = pred[8]{0} bitcast(%v)\n"
        "ROOT %t = (u32[]{:T(128)}, u32[2]{0}, pred[8]{0}) tuple(%w, %v, %b)"
    )
    six = np.array([True, False, True, True, False, True])
    word, words, eight = run_hlo(text, np.array(True), six)  # noqa: FBT003
    assert int(word) == 1
    assert words.tolist() == [0x01010001, 0x00000100]
    assert eight.tolist() == [*six.tolist(), False, False]


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("f32[4,4]{1,0:T(*,128)}", "f32[16]{0}", "tiles that join axes"),
    ],
)
def test_memory_that_is_not_known_is_refused_in_words(source: str, target: str, words: str) -> None:
    text = module(f"%p = {source} parameter(0)\nROOT %b = {target} bitcast(%p)")
    with pytest.raises(NotKnownError) as error:
        translate(text)
    assert str(error.value) == words
