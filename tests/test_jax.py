"""The private parts of JAX that we read: here, and on every release that the sessions install."""

import dataclasses
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
from jitcount.observe.hearing import COMPILE, LOWER, TRACE
from jitcount.observe.values import signature_of

X = np.ones(3, np.float32)


def readings_of(program: Callable[[], object]) -> list[tuple[_jax.Call, _jax.Executable]]:
    """What the stack says at each compile, without the rest of jitcount."""
    readings: list[tuple[_jax.Call, _jax.Executable]] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == COMPILE:
            frame = sys._getframe()
            readings.append((_jax.read_call(frame), _jax.read_executable(frame)))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        program()
    finally:
        _jax.unregister("event_duration", on_end)
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
    assert isinstance(call.call, _jax.JitCall)
    assert call.call.fun is double
    assert (call.call.args, call.call.kwargs) == ((X,), {})
    info = call.call.info
    kind: Any = type(info)
    options = dict(zip(_jax.option_names(kind), _jax.option_values(info), strict=True))
    assert options["donate_argnums"] == (0,)
    expected = {"static_argnums", "static_argnames", "in_shardings", "compiler_options"}
    assert expected <= set(options)


def test_an_operation_outside_of_jit_tells_its_primitive_and_parameters() -> None:
    x = jax.device_put(X)
    ((call, _),) = readings_of(lambda: jax.lax.neg(x))
    assert isinstance(call.call, _jax.PrimitiveCall)
    assert (call.call.name, len(call.call.args)) == ("neg", 1)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda f: f(X), {""}),
        (lambda f: jax.vmap(f)(X), {"vmap"}),
        (lambda f: jax.grad(lambda x: f(x).sum())(X), {"grad", "backward pass", ""}),
        (lambda f: jax.jvp(f, (X,), (X,)), {"grad"}),
    ],
)
def test_a_transformed_call_tells_its_transformation(
    program: Callable[[Any], object], expected: set[str]
) -> None:
    f = jax.jit(jnp.sin)
    assert {call.transform for call, _ in readings_of(lambda: program(f))} == expected


def test_a_call_that_is_traced_ahead_of_time_is_read() -> None:
    seen: list[_jax.JitCall | None] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == TRACE:
            seen.append(_jax.read_tracing(sys._getframe()))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        jax.jit(double).lower(X)
        jax.jit(double)(X[:2])
    finally:
        _jax.unregister("event_duration", on_end)
    funs = [call.fun for call in seen if call is not None]
    assert funs == [double]


def test_a_lowering_tells_the_avals_that_its_line_in_the_log_has(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Any] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if event == LOWER:
            seen.append(_jax.read_lowered_avals(sys._getframe()))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        with caplog.at_level(logging.WARNING, _jax.COMPILE_LOGGER), jax.log_compiles():
            jax.jit(lambda x, _: 2 * x)(X, np.ones(7, np.int32))
    finally:
        _jax.unregister("event_duration", on_end)
    (line,) = [r for r in caplog.records if r.name == _jax.COMPILE_LOGGER]
    assert isinstance(line.args, tuple)
    assert [signature_of(avals) for avals in seen] == [signature_of(line.args[1])]
    assert signature_of(seen[0]) == ("float32[3]",)


def test_the_settings_in_the_key_are_named_and_read() -> None:
    def settings() -> dict[str, object]:
        return dict(zip(_jax.config_names(), _jax.config_values(), strict=True))

    before = settings()
    with jax.default_matmul_precision("float32"):
        changed = settings()
        assert _jax.is_set_for_a_block("jax_default_matmul_precision")
    assert not _jax.is_set_for_a_block("jax_default_matmul_precision")
    different = {name for name in before if before[name] is not changed[name]}
    assert different == {"jax_default_matmul_precision"}
    assert {"jax_enable_x64", "jax_default_device", "jax_numpy_rank_promotion"} <= set(before)


def test_x64_is_read() -> None:
    assert _jax.is_x64() is bool(jax.config.values["jax_enable_x64"])


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


