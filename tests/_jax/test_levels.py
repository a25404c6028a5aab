"""Levels are where we look for them in a jaxpr; a release that moves them fails here."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._jax import jaxprs

X = np.ones((3, 3), np.float32)


bent = jax.custom_jvp(lambda x: x + 1)
bent.defjvp(lambda primals, tangents: (primals[0] + 1, tangents[0]))


def traced(f: Any, *arguments: Any) -> Any:
    return jax.jit(f).trace(*(arguments or (X,))).jaxpr


def named(equations: list[Any]) -> list[str]:
    return [equation.primitive.name for equation in equations]


def test_a_stack_ends_at_the_line_that_made_the_equation_and_is_one_object() -> None:
    def f(x: jax.Array) -> jax.Array:
        for _ in range(3):
            x = x + 1
        return x

    equations = jaxprs.equations_in(traced(f).jaxpr)
    assert named(equations) == ["add"] * 3
    stacks = jaxprs.Stacks()
    found = [stacks.of(equation) for equation in equations]
    codes = [code for code, _ in found[0]]
    assert f.__code__ in codes
    offset = dict(found[0])[f.__code__]
    lines = [line for begin, end, line in f.__code__.co_lines() if begin <= offset < end]
    assert lines == [f.__code__.co_firstlineno + 2]
    assert found[0] == found[1] == found[2]
    assert found[1] is found[2]


def test_without_a_traceback_a_stack_is_empty() -> None:
    class Nothing:
        source_info = None

    assert jaxprs.Stacks().of(Nothing()) == ()


def test_a_backward_pass_is_known_by_its_name_stack() -> None:
    jaxpr = traced(jax.grad(lambda x: jnp.sin(x).sum()))
    found = {each.primitive.name: jaxprs.is_backward(each) for each in jaxpr.jaxpr.eqns}
    assert found["cos"] is False
    assert found["mul"] is True


@pytest.mark.parametrize(
    ("f", "bodies"),
    [
        (jax.jit(lambda x: x + 1), 1),
        (jax.checkpoint(lambda x: x + 1), 1),
        (bent, 1),
        (lambda x: jax.lax.scan(lambda carry, row: (carry + row, row), x[0], x), 1),
        (lambda x: jax.lax.while_loop(lambda x: x[0, 0] < 3, lambda x: x + 1, x), 2),
        (lambda x: jax.lax.cond(x[0, 0] < 3, lambda: x, lambda: x + 1), 2),
        (lambda x: x + 1, 0),
    ],
)
def test_the_bodies_of_an_equation(f: Any, bodies: int) -> None:
    equations = jaxprs.equations_in(traced(f).jaxpr)
    assert max(len(list(jaxprs.inner_jaxprs(equation))) for equation in equations) == bodies


def test_calls_are_known_by_their_names_and_have_a_body() -> None:
    for f in (jax.jit(lambda x: x + 1), jax.checkpoint(lambda x: x + 1)):
        (equation,) = jaxprs.equations_in(traced(lambda x, f=f: f(x)).jaxpr)
        assert equation.primitive.name in jaxprs.CALLS
        assert named(jaxprs.equations_in(jaxprs.body_of(equation).jaxpr)) == ["add"]
        assert jaxprs.weight(equation, {}) == 1


def test_a_number_that_was_written_there_is_a_literal() -> None:
    (equation,) = jaxprs.equations_in(traced(lambda x: x * 2).jaxpr)
    assert [jaxprs.is_literal(each) for each in equation.invars] == [False, True]


def test_an_equation_does_again_what_it_did() -> None:
    def f(x: Any) -> Any:
        return jax.lax.scan(lambda carry, row: (carry + row, carry), x[0], x)

    values: dict[Any, Any] = {}
    jaxpr = traced(f).jaxpr
    values.update(zip(jaxpr.invars, [X], strict=True))
    for equation in jaxprs.equations_in(jaxpr):
        given = [each.val if jaxprs.is_literal(each) else values[each] for each in equation.invars]
        values.update(zip(equation.outvars, jaxprs.evaluate(equation, given), strict=True))
    for one, other in zip((values[each] for each in jaxpr.outvars), f(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_does_more_than_compute_is_known() -> None:
    def f(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x)
        return x + 1

    effects = {each.primitive.name: jaxprs.has_effects(each) for each in traced(f).jaxpr.eqns}
    assert effects.pop("add") is False
    assert list(effects.values()) == [True]
