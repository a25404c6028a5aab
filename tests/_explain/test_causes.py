"""What holds for the causes as a whole; `test_messages` has the words of each."""

from collections.abc import Iterator
from typing import get_args

from jitcount._explain.causes import AnyCause, Cause, Kind
from jitcount._explain.causes.arrays import Shape
from jitcount._observe.array_type import ArrayType


def without_subclasses(kind: type[Cause]) -> Iterator[type[Cause]]:
    for below in kind.__subclasses__():
        yield from without_subclasses(below)
    if not kind.__subclasses__():
        yield kind


def test_a_ledger_can_hold_every_cause() -> None:
    assert set(get_args(AnyCause)) == set(without_subclasses(Cause))


def test_every_kind_has_a_class() -> None:
    assert {cause.kind for cause in get_args(AnyCause)} == set(Kind)


def test_a_dtype_that_changes_too_is_not_said_with_the_shape() -> None:
    old, new = ArrayType("float32", (14,)), ArrayType("int32", ())
    assert Shape("x", old, new).changed == ("shape of x", "[14] → []")
    assert Shape("x", old, ArrayType("float32", ())).changed == ("x", "float32[14] → float32[]")
