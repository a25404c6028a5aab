"""Jaxprs hold their parts where we look for them; a release that moves them fails here."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import source_info_util
from jax.experimental import io_callback

from jitcount._jax import jaxprs
from jitcount._jax.jaxprs import Callback, Source, as_written, callbacks, equations, source_of
from jitcount._observe.call_site import sites_in

X = np.ones(3, np.float32)
SQUARE = np.ones((3, 3), np.float32)
HERE = __file__


def traced(f: Any, argument: Any = X) -> Any:
    return jax.jit(f).trace(argument).jaxpr


def step(x: Any) -> Any:
    return 2 * x


def test_a_jaxpr_tells_the_function_that_it_was_traced_from() -> None:
    source = source_of(jax.make_jaxpr(step)(X))
    assert source == Source("step", __file__, str(step.__code__.co_firstlineno))
    assert not source.is_jaxs


def test_a_jaxpr_of_a_function_of_jaxs_says_so() -> None:
    sin: Any = jnp.sin
    source = source_of(jax.make_jaxpr(sin.__wrapped__)(X))
    assert source is not None
    assert source.is_jaxs


def test_two_functions_have_two_sources() -> None:
    one, other = (source_of(jax.make_jaxpr(f)(X)) for f in (lambda x: x, step))
    assert one != other


@pytest.mark.parametrize("thing", [None, 3, "jaxpr", (1, 2), step])
def test_what_is_no_jaxpr_has_no_source(thing: Any) -> None:
    assert source_of(thing) is None


def calls_back(x: Any) -> Any:
    return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def prints(x: Any) -> Any:
    jax.debug.print("{}", x)
    return x


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (step, []),
        (calls_back, ["pure_callback"]),
        (lambda x: io_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x), ["io_"]),
        (prints, ["debug_"]),
        (lambda x: calls_back(prints(x)), ["debug_", "pure_callback"]),
        (jax.jit(calls_back), ["pure_callback"]),
        (lambda x: jax.lax.scan(lambda c, _: (calls_back(c), None), x, None, 2), ["pure_callback"]),
        (lambda x: jax.lax.cond(x[0] > 0, calls_back, step, x), ["pure_callback"]),
    ],
    ids=["none", "pure", "io", "print", "two", "in-jit", "in-scan", "in-a-branch"],
)
def test_callbacks_are_found_wherever_they_are(function: Any, kinds: list[str]) -> None:
    found = list(callbacks(jax.make_jaxpr(function)(X)))
    assert len(found) == len(kinds)
    assert all(each.kind.startswith(kind) for each, kind in zip(found, kinds, strict=True))


def test_a_callback_tells_the_line_that_it_was_traced_at() -> None:
    (found,) = callbacks(jax.make_jaxpr(lambda x: calls_back(x) + 1)(X))
    site = sites_in(found.frame).user
    assert (site.file, site.function) == (__file__, "calls_back")
    assert site.line == calls_back.__code__.co_firstlineno + 1


def test_a_traceback_that_is_not_as_we_know_it_leaves_the_line_unknown() -> None:
    class Equation:
        source_info = None
        primitive = type("Primitive", (), {"name": "io_callback"})

    class Jaxpr:
        eqns = (Equation,)

    assert list(callbacks(Jaxpr)) == [Callback("io_callback", None)]
    assert sites_in(None).user == "unknown"


# --- Equations with the stacks that they were traced under ---------------------------------------


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


def test_frames_that_a_library_has_excluded_are_not_written() -> None:
    source_info_util.register_exclusion("/lib/excluded.py")
    user, jaxs = ("/me/train.py", 3, "f"), (source_info_util.__file__, 1, "current")
    excluded = ("/lib/excluded.py", 7, "g")
    assert as_written([(jaxs, user, excluded), (user,), (user, user)]) == [(user,), (user, user)]


# --- The equations of one level, and what they do ------------------------------------------------


bent = jax.custom_jvp(lambda x: x + 1)
bent.defjvp(lambda primals, tangents: (primals[0] + 1, tangents[0]))


def named(equations: list[Any]) -> list[str]:
    return [equation.primitive.name for equation in equations]


def test_a_stack_ends_at_the_line_that_made_the_equation_and_is_one_object() -> None:
    def f(x: jax.Array) -> jax.Array:
        for _ in range(3):
            x = x + 1
        return x

    equations = jaxprs.equations_in(traced(f, SQUARE).jaxpr)
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
    jaxpr = traced(jax.grad(lambda x: jnp.sin(x).sum()), SQUARE)
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
    equations = jaxprs.equations_in(traced(f, SQUARE).jaxpr)
    assert max(len(list(jaxprs.inner_jaxprs(equation))) for equation in equations) == bodies


def test_calls_are_known_by_their_names_and_have_a_body() -> None:
    for f in (jax.jit(lambda x: x + 1), jax.checkpoint(lambda x: x + 1)):
        (equation,) = jaxprs.equations_in(traced(lambda x, f=f: f(x), SQUARE).jaxpr)
        assert equation.primitive.name in jaxprs.CALLS
        assert named(jaxprs.equations_in(jaxprs.body_of(equation).jaxpr)) == ["add"]
        assert jaxprs.weight(equation, {}) == 1


def test_a_number_that_was_written_there_is_a_literal() -> None:
    (equation,) = jaxprs.equations_in(traced(lambda x: x * 2, SQUARE).jaxpr)
    assert [jaxprs.is_literal(each) for each in equation.invars] == [False, True]


def test_an_equation_does_again_what_it_did() -> None:
    def f(x: Any) -> Any:
        return jax.lax.scan(lambda carry, row: (carry + row, carry), x[0], x)

    values: dict[Any, Any] = {}
    jaxpr = traced(f, SQUARE).jaxpr
    values.update(zip(jaxpr.invars, [SQUARE], strict=True))
    for equation in jaxprs.equations_in(jaxpr):
        given = [each.val if jaxprs.is_literal(each) else values[each] for each in equation.invars]
        values.update(zip(equation.outvars, jaxprs.eval_equation(equation, given), strict=True))
    for one, other in zip((values[each] for each in jaxpr.outvars), f(SQUARE), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_does_more_than_compute_is_known() -> None:
    def f(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x)
        return x + 1

    effects = {
        each.primitive.name: jaxprs.has_effects(each) for each in traced(f, SQUARE).jaxpr.eqns
    }
    assert effects.pop("add") is False
    assert list(effects.values()) == [True]
