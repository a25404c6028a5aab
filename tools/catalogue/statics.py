"""What is compiled in: values, configurations, objects, and the static fields of pytrees."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tools.catalogue.case import arr, case


@case("f", ["first-call f"], ["shape x", "shape y"], ["static-argument mode"])
def _static_argnums_given_by_keyword() -> None:
    @functools.partial(jax.jit, static_argnums=2)
    def f(x: Any, y: Any, mode: str) -> Any:
        return x + y if mode == "add" else x * y

    # 2 is a number beyond the two arrays: neither of them is static.
    f(arr(3), arr(3), mode="add")
    f(arr(5), arr(5), mode="add")
    f(arr(5), arr(5), mode="multiply")


class Axis:
    """It can be compared, and its text says nothing."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and self.axis == other.axis

    def __hash__(self) -> int:
        return hash(self.axis)


@case("f", ["first-call f"], ["shape x"], ["shape x"])
def _equal_objects_with_the_default_repr() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, axis: Axis) -> Any:
        return x.sum(axis.axis)

    axes = [Axis(0) for _ in range(3)]
    for length, axis in zip((3, 4, 5), axes, strict=True):
        f(arr(length), axis)


@case("f", ["first-call f"], ["static-argument axis"])
def _numbers_with_one_hash() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, axis: int) -> Any:
        return x.sum(axis)

    f(arr(3, 4), -1)
    f(arr(3, 4), -2)  # hash(-2) == hash(-1)


@case("f", ["first-call f"], ["static-argument axis.axis"])
def _objects_with_one_hash() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, axis: Axis) -> Any:
        return x.sum(axis.axis)

    f(arr(3, 4), Axis(-1))
    f(arr(3, 4), Axis(-2))


@dataclass(frozen=True)
class Optimizer:
    """A configuration in a configuration."""

    name: str = "adam"
    rate: float = 1e-3


@dataclass(frozen=True)
class Config:
    """More fields than fit into a sentence."""

    vocabulary: int = 32000
    hidden: int = 4096
    layers: int = 32
    heads: int = 32
    dropout: float = 0.1
    optimizer: Optimizer = field(default_factory=Optimizer)
    sequence: int = 128


def _configured(*configs: Config) -> None:
    @functools.partial(jax.jit, static_argnames="config")
    def f(x: Any, config: Config) -> Any:
        return config.sequence * x

    for config in configs:
        f(arr(3), config=config)


@case("f", ["first-call f"], ["static-argument config.sequence"])
def _one_field_of_a_configuration() -> None:
    _configured(Config(), Config(), replace(Config(), sequence=256))


@case("f", ["first-call f"], ["static-argument config.optimizer.rate"])
def _field_of_a_field_of_a_configuration() -> None:
    _configured(Config(), replace(Config(), optimizer=Optimizer(rate=1e-4)))


@case("f", ["first-call f"], ["static-argument config.hidden", "static-argument config.heads"])
def _two_fields_of_a_configuration() -> None:
    _configured(Config(), replace(Config(), hidden=2048, heads=16))


class Mode(enum.Enum):
    """What many a static argument is."""

    TRAIN = "train"
    EVAL = "eval"


@case("f", ["first-call f"], ["static-argument mode"], ["shape x"])
def _enum() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, mode: Mode) -> Any:
        return x if mode is Mode.TRAIN else 2 * x

    f(arr(3), Mode.TRAIN)
    f(arr(3), Mode.EVAL)
    f(arr(5), Mode.EVAL)


@case("f", ["first-call f"], ["static-argument activation"])
def _static_function() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, activation: Any) -> Any:
        return activation(x)

    f(arr(3), jnp.sin)
    f(arr(3), jnp.cos)


@case("f", ["first-call f"], ["static-argument activation"])
def _static_function_that_is_made_anew() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, activation: Any) -> Any:
        return activation(x)

    for _ in range(2):
        f(arr(3), lambda x: 2 * x)


# --- Static fields of pytrees ---------------------------------------------------------------------


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["notes", "apply", "steps"]
)
@dataclass
class Model:
    """A state in the manner of the libraries': arrays, and what is compiled in beside them."""

    w: Any
    notes: Any = "as long a text as would fill a sentence by itself, and leave room for no other"
    apply: Any = jnp.sin
    steps: int = 1


def _with_models(*models: Model) -> None:
    @jax.jit
    def f(model: Model) -> Any:
        return model.steps * model.w

    for model in models:
        f(model)


class Tag:
    """A class without `__eq__`."""


@case("f", ["first-call f"], ["static-argument model.notes"])
def _object_in_a_static_field() -> None:
    _with_models(Model(arr(3), Tag()), Model(arr(3), Tag()))


@case("f", ["first-call f"], ["static-argument model.apply"])
def _function_in_a_static_field() -> None:
    _with_models(Model(arr(3)), Model(arr(3), apply=jnp.cos))


@case("f", ["first-call f"], ["static-argument model.steps"])
def _number_in_a_static_field() -> None:
    _with_models(Model(arr(3)), Model(arr(3), steps=2))


@case("f", ["first-call f"], ["static-argument model.steps", "shape model.w"])
def _static_field_and_array() -> None:
    _with_models(Model(arr(3)), Model(arr(5), steps=2))


class Named(NamedTuple):
    """It is registered as a node of its own, so that JAX does not walk its fields."""

    x: Any
    name: str


jax.tree_util.register_pytree_node(
    Named, lambda named: ((named.x,), named.name), lambda name, children: Named(children[0], name)
)


@case("f", ["first-call f"], ["shape named.x"], ["static-argument named.name"])
def _registered_namedtuple() -> None:
    @jax.jit
    def f(named: Named) -> Any:
        return 2 * named.x

    f(Named(arr(3), "a"))
    f(Named(arr(5), "a"))
    f(Named(arr(5), "b"))


# --- Arrays that are not static -------------------------------------------------------------------


@case("_reduce_all", ["first-call _reduce_all"], ["shape a"], ["shape a"], ["shape a"])
def _array_of_jnp_all() -> None:
    for shape in (3, 5), (5, 5), (500, 500), (600, 500):
        jnp.all(np.ones(shape, bool))


@case("_uniform", ["first-call _uniform"], ["static-argument shape"], ["static-argument shape"])
def _key_of_random_uniform() -> None:
    for length in 3, 4, 5:
        jax.random.uniform(jax.random.key(length), (length,))
