"""Which earlier program is the nearest: of the same function, then by what reaches farthest.

In each, the last program has a neighbour that differs in one thing that reaches far, and one of its
own that differs in many arrays. The arrays are what changed.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from tools.catalogue.case import arr, case
from tools.catalogue.pytrees import State


def batch(length: int) -> tuple[Any, Any]:
    """Two arrays that are as long as each other."""
    return arr(length, 4), arr(length)


@case("step", ["first-call step"], ["shape x", "shape y"], ["new-function"], ["shape x", "shape y"])
def _two_closures_of_one_line() -> None:
    def make(rate: float) -> Any:
        @jax.jit
        def step(w: Any, x: Any, y: Any) -> Any:
            return w - rate * jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)

        return step

    for step in make(0.1), make(0.2):
        for length in 32, 7:
            step(arr(4), *batch(length))


class Agent:
    """A class whose objects each have a jitted method."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.update = jax.jit(self._update)

    def _update(self, w: Any, x: Any, y: Any) -> Any:
        return w - self.rate * jnp.mean(x @ w - y)


_AS_SHAPES = ["shape x", "shape y"]


@case("_update", ["first-call _update"], ["new-function"], _AS_SHAPES, _AS_SHAPES)
def _methods_of_two_objects() -> None:
    agents = Agent(0.1), Agent(0.2)
    for length in 32, 7:
        for agent in agents:
            agent.update(arr(4), *batch(length))


class Learner:
    """A class with a jitted method, of which `self` is static."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    @functools.partial(jax.jit, static_argnums=0)
    def update(self, w: Any, x: Any, y: Any) -> Any:
        """The method."""
        return w - self.rate * jnp.mean(x @ w - y)


@case("update", ["first-call update"], ["static-argument self"], _AS_SHAPES, _AS_SHAPES)
def _static_self_of_two_objects() -> None:
    learners = Learner(0.1), Learner(0.2)
    for length in 32, 7:
        for learner in learners:
            learner.update(arr(4), *batch(length))


_AS_BATCH = ["shape batch['mask']", "shape batch['x']", "shape batch['y']"]


@case("apply", ["first-call apply"], _AS_BATCH, ["static-argument train"], _AS_BATCH)
def _train_and_eval_with_ragged_batches() -> None:
    @functools.partial(jax.jit, static_argnames="train")
    def apply(w: Any, batch: Any, train: bool) -> Any:  # noqa: FBT001
        total = (batch["x"] @ w + batch["y"] * batch["mask"]).sum()
        return total if train else -total

    for train in True, False:
        for length in 32, 32, 7:
            ragged = {"x": arr(length, 4), "y": arr(length), "mask": arr(length)}
            apply(arr(4), ragged, train=train)


@case("f", ["first-call f"], ["jit-options donate_argnums"], _AS_SHAPES, _AS_SHAPES)
def _two_jits_one_with_donation() -> None:
    def f(x: Any, y: Any) -> Any:
        return x.sum(1) + y

    kept, donated = jax.jit(f), jax.jit(f, donate_argnums=1)
    for length in 32, 7:
        for jitted in kept, donated:
            jitted(*batch(length))


@case(
    "f",
    ["first-call f"],
    ["config jax_default_matmul_precision"],
    ["shape x", "shape y"],
    ["shape x", "shape y"],
)
def _block_with_a_setting() -> None:
    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return x.sum(1) + y

    f(*batch(32))
    with jax.default_matmul_precision("float32"):
        f(*batch(32))
        f(*batch(7))
    f(*batch(7))


@case(
    "f",
    ["first-call f"],
    ["pytree batch"],
    ["shape batch['x']", "shape batch['y']"],
    _AS_BATCH,
)
def _optional_key_that_was_there_before() -> None:
    @jax.jit
    def f(batch: Any) -> Any:
        return sum(value.sum() for value in batch.values())

    def of(length: int, *keys: str) -> dict[str, Any]:
        return {key: arr(length) for key in keys}

    f(of(32, "x", "y", "mask"))
    f(of(32, "x", "y"))
    f(of(7, "x", "y"))
    f(of(7, "x", "y", "mask"))


@case("f", ["first-call f"], ["pytree model"], ["static-argument model.name"], ["shape model.w"])
def _another_type_that_was_there_before() -> None:
    @jax.jit
    def f(model: Any) -> Any:
        return jax.tree.map(lambda x: 2 * x, model)

    f({"w": arr(3)})
    f(State(arr(3), "a"))
    f(State(arr(3), "b"))
    f(State(arr(5), "b"))


@case(
    "f",
    ["first-call f"],
    ["config jax_default_matmul_precision", "static-argument model.name"],
    ["config jax_default_matmul_precision"],
)
def _static_field_reaches_farther_than_a_setting() -> None:
    @jax.jit
    def f(model: Any) -> Any:
        return 2 * model.w

    f(State(arr(3), "a"))
    with jax.default_matmul_precision("float32"):
        f(State(arr(3), "b"))
    f(State(arr(3), "b"))


@case("f", ["first-call f"], ["pytree n"], ["static-argument n"])
def _optional_static_argument_given_before() -> None:
    @functools.partial(jax.jit, static_argnames="n")
    def f(x: Any, n: int = 1) -> Any:
        return n * x

    f(arr(3))
    f(arr(3), n=2)
    f(arr(3), n=3)
