"""JAX's record of a jit, on every release that the sessions install."""

import inspect
import sys
from typing import Any

import jax
import numpy as np
from jax import monitoring

from jitcount._jax import frames, options
from tests.helpers import unregister


def record_of(**wanted: Any) -> Any:
    """JAX's record of ``jax.jit(step, ...)``."""
    seen: list[frames.JitCall] = []

    def step(x: Any, y: Any = 1, z: Any = 2) -> Any:  # a new one: else its trace may be cached
        return x * y * z

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if (call := frames.read_tracing(sys._getframe())) is not None:
            seen.append(call)

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        jax.jit(step, **wanted).trace(np.ones(3), 1, 2)
    finally:
        unregister({"event_duration": on_end})
    return seen[0].info


def given(info: Any) -> dict[str, object]:
    kind: Any = type(info)
    return dict(zip(options.option_names(kind), options.option_values(info), strict=True))


def test_every_option_has_the_name_that_jit_has_for_it() -> None:
    layouts = {"in_layouts", "out_layouts"}  # given as a part of the shardings
    assert given(record_of()).keys() - layouts <= inspect.signature(jax.jit).parameters.keys()


def test_an_option_that_was_given_is_what_differs() -> None:
    plain, other = given(record_of()), given(record_of(donate_argnums=0, keep_unused=True))
    differ = {name for name in plain if plain[name] != other[name]}
    assert differ - {"donate_argnames"} == {"donate_argnums", "keep_unused"}
    assert (other["donate_argnums"], other["keep_unused"]) == ((0,), True)


def test_compiler_options_are_among_them() -> None:
    info = record_of(compiler_options={"xla_embed_ir_in_executable": True})
    assert given(info)["compiler_options"] == (("xla_embed_ir_in_executable", True),)


def test_where_a_jit_stands_is_no_option() -> None:
    assert not {"fun_sourceinfo", "fun_signature"} & given(record_of()).keys()


def test_static_arguments_are_told_by_number_and_by_name() -> None:
    by_number, by_name = record_of(static_argnums=-1), record_of(static_argnames=("y", "z"))
    assert options.static_argnums(by_number) in {(-1,), (2,)}
    assert options.static_argnames(by_name) == ("y", "z")
    assert (options.static_argnums(record_of()), options.static_argnames(record_of())) == ((), ())


def test_the_signature_is_the_functions() -> None:
    signature = options.fun_signature(record_of())
    assert signature is not None
    assert list(signature.parameters) == ["x", "y", "z"]
    assert options.fun_signature(object()) is None
