"""Arrays and static values as descriptions."""

from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.export import symbolic_shape

from jitcount.observe.values import (
    ArrayType,
    Leaf,
    describe_leaf,
    describe_static,
    signature_of,
    text_of,
)
from jitcount.suite.catalogue.case import on, sharded
from jitcount.suite.sum_cases import with_x64


@pytest.mark.parametrize(
    ("value", "dtype", "is_weak"),
    [
        (1, "int32", True),
        (1.5, "float32", True),
        (1j, "complex64", True),
        (True, "bool", False),
        (np.float64(1.5), "float32", False),
        (np.bool_(True), "bool", False),  # noqa: FBT003
        (np.array(1, np.int64), "int32", False),
    ],
)
def test_a_scalar_is_described_as_jax_takes_it(value: Any, dtype: str, is_weak: bool) -> None:  # noqa: FBT001
    assert describe_leaf(value) == Leaf((), dtype, is_weak)
    aval = jax.typeof(jnp.asarray(value))
    assert (str(aval.dtype), aval.weak_type) == (dtype, is_weak)


def test_64_bits_are_told_where_they_are_on() -> None:
    assert describe_leaf(np.ones(3)).dtype == "float32"
    with with_x64():
        assert describe_leaf(np.ones(3)).dtype == "float64"
        assert describe_leaf(1).dtype == "int64"
    assert describe_leaf(np.ones(3)).dtype == "float32"


def test_an_array_of_jaxs_is_described_like_one_of_numpys() -> None:
    x = np.ones((2, 3), np.float32)
    assert describe_leaf(jax.numpy.asarray(x)) == describe_leaf(x)
    assert describe_leaf(jax.ShapeDtypeStruct((2, 3), np.float32)) == describe_leaf(x)


def test_a_prng_key_is_an_array() -> None:
    assert str(describe_leaf(jax.random.key(0)).type) == "key<fry>[]"


def test_only_a_committed_array_has_a_place() -> None:
    committed = describe_leaf(on(0, 3)).placement
    assert committed is not None
    assert (committed.text, committed.is_sharded) == (str(jax.devices()[0]), False)
    assert describe_leaf(jax.device_put(np.ones(3))).placement is None


@pytest.mark.two_devices
def test_a_sharded_array_is_placed_by_its_spec_and_its_mesh() -> None:
    rows, columns = (describe_leaf(sharded(*spec)).placement for spec in (("i",), (None, "i")))
    assert rows is not None
    assert rows.is_sharded
    assert rows != columns


def leaf(shape: tuple[int, ...] = (3,), dtype: str = "float32", *, is_weak: bool = False) -> Leaf:
    return Leaf(shape, dtype, is_weak)


@pytest.mark.parametrize(
    ("other", "differences"),
    [
        (leaf(), 0),
        (leaf((4,)), 1),
        (leaf(dtype="int32"), 1),
        (leaf((4,), "int32"), 2),
        (leaf(is_weak=True), 1),
        (leaf((4,), is_weak=True), 1),
        (leaf(dtype="int32", is_weak=True), 1),
    ],
)
def test_a_weak_type_is_a_difference_where_nothing_else_is(other: Leaf, differences: int) -> None:
    assert leaf().differences_from(other) == other.differences_from(leaf()) == differences


# --- Static values --------------------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    return describe_static(one).token == describe_static(other).token


def test_statics_are_the_same_where_jax_takes_them_as_equal() -> None:
    assert same("relu", "RELU".lower())
    assert same((1, "a"), (1, "a"))
    assert not same("relu", "gelu")


def test_equal_statics_of_two_types_are_two() -> None:
    assert not same(1, 1.0)
    assert not same(1, True)  # noqa: FBT003


def test_a_static_object_is_the_same_as_itself_only() -> None:
    one, other = object(), object()
    assert same(one, one)
    assert not same(one, other)
    assert describe_static(one).compares_by_identity
    assert not describe_static("relu").compares_by_identity


def test_a_static_function_is_the_same_as_itself_only() -> None:
    one, other = [lambda: None for _ in range(2)]
    assert same(one, one)
    assert not same(one, other)
    assert describe_static(one).is_function


def test_a_static_that_cannot_be_hashed_is_described() -> None:
    assert same([1, 2], [1, 2])
    assert not same([1, 2], [1, 3])


# --- Texts ----------------------------------------------------------------------------------------


def test_a_text_is_one_short_line() -> None:
    assert text_of(np.ones((2, 2))) == "array([[1., 1.], [1., 1.]])"
    long = text_of("x" * 1000)
    assert len(long) == 80
    assert long.endswith("x…")


def test_a_repr_that_fails_is_no_error() -> None:
    class Shy:
        def __repr__(self) -> NoReturn:
            raise RuntimeError("not now")

    assert text_of(Shy()).endswith("Shy>")


def test_an_array_type_is_written_as_people_do() -> None:
    assert str(ArrayType("float32", (), is_weak=True)) == "weak float32[]"
    assert str(ArrayType("int8", (2, "batch"))) == "int8[2,batch]"


def test_a_signature_has_what_is_no_array_too() -> None:
    (symbol,) = symbolic_shape("batch")
    avals = [jax.ShapeDtypeStruct((symbol, 3), np.float32), "Tok"]
    assert signature_of(avals) == ("float32[batch,3]", "Tok")


def test_a_leaf_with_a_symbol_for_a_length_can_be_written_down() -> None:
    (symbol,) = symbolic_shape("batch")
    assert describe_leaf(jax.ShapeDtypeStruct((symbol, 3), np.float32)).type == ArrayType(
        "float32", ("batch", 3)
    )
