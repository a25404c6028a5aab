"""Functions under transformations, and transformations that are made anew."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from tools.catalogue.case import arr, case


@case("f", ["first-call f"], ["static-argument n"])
def _static_argument_under_vmap() -> None:
    @functools.partial(jax.jit, static_argnames="n")
    def f(x: Any, n: int) -> Any:
        return jnp.sum(x**n)

    for n in 2, 3:
        jax.vmap(functools.partial(f, n=n))(arr(4, 3))


@case(
    "f",
    ["first-call f"],
    ["first-call f"],
    ["static-argument n"],
    ["new-function"],
)
def _static_argument_under_grad() -> None:
    @functools.partial(jax.jit, static_argnames="n")
    def f(x: Any, n: int) -> Any:
        return jnp.sum(x**n)

    for n in 2, 3:
        jax.grad(f)(arr(3), n=n)  # a forward pass and a backward pass


@case("f", ["first-call f"], ["pytree tree"], ["pytree tree"])
def _structure_under_vmap() -> None:
    @jax.jit
    def f(tree: Any) -> Any:
        return sum(leaf.sum() for leaf in jax.tree.leaves(tree))

    for tree in {"a": arr(4, 3)}, {"b": arr(4, 3)}, [arr(4, 3)]:
        jax.vmap(f)(tree)


@case("f", ["first-call f"], ["transform f"])
def _vmap_over_another_argument() -> None:
    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return jnp.dot(jnp.tanh(x), y)

    jax.vmap(f, (0, None))(arr(4, 3), arr(3))
    jax.vmap(f, (None, 0))(arr(3), arr(4, 3))


@case("f", ["first-call f"], ["shape x"], ["first-call f"])
def _with_and_without_vmap() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return jnp.cumsum(x)

    f(arr(3))
    f(arr(4))
    jax.vmap(f)(arr(2, 3))


def loss(w: Any, x: Any) -> Any:
    """A loss."""
    return jnp.sum((x @ w) ** 2)


@case("loss", ["first-call loss"], ["new-function"], ["new-function"])
def _value_and_grad_in_a_loop() -> None:
    for _ in range(3):
        jax.jit(jax.value_and_grad(loss))(arr(4), arr(3, 4))


@case("loss", ["first-call loss"], ["new-function"])
def _vmap_in_a_loop() -> None:
    for _ in range(2):
        jax.jit(jax.vmap(loss, in_axes=(None, 0)))(arr(4), arr(2, 3, 4))


@case("loss", ["first-call loss"], ["shape x"])
def _value_and_grad_that_is_made_once() -> None:
    step = jax.jit(jax.value_and_grad(loss))
    for length in 3, 3, 5:
        step(arr(4), arr(length, 4))


class Net:
    """An object that is called."""

    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: Any) -> Any:
        """What is compiled."""
        return self.by * x


@case("Net", ["first-call Net"], ["new-function"])
def _callable_objects() -> None:
    for by in 1, 2:
        jax.jit(Net(by))(arr(3))


@case("Net", ["first-call Net"], ["shape x"])
def _callable_object_that_is_made_once() -> None:
    jitted = jax.jit(Net(2))
    for length in 3, 5:
        jitted(arr(length))
