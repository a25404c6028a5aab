"""Devices, settings, options and caches, and operations outside of jit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tools.catalogue.case import arr, case, on, sharded


@case("f", ["first-call f"], ["device x"])
def _committed_array() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    f(on(0, 3))


@case("f", ["first-call f"], ["device x"], devices=2)
def _another_device() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(on(0, 3))
    f(on(1, 3))


@case("f", ["first-call f"], ["sharding x"], devices=2)
def _another_sharding() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(sharded("i"))
    f(sharded(None, "i"))


@case("f", ["first-call f"], ["config jax_enable_x64"])
def _x64() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    before = jax.config.values["jax_enable_x64"]
    jax.config.update("jax_enable_x64", not before)
    try:
        f(arr(3))
    finally:
        jax.config.update("jax_enable_x64", before)


@case("f", ["first-call f"], ["config jax_default_matmul_precision"])
def _matmul_precision() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return x @ x

    f(arr(3, 3))
    with jax.default_matmul_precision("float32"):
        f(arr(3, 3))


@case("f", ["first-call f"], ["caches-cleared f"])
def _cleared_caches() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return 2 * x

    f(arr(3))
    jax.clear_caches()
    f(arr(3))


@case("f", ["first-call f"], ["jit-options donate_argnums"])
def _donation() -> None:
    def f(x: Any) -> Any:
        return 2 * x

    jax.jit(f)(arr(3))
    jax.jit(f, donate_argnums=0)(arr(3))


@case("f", ["first-call f"], ["jit-options compiler_options"])
def _compiler_options() -> None:
    def f(x: Any) -> Any:
        return 2 * x

    jax.jit(f)(arr(3))
    jax.jit(f, compiler_options={"xla_embed_ir_in_executable": True})(arr(3))


@case("f", ["first-call f"], ["jit-options static_argnums"])
def _static_instead_of_traced() -> None:
    def f(x: Any, n: Any) -> Any:
        return n * x

    jax.jit(f)(arr(3), 2)
    jax.jit(f, static_argnums=1)(arr(3), 2)


@case("add", ["first-call add"], ["shape x", "shape y"])
def _eager_operation() -> None:
    for x in jax.device_put(arr(41)), jax.device_put(arr(43)):
        _ = x + x


@case("add", ["first-call add"], ["first-call add"])
def _eager_operation_at_another_line() -> None:
    short, long = jax.device_put(arr(41)), jax.device_put(arr(43))
    _ = short + short
    _ = long + long


@case("broadcast_in_dim", ["first-call broadcast_in_dim"], ["static-argument shape"])
def _eager_operation_of_another_size() -> None:
    for length in 47, 53:
        jnp.full((length,), np.float32(2))
