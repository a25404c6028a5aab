"""Arguments of another structure."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from tools.catalogue.case import arr, case


@case("f", ["first-call f"], ["pytree params"])
def _dict_key() -> None:
    @jax.jit
    def f(params: Any) -> Any:
        return params

    f({"w": arr(3)})
    f({"w": arr(3), "b": arr(3)})


@case("f", ["first-call f"], ["pytree xs"])
def _list_length() -> None:
    @jax.jit
    def f(xs: Any) -> Any:
        return xs

    f([arr(3)])
    f([arr(3), arr(3)])


@case("f", ["first-call f"], ["pytree xs"])
def _container_type() -> None:
    @jax.jit
    def f(xs: Any) -> Any:
        return xs

    f([arr(3)])
    f((arr(3),))


@case("f", ["first-call f"], ["pytree mask"])
def _none_then_array() -> None:
    @jax.jit
    def f(x: Any, mask: Any) -> Any:
        return x, mask

    f(arr(3), None)
    f(arr(3), arr(3))


@case("f", ["first-call f"], ["pytree mask"])
def _optional_argument_given() -> None:
    @jax.jit
    def f(x: Any, mask: Any = None) -> Any:
        return x, mask

    f(arr(3))
    f(arr(3), arr(3))


@case(
    "f",
    ["first-call f"],
    ["shape params['dense']['kernel']"],
)
def _nested_pytree() -> None:
    @jax.jit
    def f(params: Any) -> Any:
        return params

    f({"dense": {"kernel": arr(3), "bias": [arr(1), arr(2)]}})
    f({"dense": {"kernel": arr(5), "bias": [arr(1), arr(2)]}})


class Batch(NamedTuple):
    """A namedtuple."""

    tokens: Any
    mask: Any


@case("f", ["first-call f"], ["shape batch.tokens"])
def _namedtuple() -> None:
    @jax.jit
    def f(batch: Any) -> Any:
        return batch

    f(Batch(arr(3), arr(3)))
    f(Batch(arr(5), arr(3)))


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["name"])
@dataclass
class State:
    """A dataclass with a static field."""

    w: Any
    name: str


@case("f", ["first-call f"], ["shape state.w"])
def _dataclass() -> None:
    @jax.jit
    def f(state: Any) -> Any:
        return state

    f(State(arr(3), "a"))
    f(State(arr(5), "a"))


@case("f", ["first-call f"], ["static-argument state.name"])
def _dataclass_with_another_static_field() -> None:
    @jax.jit
    def f(state: Any) -> Any:
        return state

    f(State(arr(3), "a"))
    f(State(arr(3), "b"))


@case("f", ["first-call f"], ["shape key"])
def _prng_key() -> None:
    @jax.jit
    def f(key: Any) -> Any:
        return jax.vmap(jax.random.bits)(key) if key.ndim else jax.random.bits(key)

    key = jax.random.key(0)
    f(key)
    f(jax.random.split(key, 2))
