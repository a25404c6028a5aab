"""Functions: made anew, transformed, other people's."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from tools.catalogue.case import arr, case


@case("<lambda>", ["first-call <lambda>"], ["new-function"])
def _lambda_in_a_loop() -> None:
    for _ in range(2):
        jax.jit(lambda x: 2 * x)(arr(3))


@case("inner", ["first-call inner"], ["new-function"])
def _closure_in_a_loop() -> None:
    def make(by: int) -> Any:
        def inner(x: Any) -> Any:
            return by * x

        return inner

    for by in range(2):
        jax.jit(make(by))(arr(3))


@case("scaled", ["first-call scaled"], ["new-function"])
def _partial_in_a_loop() -> None:
    def scaled(by: int, x: Any) -> Any:
        return by * x

    for by in range(2):
        jax.jit(functools.partial(scaled, by))(arr(3))


@case("inner", ["first-call inner"], ["first-call inner"])
def _two_functions_behind_one_decorator() -> None:
    def jitted(function: Any) -> Any:
        def inner(x: Any) -> Any:
            return function(x)

        return jax.jit(inner)

    jitted(lambda x: 2 * x)(arr(3))
    jitted(lambda x: 3 * x)(arr(3))


@case("f", ["first-call f"], ["shape x"])
def _jit_inside_jit() -> None:
    inner = jax.jit(lambda x: 3 * x)

    @jax.jit
    def f(x: Any) -> Any:
        return 2 * inner(x)

    f(arr(3))
    f(arr(5))


@case("f", ["first-call f"], ["shape x"])
def _vmap_of_a_jitted_function() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    jax.vmap(f)(arr(2, 3))
    jax.vmap(f)(arr(2, 5))


@case("f", ["first-call f"], ["shape x"])
def _jit_of_grad() -> None:
    @jax.jit
    @jax.grad
    def f(x: Any) -> Any:
        return (x * x).sum()

    f(arr(3))
    f(arr(5))


@case(
    "f",
    ["first-call f"],
    ["first-call f"],
    ["shape x"],
    ["shape argument 0"],
)
def _grad_of_a_jitted_function() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return jnp.sin(x).sum()

    jax.grad(f)(arr(3))
    jax.grad(f)(arr(5))


@case("f", ["first-call f"], ["first-call f"], ["transform f"], ["transform f"])
def _grad_by_another_argument() -> None:
    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return (jnp.tanh(x) * y).sum()

    jax.grad(f, 0)(arr(3), arr(3))
    jax.grad(f, 1)(arr(3), arr(3))


@case("f", ["first-call f"], ["transform f"])
def _vmap_over_another_axis() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return jnp.cumsum(x)

    jax.vmap(f, 0)(arr(4, 4))
    jax.vmap(f, 1)(arr(4, 4))


@case("f", ["first-call f"], ["shape xs"])
def _scan() -> None:
    @jax.jit
    def f(xs: Any) -> Any:
        return jax.lax.scan(lambda c, x: (c + x, c), 0.0, xs)

    f(arr(3))
    f(arr(5))


@case("f", ["first-call f"], ["shape x"])
def _custom_vjp() -> None:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return 2 * x

    f.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    jitted = jax.jit(f)
    jitted(arr(3))
    jitted(arr(5))


@case("f", ["first-call f"], ["shape x"], devices=2)
def _shard_map() -> None:
    mesh = Mesh(np.array(jax.devices()[:2]), ("i",))
    spec = PartitionSpec("i")

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=spec, out_specs=spec)
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(4))
    f(arr(8))


@case("softmax", ["first-call softmax"], ["shape x"])
def _function_of_jax() -> None:
    jitted = jax.jit(jax.nn.softmax)
    jitted(arr(31))
    jitted(arr(37))


@case("norm", ["first-call norm"], ["shape x"])
def _another_librarys_function() -> None:
    # A library's function is one that stands elsewhere: a copy under another file name.
    namespace: dict[str, Any] = {}
    source = "def norm(x):\n    return (x * x).sum()"
    exec(compile(source, "/opt/site-packages/library.py", "exec"), namespace)  # noqa: S102
    jitted = jax.jit(namespace["norm"])
    jitted(arr(31))
    jitted(arr(37))
