"""Operations outside of jit: each line has its own, and loops have bodies."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tools.catalogue.case import arr, case


@case("scan", ["first-call scan"], ["first-call scan"])
def _bodies_at_two_lines() -> None:
    jax.lax.scan(lambda c, x: (c + x.sum(), c), 0.0, arr(3, 4))
    jax.lax.scan(lambda c, x: (c - x.sum(), c), 0.0, arr(3, 4))


@case("scan", ["first-call scan"], ["new-function"])
def _body_that_is_made_anew() -> None:
    for _ in range(2):
        jax.lax.scan(lambda c, x: (c + x.sum(), c), 0.0, arr(3, 4))


def running_sum(carried: Any, x: Any) -> Any:
    """A body that is made once."""
    return carried + x.sum(), carried


@case("scan", ["first-call scan"], ["shape operand 1"])
def _body_that_is_made_once() -> None:
    for length in 3, 3, 5:
        jax.lax.scan(running_sum, 0.0, arr(length, 4))


@case("while", ["first-call while"], ["new-function", "new-function"])
def _condition_and_body_that_are_made_anew() -> None:
    for _ in range(2):
        jax.lax.while_loop(lambda n: n < 3, lambda n: n + 1, 0)


@case("cond", ["first-call cond"], ["new-function", "new-function"])
def _branches_that_are_made_anew() -> None:
    for number in range(2):
        jax.lax.cond(number > 0, lambda x: x + 1, lambda x: x - 1, arr(3))


def _one_more(x: Any) -> Any:
    return x + 1


def _one_less(x: Any) -> Any:
    return x - 1


@case("cond", ["first-call cond"], ["shape operand 1"])
def _branches_that_are_made_once() -> None:
    for length in 3, 3, 5:
        jax.lax.cond(length > 3, _one_more, _one_less, arr(length))


@case("multiply", ["first-call multiply"], ["first-call multiply"], ["first-call multiply"])
def _operations_at_unrelated_lines() -> None:
    image, tokens, weights = (jax.device_put(x) for x in (arr(2, 8, 8), arr(7), arr(20, 1)))
    _ = image * np.float32(2)
    _ = tokens * tokens
    _ = weights * 3.0


@case("sin", ["first-call sin"], ["first-call sin"], ["shape x"])
def _inside_and_outside_of_a_derivative_at_one_line() -> None:
    for length, derived in (3, False), (3, True), (5, True):
        x = arr(length)
        _ = jax.jvp(jnp.sin, (x,), (x,)) if derived else jnp.sin(x)


@case("sin", ["first-call sin"], ["shape x"], ["dtype x"])
def _operation_in_a_loop() -> None:
    for dtype, length in ("float32", 3), ("float32", 5), ("bfloat16", 5):
        jnp.sin(np.ones(length, dtype))
