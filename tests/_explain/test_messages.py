"""The words are an interface: each kind's sentence and advice, whole."""

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._explain.causes.functions import Unknown
from jitcount._registry import registry
from tools.catalogue.case import arr, on, sharded
from tools.catalogue.pytrees import State


def last_causes(
    function: Callable[..., Any], *calls: tuple[Any, ...], **options: Any
) -> list[tuple[str, str]]:
    """Sentence and advice of each cause of the last compile of some calls."""
    jax.clear_caches()
    jitted = jax.jit(function, **options)
    with registry.own_history(), jitcount.record() as log:
        for call in calls:
            keywords = call[-1] if call and isinstance(call[-1], Keywords) else {}
            jitted(*(call[:-1] if keywords else call), **keywords)
    return [(str(cause), cause.advice) for cause in log.compiles[-1].causes]


class Keywords(dict[str, Any]):
    """The last of a call's arguments, where some are passed by keyword."""


def step(x: Any, n: Any = 2) -> Any:
    del n
    return 2 * jnp.asarray(jax.tree.leaves(x)[0])


def test_first_call() -> None:
    assert last_causes(step, (arr(3),)) == [
        ("first call of step", "nothing to mend: step must be compiled once")
    ]


def test_one_axis() -> None:
    assert last_causes(step, (arr(32, 511),), (arr(32, 640),)) == [
        (
            "axis 1 of x went from 511 to 640: float32[32,511] became float32[32,640]",
            "pad axis 1 of x to a few lengths with jitcount.bucketed, and mask the padding",
        )
    ]


def test_two_axes() -> None:
    assert last_causes(step, (arr(2, 3),), (arr(4, 5),)) == [
        (
            "axes 0, 1 of x changed: float32[2,3] became float32[4,5]",
            "pad axes 0, 1 of x to a few shapes with jitcount.bucketed, and mask the padding",
        )
    ]


def test_rank() -> None:
    assert last_causes(step, (arr(3),), (arr(1, 3),)) == [
        (
            "x went from rank 1 to rank 2: float32[3] became float32[1,3]",
            "pass x with rank 1 in every call",
        )
    ]


def test_dtype() -> None:
    assert last_causes(step, (arr(3),), (arr(3, dtype="int32"),)) == [
        ("x went from float32 to int32", "cast it before the call: x.astype('float32')")
    ]


def test_weak_type_of_a_scalar() -> None:
    assert last_causes(step, (1.0,), (np.float32(1.0),)) == [
        (
            (
                "x went from weakly typed float32 (as Python scalars and what is made of them) "
                "to float32"
            ),
            "pass jnp.float32(...) for x in every call",
        )
    ]


def test_weak_type_of_an_array() -> None:
    weak = jnp.full((3,), 1.0)
    assert last_causes(step, (arr(3),), (weak,)) == [
        (
            (
                "x went from float32 to weakly typed float32 "
                "(as Python scalars and what is made of them)"
            ),
            "make it strongly typed before the first call: x.astype('float32')",
        )
    ]


def test_static_value() -> None:
    assert last_causes(step, (arr(3), 2), (arr(3), 7), static_argnums=1) == [
        (
            "static argument n went from 2 to 7",
            (
                "pass n as an array if it is only computed with; "
                "if it gives a shape or chooses a branch, keep to a few values"
            ),
        )
    ]


class Settings:
    pass


def test_static_object_without_equality() -> None:
    calls = (arr(3), Settings()), (arr(3), Settings())
    assert last_causes(step, *calls, static_argnums=1) == [
        (
            (
                "static argument n is another Settings object, "
                "and Settings has no __eq__ to say that they are equal"
            ),
            (
                "give Settings __eq__ and __hash__ (a frozen dataclass has both), "
                "or pass the same object as n"
            ),
        )
    ]


def test_static_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(__file__))  # noqa: PTH120
    first, second = [lambda: None for _ in range(2)]
    line = first.__code__.co_firstlineno
    assert last_causes(step, (arr(3), first), (arr(3), second), static_argnums=1) == [
        (
            f"static argument n is a new function object: <lambda> at test_messages.py:{line}",
            (
                "make the function that is passed as n once; "
                "pass what it reads, if that changes, as an argument"
            ),
        )
    ]


def test_call_convention() -> None:
    assert last_causes(step, (arr(3),), (Keywords(x=arr(3)),)) == [
        (
            "x was passed by keyword instead of by position",
            "pass x by position in every call, or by keyword in every call",
        )
    ]


def test_dict_key() -> None:
    assert last_causes(step, ({"w": arr(3), "b": arr(3)},), ({"w": arr(3), "c": arr(3)},)) == [
        ("x gained ['c'] and lost ['b']", "pass ['c'], ['b'] of x in every call, or in none")
    ]


def test_list_length() -> None:
    assert last_causes(step, ([arr(3)],), ([arr(3)] * 2,)) == [
        (
            "x went from a list of 1 to one of 2",
            "pad x to one length, or to a few (buckets)",
        )
    ]


def test_container_type() -> None:
    assert last_causes(step, ([arr(3)],), ((arr(3),),)) == [
        ("x went from a list of 1 to a tuple of 1", "pass x as a list of 1 in every call")
    ]


def test_static_field() -> None:
    assert last_causes(step, (State(arr(3), "a"),), (State(arr(3), "b"),)) == [
        (
            "x.name went from 'a' to 'b'",
            (
                "x.name is compiled in: keep it the same, "
                "or keep what changes in an array field of State"
            ),
        )
    ]


def test_none_then_array() -> None:
    assert last_causes(step, (arr(3), None), (arr(3), arr(3))) == [
        (
            "n went from None to an array",
            "pass an array for n in every call: zeros, say, where there is nothing to pass",
        )
    ]


