"""Static arguments, and the way of calling."""

from __future__ import annotations

import functools
from typing import Any

import jax

from tools.catalogue.case import arr, case


@case("f", ["first-call f"], ["static-argument n"])
def _static_by_number() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, n: int) -> Any:
        return n * x

    f(arr(3), 2)
    f(arr(3), 7)


@case("f", ["first-call f"], ["static-argument n"])
def _static_by_name() -> None:
    @functools.partial(jax.jit, static_argnames="n")
    def f(x: Any, *, n: int) -> Any:
        return n * x

    f(arr(3), n=2)
    f(arr(3), n=7)


class Settings:
    """A class without `__eq__`."""


@case("f", ["first-call f"], ["static-argument settings"])
def _static_object_without_eq() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def f(x: Any, settings: Settings) -> Any:  # noqa: ARG001
        return 2 * x

    f(arr(3), Settings())
    f(arr(3), Settings())


class Scale:
    """A class with a jitted method."""

    def __init__(self, by: int) -> None:
        self.by = by

    @functools.partial(jax.jit, static_argnums=0)
    def apply(self, x: Any) -> Any:
        """The method."""
        return self.by * x


@case("apply", ["first-call apply"], ["static-argument self"])
def _method_with_static_self() -> None:
    Scale(2).apply(arr(77))
    Scale(3).apply(arr(77))


@case("f", ["first-call f"], ["call-convention x"])
def _positional_then_keyword() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    f(x=arr(3))
