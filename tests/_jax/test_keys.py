"""Random keys as numbers: what is private to JAX of them."""

from typing import Any

import jax
import numpy as np
import pytest

from jitcount._jax.keys import is_key, keys_of, numbers_of


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_keys_are_the_same_after_going_through_their_numbers(impl: str) -> None:
    keys = jax.random.split(jax.random.key(3, impl=impl), 2)
    again = keys_of(numbers_of(keys), keys.dtype)
    assert again.dtype == keys.dtype
    assert (numbers_of(again) == numbers_of(keys)).all()


class WithoutImplementation:
    """A dtype that says less than today's."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_the_dtypes_name_will_do(impl: str) -> None:
    key = jax.random.key(3, impl=impl)
    plain: Any = WithoutImplementation(str(key.dtype.name))
    assert keys_of(numbers_of(key), plain).dtype == key.dtype


def test_other_dtypes_are_no_keys() -> None:
    assert is_key(jax.random.key(0).dtype)
    assert not is_key(np.dtype(np.float32))
