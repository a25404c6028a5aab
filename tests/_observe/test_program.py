"""What tells two programs apart, of real calls."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._jax import frames
from jitcount._jax.transforms import BACKWARD_PASS, Transformation
from jitcount._observe.call_site import NOWHERE
from jitcount._observe.program import HEAD, Program, describe
from jitcount._observe.values import Leaf
from tests.helpers import described, observed

X, Y = np.ones(3, np.float32), np.ones(5, np.float32)


def step(x: Any, y: Any = 1.0) -> Any:
    return x * y


def scale(x: Any, y: Any = 1.0) -> Any:
    return x / y


jitted = jax.jit(step)


def after_clearing(call: Callable[[], object]) -> Program:
    jax.clear_caches()
    return described(call)


def test_the_same_call_is_the_same_program() -> None:
    first, second = (after_clearing(lambda: jitted(X)) for _ in range(2))
    assert first.is_like(second)
    assert first.group == second.group


@pytest.mark.parametrize(
    "call",
    [
        lambda: jitted(Y),
        lambda: jitted(X.astype(np.int32)),
        lambda: jitted(x=X),
        lambda: jitted(X, 2.0),
        lambda: jitted({"a": X}["a"][None]),
        lambda: jax.jit(step, keep_unused=True)(X),
        lambda: jax.jit(step, donate_argnums=0)(X),
    ],
    ids=["shape", "dtype", "keyword", "another-argument", "rank", "option", "donation"],
)
def test_another_call_of_the_function_is_another_program_of_its_group(
    call: Callable[[], object],
) -> None:
    first, second = after_clearing(lambda: jitted(X)), after_clearing(call)
    assert not first.is_like(second)
    assert first.group == second.group


def test_a_setting_makes_another_program() -> None:
    first = after_clearing(lambda: jitted(X))
    with jax.default_matmul_precision("float32"):
        second = after_clearing(lambda: jitted(X))
    assert not first.is_like(second)


def test_two_functions_have_two_groups() -> None:
    first, second = described(lambda: jitted(X)), described(lambda: jax.jit(scale)(X))
    assert first.group != second.group


def test_a_program_has_a_number_for_each_place() -> None:
    program = described(lambda: jitted({"a": X}["a"], Y[:3]))
    assert len(program.numbers) == HEAD + len(program.places) == HEAD + len(program.values)


def test_an_operation_outside_of_jit_has_operands_and_parameters() -> None:
    x = jax.device_put(X)
    alone, together = described(lambda: jax.lax.neg(x)), described(lambda: jax.lax.atan2(x, x))
    assert alone.places[0] == "operand"
    assert together.places[:2] == ("operand 0", "operand 1")
    assert "dimensions" in described(lambda: jax.lax.rev(x, (0,))).places
    assert alone.function is None


def test_a_backward_pass_has_numbered_arguments_and_its_transformation() -> None:
    jitted_sum = jax.jit(lambda x: jnp.sin(x).sum())
    seen = observed(lambda: jax.grad(jitted_sum)(X))
    backward = [s.program for s in seen if s.program and s.program.transform == "backward pass"]
    assert backward
    assert all(place.startswith("argument ") for program in backward for place in program.places)
    assert all(program.is_known for program in backward)


def test_a_transformed_function_has_the_shapes_that_are_compiled() -> None:
    program = described(lambda: jax.vmap(jitted)(np.ones((4, 3), np.float32)))
    assert program.transform == "vmap"
    assert [v.shape for v in program.values if isinstance(v, Leaf)] == [(4, 3)]


def test_a_program_is_known_only_where_its_arguments_and_its_transformation_are() -> None:
    avals = (jax.typeof(jax.device_put(X)),)
    backward = (Transformation(BACKWARD_PASS),)
    assert describe(frames.Call(avals, transforms=backward), "step", NOWHERE).is_known
    assert not describe(frames.Call(avals), "step", NOWHERE).is_known
    assert not describe(frames.Call(), "step", NOWHERE).is_known
