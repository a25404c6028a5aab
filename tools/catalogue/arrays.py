"""Arrays of another shape or dtype, and which earlier program is the nearest."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tools.catalogue.case import arr, case


@case("f", ["first-call f"])
def _first_call() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))


@case("f", ["first-call f"], ["shape x"])
def _shape() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    f(arr(5))


@case("sum", ["first-call sum"], ["shape a"])
def _shape_of_jnp_sum() -> None:
    jitted = jax.jit(jnp.sum)
    jitted(arr(3))
    jitted(arr(5))


@case("f", ["first-call f"], ["shape x"])
def _rank() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    f(arr(1, 3))


@case("f", ["first-call f"], ["dtype x"])
def _dtype() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    f(arr(3, dtype="int32"))


@case("f", ["first-call f"], ["weak-type x"])
def _weak_type() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(1.0)
    f(np.float32(1.0))


@case("f", ["first-call f"], ["shape x", "dtype x"])
def _shape_and_dtype() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    f(arr(5, dtype="int32"))


@case(
    "f",
    ["first-call f"],
    ["shape x", "dtype y"],
)
def _two_arguments_at_once() -> None:
    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return 2 * x, y

    f(arr(3), arr(2))
    f(arr(5), arr(2, dtype="int32"))


@case(
    "f",
    ["first-call f"],
    ["static-argument n"],
    ["shape x"],
)
def _nearest_of_many_is_not_the_latest() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, n: int) -> Any:
        return n * x

    f(arr(3), 2)
    f(arr(3), 7)
    f(arr(5), 2)


@case(
    "f",
    ["first-call f"],
    ["shape x"],
    ["shape x"],
    ["shape y"],
)
def _nearest_of_many_shapes() -> None:
    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return x, y

    f(arr(30), arr(2))
    f(arr(20), arr(2))
    f(arr(10), arr(2))
    f(arr(20), arr(4))
