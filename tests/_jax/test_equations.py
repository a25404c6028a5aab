"""Equations have the stacks that JAX kept of them; a release that moves them fails here."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import source_info_util

from jitcount._jax.jaxprs import as_written, constants, equations

X = np.ones(4, np.float32)
HERE = __file__


def traced(f: Any) -> Any:
    return jax.jit(f).trace(X).jaxpr


def own_lines(f: Any, stack: Any) -> list[int]:
    """Of the frames of this file, the lines, from the function's first on."""
    return [line - f.__code__.co_firstlineno for file, line, _ in stack if file == HERE]


def test_each_equation_has_the_line_that_made_it() -> None:
    def f(x: jax.Array) -> jax.Array:
        y = x + 1
        return jnp.sin(y)

    found = list(equations(traced(f)))
    assert [each.primitive for each in found] == ["add", "sin"]
    assert [own_lines(f, each.stack)[0] for each in found] == [1, 2]
    assert found[0].stack[-1] != found[0].stack[0]


def test_of_a_function_that_is_called_twice_each_call_has_its_own_line() -> None:
    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        return x + 1

    def f(x: jax.Array) -> jax.Array:
        y = inner(x)
        return inner(y)

    found = list(equations(traced(f)))
    assert [each.primitive for each in found] == ["add", "add"]
    assert [own_lines(f, each.stack)[1] for each in found] == [1, 2]


def test_what_a_wrapped_function_computes_has_the_line_of_its_call() -> None:
    def wrapper(x: jax.Array) -> jax.Array:
        return x + 1

    def f(x: jax.Array) -> jax.Array:
        return jitted(x)

    wrapper.__name__ = wrapper.__qualname__ = "solve"  # as a library does: it is no frame's
    jitted = jax.jit(wrapper)
    (found,) = equations(traced(f))
    assert own_lines(f, found.stack)[1] == 1


def test_inside_of_a_call_the_name_stack_begins_with_that_of_the_call() -> None:
    def loss(x: jax.Array) -> jax.Array:
        return jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()

    found = [each.name_stack for each in equations(traced(jax.grad(loss)))]
    assert any("rematted_computation" in each or "remat(" in each for each in found)
    backward = [each for each in found if "transpose(" in each]
    assert len(backward) > 2


def test_the_arrays_that_a_program_closed_over() -> None:
    table = jnp.arange(5.0)
    (found,) = constants(traced(lambda x: x.sum() + table))
    np.testing.assert_array_equal(found, table)


def test_frames_that_a_library_has_excluded_are_not_written() -> None:
    source_info_util.register_exclusion("/lib/excluded.py")
    user, jaxs = ("/me/train.py", 3, "f"), (source_info_util.__file__, 1, "current")
    excluded = ("/lib/excluded.py", 7, "g")
    assert as_written([(jaxs, user, excluded), (user,), (user, user)]) == [(user,), (user, user)]
