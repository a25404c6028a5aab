"""The stack while JAX compiles, on every release that the sessions install."""

import functools
import logging
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

from jitcount._jax import frames, options
from jitcount._jax.events import COMPILE, COMPILE_LOGGER, LOWER, TRACE, avals_in
from jitcount._observe.values import signature_of
from tests.helpers import unregister

X = np.ones(3, np.float32)


def readings_of(program: Callable[[], object]) -> list[tuple[frames.Call, frames.CompilingFrame]]:
    """What the stack says at each compile, without the rest of jitcount."""
    readings: list[tuple[frames.Call, frames.CompilingFrame]] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == COMPILE:
            frame = sys._getframe()
            readings.append((frames.read_call(frame), frames.read_executable(frame)))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        program()
    finally:
        unregister({"event_duration": on_end})
    return readings


def double(x: jax.Array) -> jax.Array:
    return 2 * x


def test_a_jitted_call_tells_its_avals_and_its_platform() -> None:
    ((call, executable),) = readings_of(lambda: jax.jit(double)(X))
    assert call.avals is not None
    assert executable.kept_avals is not None
    assert signature_of(call.avals) == signature_of(executable.kept_avals) == ("float32[3]",)
    assert executable.platform == jax.default_backend()


def test_a_jitted_call_tells_its_function_arguments_and_options() -> None:
    jitted = jax.jit(double, donate_argnums=0)
    ((call, _),) = readings_of(lambda: jitted(X))
    assert isinstance(call.call, frames.JitCall)
    assert call.call.fun is double
    assert (call.call.args, call.call.kwargs) == ((X,), {})
    info = call.call.info
    kind: Any = type(info)
    given = dict(zip(options.option_names(kind), options.option_values(info), strict=True))
    assert given["donate_argnums"] == (0,)
    expected = {"static_argnums", "static_argnames", "in_shardings", "compiler_options"}
    assert expected <= set(given)


def test_an_operation_outside_of_jit_tells_its_primitive_and_parameters() -> None:
    x = jax.device_put(X)
    ((call, _),) = readings_of(lambda: jax.lax.neg(x))
    assert isinstance(call.call, frames.PrimitiveCall)
    assert (call.call.name, len(call.call.args)) == ("neg", 1)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda f: f(X), {()}),
        (lambda f: jax.vmap(f)(X), {("vmap",)}),
        (lambda f: jax.grad(lambda x: f(x).sum())(X), {("grad",), ("backward pass",), ()}),
        (lambda f: jax.jvp(f, (X,), (X,)), {("jvp",)}),
        (lambda f: jax.vmap(jax.vmap(f))(X[None]), {("vmap", "vmap")}),
        (lambda f: jax.jvp(jax.vmap(f), (X,), (X,)), {("jvp", "vmap")}),
        (lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (x,)))(X), {("vmap", "jvp")}),
    ],
)
def test_a_transformed_call_tells_all_its_transformations(
    program: Callable[[Any], object], expected: set[tuple[str, ...]]
) -> None:
    f = jax.jit(jnp.sin)
    calls = [call for call, _ in readings_of(lambda: program(f))]
    assert {tuple(one.name for one in call.transforms) for call in calls} == expected


def test_a_lowering_tells_whether_a_call_needs_it() -> None:
    seen: list[bool] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == LOWER:
            seen.append(frames.is_in_a_call(sys._getframe()))

    jitted = jax.jit(lambda x: jnp.sin(x).sum())
    monitoring.register_event_duration_secs_listener(on_end)
    try:
        jitted(X)
        jax.vmap(jitted)(X[None])
        jax.grad(jitted)(X)
        assert all(seen)
        seen.clear()
        jitted.lower(X[:2])
        jitted.trace(X[:1]).lower()
        assert seen == [False, False]
    finally:
        unregister({"event_duration": on_end})


def test_a_call_that_is_traced_ahead_of_time_is_read() -> None:
    seen: list[frames.JitCall | None] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == TRACE:
            seen.append(frames.read_tracing(sys._getframe()))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        jax.jit(double).lower(X)
        jax.jit(double)(X[:2])
    finally:
        unregister({"event_duration": on_end})
    funs = [call.fun for call in seen if call is not None]
    assert funs == [double]


