"""Jits and operations inside JAX's transformations: whole messages, small programs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import jitcount
from jitcount._explain.causes.cause import Kind
from jitcount._registry import registry

X = np.ones(3, np.float32)


def messages(
    program: Callable[[], Any], function: str, *, calls: int = 2, clear: bool = False
) -> list[str]:
    """Of each compile of a function, in some calls of a program, what its causes say."""
    jax.clear_caches()
    with registry.own_history(), jitcount.record() as log:
        for _ in range(calls):
            program()
            if clear:
                jax.clear_caches()
    return [" + ".join(map(str, c.causes)) for c in log.compiles if c.function == function]


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return jnp.sin(jnp.sin(x))


def total(x: jax.Array) -> jax.Array:
    return step(x).sum()


def test_a_jit_under_checkpoint_is_compiled_under_grad_and_in_the_backward_pass() -> None:
    found = messages(lambda: jax.grad(jax.checkpoint(total))(X), "step", calls=1)
    assert found[:2] == [
        "first call of step under grad",
        "first call of step under backward pass",
    ]
    assert all("step is compiled under backward pass" in message for message in found[2:])


def test_what_linearize_returns_is_a_program_of_its_own() -> None:
    first, second = messages(lambda: jax.linearize(step, X)[1](X), "step")
    # JAX 0.7 does not tell a linearisation that is all that was asked for.
    assert first in {"first call of step under linearize", "first call of step under grad"}
    assert second == "first call of step under what linearize returned"


def test_the_backward_pass_of_a_new_jit_is_traced_anew() -> None:
    found = messages(lambda: jax.grad(jax.jit(lambda x: jnp.sin(x).sum()))(X), "<lambda>")
    anew = "outside of jit, JAX may do that at each call"
    assert found[3:] == [f"<lambda> under backward pass was traced anew: {anew}"]
    assert found[1] == "first call of <lambda> under backward pass"


def test_the_backward_pass_after_cleared_caches_is_not_called_new() -> None:
    found = messages(lambda: jax.vjp(step, X)[1](X), "step", clear=True)
    cleared = "the identical program of step had been compiled: caches were cleared, "
    assert found[2:] == [cleared + "or the entry was evicted"] * 2


def test_a_scan_outside_of_jit_and_its_backward_pass_are_two() -> None:
    def program() -> jax.Array:
        return jax.grad(
            lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 3)[0].sum()
        )(X)

    first, backward, *again = messages(program, "scan")
    assert [first, backward] == ["first call of scan", "first call of scan under backward pass"]
    assert [message.partition(" was made")[0] for message in again] == ["a new lambda"] * 2


@pytest.mark.two_devices
def test_under_grad_an_array_on_another_device_is_seen() -> None:
    devices = iter(jax.devices()[:2])

    def program() -> jax.Array:
        x = jax.device_put(X, next(devices))
        return jax.linearize(step, x)[0]

    one, other = jax.devices()[:2]
    assert messages(program, "step")[1:] == [f"x went from {one} to {other}"]


def test_a_token_is_an_argument_like_others() -> None:
    def take(token: Any, x: jax.Array) -> jax.Array:
        del token
        return 2 * x

    lengths = iter((3, 4))
    jitted = jax.jit(take)
    found = messages(
        lambda: jitted(jax.lax.create_token(), np.ones(next(lengths), np.float32)), "take"
    )
    assert found == [
        "first call of take",
        "axis 0 of x went from 3 to 4: float32[3] became float32[4]",
    ]


@pytest.mark.two_devices
def test_the_axes_to_reduce_over_are_part_of_a_sharding() -> None:
    try:
        spec = PartitionSpec(reduced={"i"})
        mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
        with jax.sharding.set_mesh(mesh):
            reduced = jax.device_put(X, NamedSharding(mesh, spec))
    except (AttributeError, TypeError, ValueError, NotImplementedError) as reason:
        pytest.skip(f"this JAX reduces over no axes: {reason}")
    plain = jax.device_put(X, NamedSharding(mesh, PartitionSpec()))
    arrays = iter((plain, reduced))
    jitted = jax.jit(lambda x: 2 * x)
    _, message = messages(lambda: jitted(next(arrays)), "<lambda>")
    assert "x was sharded as P(reduced={'i'}) over mesh" in message


def test_the_axes_of_a_pmap_are_options() -> None:
    def both(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x, 2 * y

    axes = iter((0, 1))
    x = np.ones((1, 1, 1), np.float32)

    def program() -> Any:
        return jax.pmap(both, in_axes=0, out_axes=next(axes))(x, x)

    found = messages(program, "both")
    if len(found) != 2 or "out_axes" not in found[1]:
        pytest.skip("this JAX's pmap is not made of jit")
    assert "another jax.jit of the function has out_axes=(1,) instead of (0,)" in found[1]


def test_a_compile_in_the_midst_of_a_lowering_leaves_the_outer_program_alone() -> None:
    """An operation that is compiled while another program is lowered: its copy is ours alone."""
    jax.clear_caches()
    with jitcount.record() as log, jax.ensure_compile_time_eval():
        jnp.linalg.solve(jnp.eye(3), jnp.ones(3)).block_until_ready()
    assert log.count("solve") == 1
    assert Kind.UNKNOWN not in {cause.kind for c in log.compiles for cause in c.causes}
