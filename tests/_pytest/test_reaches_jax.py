"""Which tests may have computed with JAX: those that do not are not called again."""

from __future__ import annotations

import functools
import json
import unittest
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jitcount._pytest.reaches_jax import reaches_jax

if TYPE_CHECKING:
    from collections.abc import Callable

double = jax.jit(lambda x: 2 * x)
ARRAY = np.ones(3)


class Model:
    def __init__(self, step: Any = None) -> None:
        self.step = step

    def run(self) -> Any:
        return double(ARRAY)


class Plain:
    def run(self) -> Any:
        return json.dumps(ARRAY.tolist())


def helper() -> Any:
    return Model().run()


def plain() -> Any:
    return Plain().run()


def uses_a_helper() -> Any:
    return helper()


def imports_it() -> Any:
    import jax.numpy  # noqa: PLC0415

    return jax.numpy


def in_a_lambda() -> Any:
    return [lambda x: jnp.sin(x) + 1]


class TestCase(unittest.TestCase):
    def test_it(self) -> None:
        assert double(1) == 2


@pytest.mark.parametrize(
    "things",
    [
        (uses_a_helper,),
        (imports_it,),
        (in_a_lambda,),
        (plain, double),
        (plain, Model(double)),
        (plain, {"f": [double]}),
        (functools.partial(print, double),),
        (TestCase("test_it").test_it,),
        (plain, lambda: lax.add),
    ],
)
def test_what_names_jax_may_compute(things: tuple[Any, ...]) -> None:
    assert reaches_jax(*things)


def _closure(held: Any) -> Callable[[], Any]:
    return lambda: held


def test_closures_are_looked_into() -> None:
    assert reaches_jax(_closure(double))
    assert not reaches_jax(_closure(ARRAY))


@pytest.mark.parametrize("things", [(plain,), (plain, ARRAY, Plain(), "text"), (Plain().run,)])
def test_what_does_not_may_not(things: tuple[Any, ...], tmp_path: Any) -> None:
    assert not reaches_jax(*things, tmp_path)
