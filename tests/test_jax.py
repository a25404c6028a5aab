"""The private parts of JAX that we read: here, and on every release that the sessions install."""

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

from jitcount import _jax
from jitcount.observe.compile import signature_of
from jitcount.observe.hearing import COMPILE

X = np.ones(3, np.float32)


def readings_of(program: Callable[[], object]) -> list[_jax.Compiling]:
    """What the stack says at each compile, without the rest of jitcount."""
    readings: list[_jax.Compiling] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == COMPILE:
            readings.append(_jax.read_compiling(sys._getframe()))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        program()
    finally:
        _jax.unregister("event_duration", on_end)
    return readings


def double(x: jax.Array) -> jax.Array:
    return 2 * x


def test_a_jitted_call_tells_its_avals_and_its_platform() -> None:
    (reading,) = readings_of(lambda: jax.jit(double)(X))
    assert reading.avals is not None
    assert reading.kept_avals is not None
    assert signature_of(reading.avals) == signature_of(reading.kept_avals) == ("float32[3]",)
    assert reading.platform == jax.default_backend()


def test_an_argument_that_is_not_used_is_an_aval_but_not_kept() -> None:
    (reading,) = readings_of(lambda: jax.jit(lambda x, _: 2 * x)(X, np.ones(7, np.int32)))
    assert reading.avals is not None
    assert reading.kept_avals is not None
    assert signature_of(reading.avals) == ("float32[3]", "int32[7]")
    assert signature_of(reading.kept_avals) == ("float32[3]",)


def test_ahead_of_time_compiles_tell_their_avals() -> None:
    (reading,) = readings_of(lambda: jax.jit(double).lower(2.0).compile())
    assert reading.avals is not None
    assert signature_of(reading.avals) == ("weak float32[]",)
    assert not reading.made_by_jax


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
    assert [reading.made_by_jax for reading in readings_of(program)] == [False]


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
    made_by_jax = [reading.made_by_jax for reading in readings_of(lambda: program(x))]
    assert made_by_jax
    assert all(made_by_jax)


def test_the_backward_pass_of_a_users_jit_is_the_users() -> None:
    x = jax.device_put(X)
    jitted = jax.jit(lambda x: (x * x).sum())
    assert False in [r.made_by_jax for r in readings_of(lambda: jax.grad(jitted)(x))]


def test_a_stack_without_jax_says_nothing() -> None:
    assert _jax.read_compiling(sys._getframe()) == _jax.Compiling()
    assert _jax.read_compiling(None) == _jax.Compiling()


def test_unregistering_takes_a_listener_back_and_twice_is_no_error() -> None:
    heard: list[str] = []

    def on_event(event: str, **_about: Any) -> None:
        heard.append(event)

    monitoring.register_event_listener(on_event)
    monitoring.record_event("/jitcount/test")
    _jax.unregister("event", on_event)
    monitoring.record_event("/jitcount/test")
    _jax.unregister("event", on_event)
    assert heard == ["/jitcount/test"]


@pytest.mark.parametrize("kind", ["event", "event_duration", "scalar"])
def test_every_kind_of_listener_can_be_unregistered(kind: str) -> None:
    def listener(*_: Any, **__: Any) -> None: ...

    registers: dict[str, Callable[..., None]] = {
        "event": monitoring.register_event_listener,
        "event_duration": monitoring.register_event_duration_secs_listener,
        "scalar": monitoring.register_scalar_listener,
    }
    registers[kind](listener)
    before = listeners()
    _jax.unregister(kind, listener)
    assert [len(b) - len(a) for b, a in zip(before, listeners(), strict=True)].count(1) == 1


def listeners() -> list[list[Any]]:
    from jax._src import monitoring as private  # noqa: PLC0415

    return [
        private.get_event_listeners(),
        private.get_event_duration_listeners(),
        list(private._scalar_listeners),
    ]


def test_the_logger_of_compiles_is_where_jax_logs_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, _jax.COMPILE_LOGGER), jax.log_compiles():
        jax.jit(double)(X)
    lines = [r for r in caplog.records if r.name == _jax.COMPILE_LOGGER]
    assert [str(r.msg).split()[0] for r in lines] == ["Compiling"]