def test_a_lowering_tells_the_avals_that_its_line_in_the_log_has(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Any] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == LOWER:
            seen.append(frames.read_lowered(sys._getframe()).kept_avals)

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        with caplog.at_level(logging.WARNING, COMPILE_LOGGER), jax.log_compiles():
            jax.jit(lambda x, _: 2 * x)(X, np.ones(7, np.int32))
    finally:
        unregister({"event_duration": on_end})
    (line,) = [r for r in caplog.records if r.name == COMPILE_LOGGER]
    assert isinstance(line.args, tuple)
    assert [signature_of(avals) for avals in seen] == [signature_of(avals_in(line) or ())]
    assert signature_of(seen[0]) == ("float32[3]",)


def test_an_argument_that_is_not_used_is_an_aval_but_not_kept() -> None:
    ((call, executable),) = readings_of(
        lambda: jax.jit(lambda x, _: 2 * x)(X, np.ones(7, np.int32))
    )
    assert call.avals is not None
    assert executable.kept_avals is not None
    assert signature_of(call.avals) == ("float32[3]", "int32[7]")
    assert signature_of(executable.kept_avals) == ("float32[3]",)


def test_ahead_of_time_compiles_tell_their_avals() -> None:
    ((call, _),) = readings_of(lambda: jax.jit(double).lower(2.0).compile())
    assert call.avals is not None
    assert signature_of(call.avals) == ("weak float32[]",)
    assert not call.made_by_jax


@pytest.mark.parametrize(
    "program",
    [
        lambda: jax.jit(double)(X),
        lambda: jax.jit(lambda x: 2 * x)(X),
        lambda: jax.jit(functools.partial(jnp.sum, axis=0))(X),
        lambda: jax.jit(jnp.sum)(X),
        lambda: jax.jit(jnp.add)(X, X),
        lambda: jax.jit(jnp.linalg.norm)(X),
        lambda: jax.jit(jax.nn.softmax)(X),
        lambda: jax.jit(jax.nn.relu)(X),
        lambda: jax.jit(jax.vmap(double))(X),
        lambda: jax.jit(jax.vmap(jnp.sum))(X[None]),
        lambda: jax.jit(jax.grad(jnp.sum))(X),
        lambda: jax.jit(jax.value_and_grad(jnp.sum))(X),
        lambda: jax.vmap(jax.jit(double))(X),
    ],
)
def test_a_jit_of_the_users_is_known_as_such(program: Callable[[], object]) -> None:
    assert [call.made_by_jax for call, _ in readings_of(program)] == [False]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x + x,
        lambda x: -x,
        lambda x: x[1:],
        lambda x: x.at[0].set(2.0),
        lambda _: jnp.ones(7),
        lambda _: jnp.arange(7),
        jnp.sum,
        jnp.sin,
        jnp.linalg.norm,
        jax.nn.softmax,
        jax.nn.relu,
        lambda x: jnp.einsum("i,i->", x, x),
        lambda _: jax.random.normal(jax.random.key(0), (3,)),
        lambda x: jax.lax.scan(lambda c, a: (c + a, a), 0.0, x),
        lambda x: jax.lax.cond(True, lambda: x, lambda: x),  # noqa: FBT003
        jax.grad(lambda x: jnp.sum(jnp.sin(x))),
        jax.vmap(jnp.sin),
    ],
)
def test_an_operation_outside_of_jit_is_known_as_jaxs(
    program: Callable[[jax.Array], object],
) -> None:
    x = jax.device_put(X)
    made_by_jax = [call.made_by_jax for call, _ in readings_of(lambda: program(x))]
    assert made_by_jax
    assert all(made_by_jax)


def test_the_backward_pass_of_a_users_jit_is_the_users() -> None:
    x = jax.device_put(X)
    jitted = jax.jit(lambda x: (x * x).sum())
    assert False in [call.made_by_jax for call, _ in readings_of(lambda: jax.grad(jitted)(x))]


def test_a_stack_without_jax_says_nothing() -> None:
    for frame in sys._getframe(), None:
        assert frames.read_call(frame) == frames.Call()
        assert frames.read_executable(frame) == frames.CompilingFrame()
        assert frames.read_tracing(frame) is None
