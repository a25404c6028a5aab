"""Values that are compiled in: told apart as JAX tells them apart, without keeping them."""

import dataclasses
import enum
import gc
import weakref
from typing import Any, NoReturn

from jitcount._observe.statics import describe_static


def same(one: Any, other: Any) -> bool:
    return describe_static(one).token == describe_static(other).token


def test_statics_are_the_same_where_jax_takes_them_as_equal() -> None:
    assert same("relu", "RELU".lower())
    assert same((1, "a"), (1, "a"))
    assert not same("relu", "gelu")


def test_equal_statics_of_two_types_are_two() -> None:
    assert not same(1, 1.0)
    assert not same(1, True)  # noqa: FBT003


def test_inside_of_a_static_value_equality_alone_decides() -> None:
    assert same((1,), (True,))
    assert same((1, (2,)), (1.0, (2.0,)))
    assert same(frozenset({1}), frozenset({True}))
    assert same(0.0, -0.0)
    assert not same((1,), (2,))
    assert not same((1,), frozenset({1}))


def test_what_is_not_a_number_is_the_same_as_itself_only() -> None:
    one, other = float("nan"), float("nan")
    assert same(one, one)
    assert not same(one, other)


def test_a_static_object_is_the_same_as_itself_only() -> None:
    one, other = object(), object()
    assert same(one, one)
    assert not same(one, other)
    assert describe_static(one).form == "object"
    assert describe_static("relu").form == "value"


def test_a_static_function_is_the_same_as_itself_only() -> None:
    one, other = [lambda: None for _ in range(2)]
    assert same(one, one)
    assert not same(one, other)
    assert describe_static(one).form == "function"


def test_a_static_that_cannot_be_hashed_is_described() -> None:
    assert same([1, 2], [1, 2])
    assert not same([1, 2], [1, 3])


class Axis:
    """Equal by its number, whose hash -1 and -2 share."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)


def test_values_whose_hashes_collide_are_told_apart() -> None:
    assert hash(-1) == hash(-2)
    assert not same(-1, -2)
    one, other = Axis(-1), Axis(-2)
    assert not same(one, other)
    assert same(one, Axis(-1))


def test_an_equal_object_is_the_same_after_the_first_is_gone() -> None:
    first = describe_static(Axis(-1))
    gc.collect()
    assert describe_static(Axis(-1)) == first
    assert describe_static(Axis(-2)) != first


def test_a_description_keeps_no_object_alive() -> None:
    axis = Axis(3)
    reference = weakref.ref(axis)
    description = describe_static(axis)
    del axis
    assert reference() is None
    assert description.text == "Axis(number=3)"


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Rate:
    value: float
    schedule: Any = len


@dataclasses.dataclass(frozen=True)
class Config:
    rate: Rate
    colour: Colour = Colour.RED
    name: str = "x" * 100


def test_fields_are_told_with_their_paths_and_those_of_their_fields() -> None:
    parts = {part.path: part.text for part in describe_static(Config(Rate(0.1))).parts}
    assert parts[".rate.value"] == "0.1"
    assert parts[".rate.schedule"] == "len"
    assert parts[".colour"] == "Colour.RED"


def test_values_that_differ_late_are_told_apart() -> None:
    assert not same(Config(Rate(0.1), name="x" * 100), Config(Rate(0.1), name="x" * 99 + "y"))
    assert not same("x" * 5000, "x" * 4999 + "y")


def test_a_slot_is_a_field() -> None:
    class Slotted:
        __slots__ = ("width",)

        def __init__(self, width: int) -> None:
            self.width = width

    assert [part.path for part in describe_static(Slotted(3)).parts] == [".width"]


def test_code_of_the_users_that_fails_is_no_error() -> None:
    class Shy:
        def __eq__(self, other: object) -> NoReturn:
            raise RuntimeError("not now")

        def __hash__(self) -> int:
            return 7

    assert describe_static(Shy()).text == describe_static(Shy()).text == "Shy()"