def lowerings_of(
    program: Callable[[], object],
) -> list[tuple[_jax.Lowering | None, _jax.Compilation | None]]:
    """What the stack says of each lowering, and of the compile of what it made."""
    lowered: dict[int, _jax.Lowering] = {}
    found: list[tuple[_jax.Lowering | None, _jax.Compilation | None]] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        frame = sys._getframe()
        if event == LOWER and (lowering := _jax.read_lowering(frame)) is not None:
            lowered[id(lowering.module)] = lowering
        elif event == COMPILE:
            compilation = _jax.read_compilation(frame)
            found.append((lowered.get(id(compilation and compilation.module)), compilation))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        program()
    finally:
        _jax.unregister("event_duration", on_end)
    return found


@pytest.mark.parametrize(
    "program",
    [
        lambda: jax.jit(double)(X),
        lambda: jax.jit(double).lower(X).compile(),
        lambda: jax.lax.neg(jax.device_put(X)),
        lambda: jax.grad(jax.jit(lambda x: jnp.sum(x * x)))(X),
    ],
)
def test_every_compile_tells_how_it_is_lowered_for_another_platform(
    program: Callable[[], object],
) -> None:
    found = lowerings_of(program)
    assert found
    for lowering, compilation in found:
        assert lowering is not None
        assert compilation is not None
        assert compilation.devices == 1
        assert len(compilation.inputs_may_move) == len(lowering.arguments["in_avals"])
        assert hasattr(getattr(lowering.jaxpr, "jaxpr", lowering.jaxpr), "eqns")


@pytest.mark.parametrize("platform", ["tpu", "cuda", "cpu"])
def test_what_was_lowered_here_can_be_lowered_for_another_platform(platform: str) -> None:
    ((lowering, _),) = lowerings_of(lambda: jax.jit(jax.nn.relu)(X))
    assert lowering is not None
    program = _jax.lower_for(lowering, platform)
    assert program.startswith(b"ML\xefR")  # MLIR's bytecode
    assert b"jit_relu" in program
    assert __file__.encode() not in program


def test_a_lowering_is_made_again_under_the_settings_that_it_had() -> None:
    def program() -> None:
        with jax.default_matmul_precision("float32"):
            jax.jit(double)(X)

    ((lowering, _),) = lowerings_of(program)
    assert lowering is not None
    assert dict(lowering.settings)["jax_default_matmul_precision"] == "float32"
    seen = []

    def lower(**arguments: Any) -> Any:
        seen.append(dict(zip(_jax.config_names(), _jax.config_values(), strict=True)))
        return lowering.lower(**arguments)

    assert _jax.lower_for(dataclasses.replace(lowering, lower=lower), "tpu")
    assert seen[0]["jax_default_matmul_precision"] == "float32"


def test_a_compile_tells_the_users_options() -> None:
    options = {"xla_embed_ir_in_executable": True}
    ((_, compilation),) = lowerings_of(lambda: jax.jit(double, compiler_options=options)(X))
    assert compilation is not None
    assert compilation.options == options


def test_a_module_is_compiled_for_the_devices_at_hand() -> None:
    ((lowering, compilation),) = lowerings_of(lambda: jax.jit(double)(X))
    assert lowering is not None
    assert compilation is not None
    program = _jax.lower_for(lowering, jax.default_backend())
    may_move = compilation.inputs_may_move, compilation.outputs_may_move
    made = _jax.compile_module(program, jax.devices()[:1], may_move, {}, jax.default_backend())
    assert made.hlo_modules()[0].to_string().startswith("HloModule jit_double")
    assert made.get_compiled_memory_stats().argument_size_in_bytes == X.nbytes


def test_the_settings_of_a_compile_are_plain_values() -> None:
    found = _jax.compile_settings()
    assert found["jax_disable_most_optimizations"] is False
    assert {type(value) for value in found.values()} <= {bool, int, float, str}


def test_a_stack_without_jax_says_nothing() -> None:
    for frame in sys._getframe(), None:
        assert _jax.read_lowering(frame) is None
        assert _jax.read_compilation(frame) is None
        assert _jax.read_call(frame) == _jax.Call()
        assert _jax.read_executable(frame) == _jax.Executable()
        assert _jax.read_tracing(frame) is None


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
