"""Programs as JAX lowers and compiles them, made again for another platform."""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

from jitcount._jax import settings
from jitcount._jax.events import COMPILE, LOWER
from jitcount._jax.lowering import (
    Compilation,
    Lowering,
    compile_module,
    lower_for,
    read_compilation,
    read_lowering,
)
from tests.helpers import unregister

X = np.ones(3, np.float32)


def double(x: jax.Array) -> jax.Array:
    return 2 * x


def lowerings_of(
    program: Callable[[], object],
) -> list[tuple[Lowering | None, Compilation | None]]:
    """What the stack says of each lowering, and of the compile of what it made."""
    lowered: dict[int, Lowering] = {}
    found: list[tuple[Lowering | None, Compilation | None]] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        frame = sys._getframe()
        if event == LOWER and (lowering := read_lowering(frame)) is not None:
            lowered[id(lowering.module)] = lowering
        elif event == COMPILE:
            compilation = read_compilation(frame)
            found.append((lowered.get(id(compilation and compilation.module)), compilation))

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        program()
    finally:
        unregister({"event_duration": on_end})
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
    program, _ = lower_for(lowering, platform)
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
        seen.append(dict(zip(settings.names(), settings.values(), strict=True)))
        return lowering.lower(**arguments)

    assert lower_for(dataclasses.replace(lowering, lower=lower), "tpu")
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
    program, _ = lower_for(lowering, jax.default_backend())
    may_move = compilation.inputs_may_move, compilation.outputs_may_move
    made = compile_module(program, jax.devices()[:1], may_move, {}, jax.default_backend())
    assert made.hlo_modules()[0].to_string().startswith("HloModule jit_double")
    assert made.get_compiled_memory_stats().argument_size_in_bytes == X.nbytes


def test_a_stack_without_jax_says_nothing() -> None:
    for frame in sys._getframe(), None:
        assert read_lowering(frame) is None
        assert read_compilation(frame) is None
