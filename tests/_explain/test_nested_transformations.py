"""Transformations in each other: all of them are said, the outermost first."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import partial_eval

import jitcount
from jitcount._registry import registry

X, Y = np.ones(3, np.float32), np.ones(4, np.float32)
ONE = np.float32(1)


@jax.jit
def k(a: Any, b: Any) -> Any:
    return a * jnp.sin(b)


def said(*programs: Callable[[], Any]) -> list[str]:
    """Of each compile of `k` in some programs, what its causes say."""
    jax.clear_caches()
    with registry.own_history(), jitcount.record() as log:
        for program in programs:
            program()
    return [" + ".join(map(str, c.causes)) for c in log.compiles if c.function == "k"]


def outer(a: Any, b: Any) -> Any:
    """Each of `a` with each of `b`."""
    return jax.vmap(jax.vmap(k, (None, 0)), (0, None))(a, b)


@pytest.mark.parametrize(
    ("program", "under"),
    [
        (lambda: outer(X, Y), "vmap of vmap"),
        (lambda: jax.grad(lambda a: jax.vmap(k, (0, None))(a, ONE).sum())(X), "grad of vmap"),
        (lambda: jax.vmap(jax.grad(k), (0, None))(X, ONE), "vmap of grad"),
        (lambda: jax.jvp(k, (X, X), (X, X)), "jvp"),
        (lambda: jax.jvp(jax.vmap(k), (X, X), (X, X)), "jvp of vmap"),
        (lambda: jax.vmap(lambda a: jax.jvp(k, (a, a), (a, a)))(X), "vmap of jvp"),
        (lambda: jax.grad(jax.grad(k))(ONE, ONE), "grad of grad"),
        (lambda: jax.jvp(jax.grad(k), (ONE, ONE), (ONE, ONE)), "jvp of grad"),
        (lambda: jax.hessian(k)(ONE, ONE), "vmap of jvp of grad"),
        (lambda: jax.grad(lambda a: jax.checkpoint(k)(a, a).sum())(X), "grad"),
    ],
)
def test_the_first_call_says_all_of_them(program: Callable[[], Any], under: str) -> None:
    assert said(program)[0] == f"first call of k under {under}"


def test_calling_again_compiles_nothing() -> None:
    assert len(said(lambda: outer(X, Y), lambda: outer(X, Y))) == 1


def test_a_batch_of_another_size_is_said_of_the_array() -> None:
    first, second = said(lambda: outer(X, Y), lambda: outer(X, X))
    assert first == "first call of k under vmap of vmap"
    assert second == "axis 0 of b went from 4 to 3: float32[4] became float32[3]"


def test_other_axes_are_said_with_all_transformations() -> None:
    def inner_over(axis: int) -> Callable[[], Any]:
        square = np.ones((4, 4), np.float32)
        return lambda: jax.vmap(jax.vmap(k, (None, axis)), (0, None))(Y, square)

    assert said(inner_over(0), inner_over(1))[1] == (
        "k is compiled under vmap over axis 0 of a around vmap over axis 1 of b, "
        "and was under vmap over axis 0 of a around vmap over axis 0 of b"
    )


def test_a_vmap_that_maps_none_of_the_arguments_is_said_with_its_size() -> None:
    """To JAX that is another program: it batches the function for each size."""

    def over(batch: Any) -> Callable[[], Any]:
        return lambda: jax.vmap(lambda v: v * k(ONE, ONE))(batch)

    *_, last = said(over(X), over(Y))
    assert last == (
        "k is compiled under vmap of size 4 over none of its arguments, and was with a size of 3"
    )


def test_only_the_inner_ones_size_has_changed() -> None:
    def inner(batch: Any) -> Callable[[], Any]:
        return lambda: jax.vmap(lambda a: jax.vmap(lambda v: v * k(a, ONE))(batch))(X)

    *_, last = said(inner(X), inner(Y))
    assert last == (
        "k is compiled under vmap over axis 0 of a around vmap of size 4 over none of its "
        "arguments, and was with a size of 3"
    )


def test_the_name_of_an_axis_is_said() -> None:
    plain, named = said(lambda: jax.vmap(k)(X, X), lambda: jax.vmap(k, axis_name="batch")(X, X))
    assert plain == "first call of k under vmap"
    assert named == (
        "k is compiled under vmap with axis_name='batch' over axis 0 of every argument, "
        "and was under vmap over axis 0 of every argument"
    )


def test_what_vjp_and_linearize_compile_is_told_apart() -> None:
    def linearized() -> Any:
        return jax.linearize(k, X, X)[0]

    by_vjp, *rest = said(lambda: jax.vjp(k, X, X), linearized)
    assert by_vjp == "first call of k under grad"
    # JAX 0.7 takes both for one.
    assert rest in (["first call of k under linearize"], [])


def test_no_gradient_is_said_where_nothing_takes_one() -> None:
    """What flax' `nn.scan` does with its body: JAX evaluates what is known of the arguments."""

    def body(a: Any) -> Any:
        return a, k(ONE, ONE)

    def evaluated() -> None:
        # Private: so flax calls it, too.
        partial_eval.trace_to_jaxpr_nounits(
            jax.extend.linear_util.wrap_init(body, debug_info=debug_info(body)),
            [partial_eval.PartialVal.unknown(jax.typeof(jnp.asarray(X)))],
        )

    assert said(evaluated, evaluated) == ["first call of k"]


def debug_info(fun: Any) -> Any:
    from jax._src.api_util import debug_info as of  # noqa: PLC0415

    return of("body", fun, (X,), {})
