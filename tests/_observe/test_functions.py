"""Functions as people know them, by line, and as JAX knows them, as objects."""

import functools
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest

from jitcount._jax.jaxprs import source_of
from jitcount._observe.functions import describe_body, describe_function, token, unwrapped


def step(x: Any, n: int = 2) -> Any:
    return n * x


class Model:
    def apply(self, x: Any) -> Any:
        return x

    def __call__(self, x: Any) -> Any:
        return x


def closure(number: int) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return number * x

    return inner


def wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that is not polite: nothing says what it wraps but its closure."""

    def call(*args: Any) -> Any:
        return function(*args)

    return call


@pytest.mark.parametrize(
    ("fun", "name", "kind"),
    [
        (step, "step", "function"),
        (lambda x: x, "<lambda>", "lambda"),
        (closure(2), "inner", "closure"),
        (functools.partial(step, n=3), "step", "partial"),
        (Model().apply, "apply", "method"),
        (Model(), "Model", "callable"),
        (functools.wraps(step)(wrapper(step)), "step", "function"),
    ],
)
def test_a_function_has_a_name_and_a_kind(fun: Any, name: str, kind: str) -> None:
    found = describe_function(fun)
    assert (found.name, found.kind) == (name, kind)


def test_a_function_has_the_line_that_made_it_and_an_object_has_none() -> None:
    line = step.__code__.co_firstlineno
    assert describe_function(step).place.endswith(f"{Path(__file__).name}:{line}")
    assert describe_function(Model()).place == ""


def test_a_function_is_the_same_as_itself_only() -> None:
    first, second = closure(1), closure(1)
    assert describe_function(first) == describe_function(first)
    assert describe_function(first) != describe_function(second)
    assert hash(describe_function(first)) == hash(describe_function(first))


def test_a_function_that_is_made_anew_is_known_by_its_identity() -> None:
    first, second = closure(1), closure(2)
    assert describe_function(first, identity=Model) == describe_function(second, identity=Model)


@pytest.mark.parametrize(
    "make",
    [
        closure,
        lambda n: functools.partial(step, n=n),
        lambda _: Model().apply,
        lambda _: wrapper(step),
        lambda n: wrapper(closure(n)),
    ],
    ids=["closure", "partial", "method", "wrapper", "wrapped-closure"],
)
def test_what_one_line_makes_twice_has_the_same_sources(make: Callable[[int], Any]) -> None:
    assert describe_function(make(1)).sources == describe_function(make(2)).sources


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),  # of one line
        (wrapper(step), wrapper(closure(1))),
        (functools.partial(step, n=1), step),
        (functools.partial(step), functools.partial(closure)),
    ],
    ids=["lambdas", "wrappers", "partial", "partials"],
)
def test_what_was_written_twice_has_other_sources(one: Any, other: Any) -> None:
    assert describe_function(one).sources != describe_function(other).sources


def test_a_wrapper_is_looked_through_to_what_a_person_wrote() -> None:
    wrapped = functools.wraps(step)(wrapper(step))
    assert unwrapped(functools.partial(wrapped, n=3)) is step
    assert unwrapped(Model().apply) is Model.apply


def test_a_wrapper_of_itself_ends() -> None:
    def endless() -> None: ...

    endless.__wrapped__ = endless  # type: ignore[attr-defined]
    assert unwrapped(endless) is endless
    assert describe_function(endless).name == "endless"


def test_a_recursive_closure_ends() -> None:
    def countdown(n: int) -> Any:
        return countdown(n - 1) if n else 0

    assert describe_function(countdown).sources == describe_function(countdown).sources


def test_a_closure_over_what_is_not_assigned_yet_is_described() -> None:
    def inner() -> Any:
        return late

    found = describe_function(inner)
    late = 1
    assert found.kind == "closure"
    assert late


def test_a_body_is_described_by_the_line_that_it_was_traced_from() -> None:
    jaxpr = jax.make_jaxpr(step)(1.0)
    source = source_of(jaxpr)
    assert source is not None
    found = describe_body(jaxpr, source)
    assert (found.name, found.kind) == ("step", "function")
    assert found.place == describe_function(step).place
    assert found == describe_body(jaxpr, source)


# --- Tokens ---------------------------------------------------------------------------------------


def test_a_token_stands_for_one_object() -> None:
    one, other = Model(), Model()
    assert token(one) == token(one) != token(other)


def test_a_method_is_the_same_however_often_it_is_looked_up() -> None:
    one, other = Model(), Model()
    assert token(one.apply) == token(one.apply)
    assert token(one.apply) not in {token(other.apply), token(one.__call__)}


def test_a_token_is_never_given_again() -> None:
    gone = set()
    for _ in range(100):  # Python gives the same address again and again
        gone.add(token(Model()))
    assert len(gone) == 100


def test_an_object_without_weak_references_has_a_token_while_it_is_there() -> None:
    one, other = (1, 2), [1, 2]
    assert token(one) == token(one) != token(other)


def test_neither_a_token_nor_a_description_keeps_an_object_alive() -> None:
    fun = closure(3)
    token(fun)
    describe_function(fun)
    reference = weakref.ref(fun)
    del fun
    gc.collect()
    assert reference() is None
