"""Values in a few words."""

import time
from typing import NoReturn

import jax
import numpy as np

from jitcount._observe.texts import text_of


def test_an_array_is_written_as_its_shape_wherever_it_is() -> None:
    array = np.ones((2, 2), np.float32)
    assert text_of(array) == "float32[2,2]"
    assert text_of({"a": [jax.device_put(array)]}) == "{'a': [float32[2,2]]}"


def test_a_text_is_one_short_line() -> None:
    long = text_of("x" * 1000)
    assert len(long) == 80
    assert long.endswith("x…")
    assert text_of(tuple(range(100))) == "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …)"


class Shy:
    def __repr__(self) -> NoReturn:
        raise RuntimeError("not now")


class Slow:
    def __init__(self) -> None:
        self.name = "slow"

    def __repr__(self) -> str:
        time.sleep(60)
        return ""


def test_the_users_repr_is_not_asked() -> None:
    assert text_of(Shy()) == "Shy()"
    assert text_of(Slow()) == "Slow(name='slow')"


def test_what_jax_returns_for_a_function_is_written_as_that_function() -> None:
    assert text_of(jax.nn.relu) == "relu"
    assert text_of(jax.jit(jax.numpy.tanh)) == "tanh"


def test_an_object_that_holds_itself_ends() -> None:
    class Knot:
        pass

    knot = Knot()
    knot.__dict__["inner"] = knot
    assert text_of(knot).startswith("Knot(inner=Knot(inner=")
