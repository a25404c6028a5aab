"""Arrays as descriptions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.export import symbolic_shape

from jitcount._observe.array_type import ArrayType
from jitcount._observe.values import Leaf, describe_leaf, signature_of
from jitcount._suite.sums import with_x64
from tools.catalogue.case import on, sharded


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


def test_what_has_no_hash_is_described_by_its_parts() -> None:
    """JAX 0.7.2 has such an array of its own, `LiteralArray`."""

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]
        shape, dtype, weak_type = (3,), np.dtype(np.float32), True

    leaf = describe_leaf(Unhashable())
    assert (str(leaf.type), leaf.is_weak) == ("float32[3]", True)
