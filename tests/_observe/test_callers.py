from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._observe.callers import ARRAY, OTHER, STATIC, TREE, kind_of


@dataclass(frozen=True)
class Sizes:
    width: int


class Loader:
    pass


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.ones(3), ARRAY),
        (0.5, ARRAY),
        ({"w": jnp.ones(3), "rate": 0.1}, TREE),
        ([], TREE),
        (64, STATIC),
        ("relu", STATIC),
        (None, STATIC),
        ((64, "relu"), STATIC),
        (Sizes(64), STATIC),
        (np.tanh, STATIC),
        (Loader, STATIC),
        ([64, 64], OTHER),
        ({"name": "relu"}, OTHER),
        (Loader(), OTHER),
        (iter([1.0, 2.0]), OTHER),  # of which JAX warns
        ([iter(())], OTHER),
    ],
)
def test_the_kind_of_an_argument_says_whether_a_jit_takes_it(value: object, kind: str) -> None:
    assert kind_of(value) == kind


def test_a_hash_of_the_users_is_not_called() -> None:
    class Costly:
        __eq__: Callable[[object, object], bool] = object.__eq__

        def __hash__(self) -> int:
            raise AssertionError

    assert kind_of(Costly()) == STATIC
