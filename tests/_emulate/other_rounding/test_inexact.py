"""Which arrays come from functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from jitcount._emulate.other_rounding.inexact import Inexact
from jitcount._jax.rewriting import functions_in

if TYPE_CHECKING:
    from collections.abc import Callable


def _returns_inexact(f: Callable[..., Any]) -> bool:
    module = jax.jit(f).lower(jnp.ones((3, 3))).compiler_ir("stablehlo")
    functions = functions_in(module)
    found = Inexact(functions)
    (returned,) = functions["main"][-1].mlir.operands
    return found.has(returned)


def test_what_comes_from_a_function_is_inexact_however_it_was_moved() -> None:
    assert _returns_inexact(lambda x: jnp.tanh(x).T[1:] * x[1:] + 1)
    assert _returns_inexact(lambda x: x @ jnp.exp(x))
    assert _returns_inexact(lambda x: jax.jit(jnp.sin)(x) / 2)
    assert _returns_inexact(lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.exp(y) - 1, x))


def test_of_all_else_it_is_not_known() -> None:
    assert not _returns_inexact(lambda x: x * 3 + 1)
    assert not _returns_inexact(lambda x: jnp.sqrt(x) / 2)
    assert not _returns_inexact(lambda x: jnp.floor(jnp.exp(x)))
    assert not _returns_inexact(lambda x: jax.jit(jnp.negative)(x) + 1)
    assert not _returns_inexact(lambda x: lax.fori_loop(0, 3, lambda _, y: y + y, x))
