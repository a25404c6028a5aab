"""Jaxprs, on every release that the sessions install."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

from jitcount._jax.jaxprs import Callback, Source, callbacks, source_of
from jitcount._observe.call_site import sites_in

X = np.ones(3, np.float32)


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