def test_optional_argument() -> None:
    given = ("n was given, and was not before: an array", "give n in every call, or in none")
    taken = ("n was not given, and was before: an array", "give n in every call, or in none")
    assert last_causes(step, (arr(3),), (arr(3), arr(3))) == [given]
    assert last_causes(step, (arr(3), arr(3)), (arr(3),)) == [taken]


def new_function_causes(make: Callable[[int], Callable[..., Any]]) -> list[tuple[str, str]]:
    with registry.own_history(), jitcount.record() as log:
        for number in range(2):
            jax.jit(make(number))(arr(3))
    return [(str(cause), cause.advice) for cause in log.compiles[-1].causes]


def test_new_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(__file__))  # noqa: PTH120
    why = "JAX knows functions as objects, not as text"

    def make(number: int) -> Callable[..., Any]:
        def inner(x: Any) -> Any:
            return number * x

        return inner

    line = make(0).__code__.co_firstlineno
    assert new_function_causes(make) == [
        (
            f"a new inner was made at test_messages.py:{line}: {why}",
            "make inner once; what it closes over can be passed as an argument",
        )
    ]
    line = step.__code__.co_firstlineno
    assert new_function_causes(lambda n: functools.partial(step, n=n)) == [
        (
            f"a new partial of step was made at test_messages.py:{line}: {why}",
            "make the partial of step once, or pass what it binds as arguments",
        )
    ]
    made = [lambda x: 2 * x for _ in range(2)]
    line = made[0].__code__.co_firstlineno
    assert new_function_causes(lambda n: made[n]) == [
        (
            f"a new lambda was made at test_messages.py:{line}: {why}",
            (
                "make the lambda once, and its jax.jit once; "
                "pass what it reads, if that changes, as an argument"
            ),
        )
    ]


class Model:
    def apply(self, x: Any) -> Any:
        return 2 * x


def test_method_of_another_object() -> None:
    models = Model(), Model()
    assert new_function_causes(lambda n: models[n].apply) == [
        (
            "apply is a method of another object than before",
            "keep one object, and one jax.jit of its apply",
        )
    ]


def test_device() -> None:
    device = jax.devices()[0]
    assert last_causes(step, (arr(3),), (on(0, 3),)) == [
        (
            f"x went from no device in particular to {device}",
            f"put x on {device} once, with jax.device_put, before the first call",
        )
    ]


@pytest.mark.two_devices
def test_sharding() -> None:
    mesh = "over mesh (i: 2) of devices 0,1"
    assert last_causes(step, (sharded("i"),), (sharded(None, "i"),)) == [
        (
            f"x was sharded as P(None, 'i') {mesh} instead of P('i') {mesh}",
            "set the sharding of x once, with jax.device_put, before the first call",
        )
    ]


def test_config() -> None:
    jitted = jax.jit(step)
    with registry.own_history(), jitcount.record() as log:
        jitted(arr(3))
        with jax.default_matmul_precision("float32"):
            jitted(arr(3))
    (cause,) = log.compiles[-1].causes
    assert str(cause) == "the setting jax_default_matmul_precision went from None to 'float32'"
    assert cause.advice == "a context manager has set it; set it once, before the first call"


def test_config_for_the_whole_program() -> None:
    jitted = jax.jit(step)
    with registry.own_history(), jitcount.record() as log:
        jitted(arr(3))
        before = jax.config.values["jax_numpy_rank_promotion"]
        jax.config.update("jax_numpy_rank_promotion", "raise")
        try:
            jitted(arr(3))
        finally:
            jax.config.update("jax_numpy_rank_promotion", before)
    (cause,) = log.compiles[-1].causes
    assert str(cause) == "the setting jax_numpy_rank_promotion went from 'allow' to 'raise'"
    assert cause.advice == "jax.config.update has set it; set it once, before the first call"


def test_jit_options() -> None:
    with registry.own_history(), jitcount.record() as log:
        jax.jit(step)(arr(3))
        jax.jit(step, donate_argnums=0)(arr(3))
    (cause,) = log.compiles[-1].causes
    assert str(cause) == "another jax.jit of the function has donate_argnums=(0,) instead of ()"
    assert cause.advice == (
        "keep one jax.jit of the function, with donate_argnums=(), and call that"
    )


def test_caches_cleared() -> None:
    jitted = jax.jit(step)
    with registry.own_history(), jitcount.record() as log:
        jitted(arr(3))
        jax.clear_caches()
        jitted(arr(3))
    (cause,) = log.compiles[-1].causes
    assert str(cause) == (
        "the identical program of step had been compiled: caches were cleared, "
        "or the entry was evicted"
    )
    assert cause.advice == "do not call jax.clear_caches() between calls of step"


def test_eager_operation_of_another_size() -> None:
    with registry.own_history(), jitcount.record() as log:
        for length in 47, 53:
            jnp.full((length,), np.float32(2))
    (cause,) = log.compiles[-1].causes
    assert str(cause) == "parameter shape went from (47,) to (53,)"
    assert cause.advice == "put the operation into a jitted function, or keep its shape the same"


def test_loop_with_a_new_body() -> None:
    with registry.own_history(), jitcount.record() as log:
        for _ in range(2):
            jax.lax.fori_loop(0, 3, lambda i, x: x + i, 0)
    kinds = [c.causes[0].kind for c in log.compiles if c.function in {"while", "scan"}]
    assert kinds == ["first-call", "new-function"]


def test_the_cause_cannot_be_known() -> None:
    assert str(Unknown("", "nobody saw it")) == "the cause is not known: nobody saw it"
