"""The whole words for what real programs do: of the last compile of a case of the catalogue."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._registry import registry
from tools.catalogue import CATALOGUE
from tools.cause_case import run_cause_case

CASES = {case.id: case for case in CATALOGUE}

Messages = list[tuple[str, str]]

BY_IDENTITY = "JAX knows functions as objects, not as text"


def messages(name: str, compile_number: int = -1) -> Messages:
    """Sentence and advice of each cause; files and lines of the catalogue's are left out."""
    compiles = run_cause_case(CASES[name])
    causes = compiles[compile_number].causes
    return [(re.sub(r"\S+\.py:\d+", "LINE", str(cause)), cause.advice) for cause in causes]


def shorter(*places: str, from_: tuple[int, ...] = (32,), to: tuple[int, ...] = (7,)) -> Messages:
    """Arrays whose first axis changed; a place may say what is behind it: "x,4"."""
    found = []
    for each in places:
        place, _, rest = each.partition(",")
        old, new = (f"float32[{','.join(map(str, side))}" for side in (from_, to))
        tail = f",{rest}]" if rest else "]"
        went = f"axis 0 of {place} went from {from_[0]} to {to[0]}"
        found.append(
            (
                f"{went}: {old}{tail} became {new}{tail}",
                (
                    f"pad axis 0 of {place} to a few lengths with jitcount.bucketed, "
                    "and mask the padding"
                ),
            )
        )
    return found


def static_number(place: str, before: str, after: str) -> Messages:
    return [
        (
            f"static argument {place} went from {before} to {after}",
            (
                f"pass {place} as an array if it is only computed with; "
                "if it gives a shape or chooses a branch, keep to a few values"
            ),
        )
    ]


def static_value(place: str, before: str, after: str) -> Messages:
    return [
        (
            f"static argument {place} went from {before} to {after}",
            f"each value of {place} has a program of its own: keep to a few of them",
        )
    ]


def field_of_model(change: str) -> Messages:
    place = change.partition(" ")[0]
    kept = "keep it the same, or keep what changes in an array field of Model"
    return [(change, f"{place} is compiled in: {kept}")]


def transformed(before: str, after: str) -> Messages:
    return [
        (
            f"f is compiled under {after}, and was under {before}",
            "each way of transforming f has a program of its own: keep to a few of them",
        )
    ]


def made_anew(operation: str) -> tuple[str, str]:
    return (
        f"a new lambda was made at LINE: {BY_IDENTITY}",
        f"call {operation} inside of a jitted function, or make the lambda once",
    )


def first_call(name: str, under: str = "") -> Messages:
    return [(f"first call of {name}{under}", f"nothing to mend: {name} must be compiled once")]


LAST: dict[str, Messages] = {
    # Statics.
    "static-argnums-given-by-keyword": static_value("mode", "'add'", "'multiply'"),
    "equal-objects-with-the-default-repr": shorter("x", from_=(4,), to=(5,)),
    "numbers-with-one-hash": static_number("axis", "-1", "-2"),
    "objects-with-one-hash": static_number("axis.axis", "-1", "-2"),
    "one-field-of-a-configuration": static_number("config.sequence", "128", "256"),
    "field-of-a-field-of-a-configuration": static_number(
        "config.optimizer.rate", "0.001", "0.0001"
    ),
    "two-fields-of-a-configuration": [
        *static_number("config.hidden", "4096", "2048"),
        *static_number("config.heads", "32", "16"),
    ],
    "static-function": [
        (
            "static argument activation went from sin to cos",
            "each function for activation has a program of its own: keep to a few of them",
        )
    ],
    "static-function-that-is-made-anew": [
        (
            "static argument activation is a new function object: <lambda> at LINE",
            (
                "make the function that is passed as activation once; "
                "pass what it reads, if that changes, as an argument"
            ),
        )
    ],
    "object-in-a-static-field": [
        (
            "model.notes is another object",
            "make what model.notes holds once, and give the same to every Model",
        )
    ],
    "function-in-a-static-field": field_of_model("model.apply went from sin to cos"),
    "number-in-a-static-field": field_of_model("model.steps went from 1 to 2"),
    "registered-namedtuple": [
        (
            "named.name went from 'a' to 'b'",
            (
                "named.name is compiled in: "
                "keep it the same, or keep what changes in an array field of Named"
            ),
        )
    ],
    # No array is static.
    "array-of-jnp-all": [
        (
            "axis 0 of a went from 500 to 600: bool[500,500] became bool[600,500]",
            "pad axis 0 of a to a few lengths with jitcount.bucketed, and mask the padding",
        )
    ],
    "key-of-random-uniform": static_value("shape", "(4,)", "(5,)"),
    # Neighbours: the arrays are what changed, whatever else is near.
    "two-closures-of-one-line": shorter("x,4", "y"),
    "methods-of-two-objects": shorter("x,4", "y"),
    "static-self-of-two-objects": shorter("x,4", "y"),
    "train-and-eval-with-ragged-batches": shorter("batch['mask']", "batch['x'],4", "batch['y']"),
    "two-jits-one-with-donation": shorter("x,4", "y"),
    "block-with-a-setting": shorter("x,4", "y"),
    "optional-key-that-was-there-before": shorter("batch['mask']", "batch['x']", "batch['y']"),
    # Transformations.
    "static-argument-under-vmap": static_number("n", "2", "3"),
    "structure-under-vmap": [
        (
            "tree went from a dict with ['b'] to a list of 1",
            "pass tree as a dict with ['b'] in every call",
        )
    ],
    "vmap-over-another-axis": transformed(
        "vmap over axis 0 of every argument", "vmap over axis 1 of every argument"
    ),
    "vmap-over-another-argument": transformed("vmap over axis 0 of x", "vmap over axis 0 of y"),
    "with-and-without-vmap": first_call("f", " under vmap"),
    "value-and-grad-in-a-loop": [
        (
            f"jax.jit was given a new value_and_grad of loss: {BY_IDENTITY}",
            "make the jax.jit of loss once, outside of the loop",
        )
    ],
    "callable-objects": [
        (
            f"jax.jit was given another Net than before: {BY_IDENTITY}",
            "keep one Net, and one jax.jit of it",
        )
    ],
    # Eager code.
    "bodies-at-two-lines": first_call("scan"),
    "body-that-is-made-anew": [made_anew("scan")],
    "condition-and-body-that-are-made-anew": [made_anew("while")] * 2,
    "branches-that-are-made-anew": [made_anew("cond")] * 2,
    "operations-at-unrelated-lines": first_call("multiply"),
}


@pytest.mark.parametrize("name", LAST)
def test_the_last_compile_is_explained_in_these_words(name: str) -> None:
    assert messages(name) == LAST[name]


def test_by_another_argument_is_said_in_the_users_names() -> None:
    assert messages("grad-by-another-argument", 2) == transformed("grad by x", "grad by y")
    ((said, _),) = messages("grad-by-another-argument", 3)
    arrays = r"backward pass of \d arrays"
    assert re.fullmatch(f"f is compiled under {arrays}, and was under {arrays}", said)


def test_what_is_static_is_told_before_the_arrays_of_its_own() -> None:
    assert messages("train-and-eval-with-ragged-batches", 2) == static_number(
        "train", "True", "False"
    )
    assert messages("methods-of-two-objects", 1) == [
        (
            "_update is a method of another object than before",
            "keep one object, and one jax.jit of its _update",
        )
    ]
    assert messages("static-self-of-two-objects", 1) == [
        (
            "static argument self went from Learner(rate=0.1) to Learner(rate=0.2)",
            (
                "each Learner object has a program of its own: keep to a few of them, "
                "or pass what differs as an array"
            ),
        )
    ]


def test_an_operation_inside_and_outside_of_grad_at_one_line() -> None:
    x = jax.device_put(np.float32(2))
    with registry.own_history(), jitcount.record() as log:
        # The backward pass multiplies at the line that asks for it.
        _ = jax.lax.mul(x, x), jax.grad(lambda x: jax.lax.integer_pow(x, 2))(x)
    first, *more = [c.causes for c in log.compiles if c.function == "mul"]
    assert [str(cause) for cause in first] == ["first call of mul"]
    if not more:
        pytest.skip("this release of JAX compiles it once")
    assert [[(str(cause), cause.advice) for cause in causes] for causes in more] == [
        [
            (
                "first call of mul under backward pass",
                "nothing to mend: mul must be compiled once",
            )
        ]
    ]


def test_a_tangent_has_the_name_of_its_array() -> None:
    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def derivative(x: Any, y: Any) -> Any:
        return jax.jvp(f, (x, y), (x, y))

    x, y = np.ones(2, np.float32), np.float32(1)
    with registry.own_history(), jitcount.record() as log:
        jax.vmap(derivative, (0, None))(x, y)
        jax.vmap(derivative, (None, 0))(y, x)
    (cause,) = log.compiles[-1].causes
    assert str(cause) == (
        "f is compiled under vmap over axis 0 of y, axis 0 of the tangent of y "
        "around jvp by every argument, and was under vmap over axis 0 of x, "
        "axis 0 of the tangent of x around jvp by every argument"
    )


def test_a_part_of_an_argument_is_not_told_to_be_static() -> None:
    jitted = jax.jit(lambda tree: tree["b"] + 1)
    with registry.own_history(), jitcount.record() as log:
        jitted({"b": 1.0})
        jitted({"b": np.float32(1)})
    (cause,) = log.compiles[-1].causes
    assert cause.advice == "pass jnp.float32(...) for tree['b'] in every call"


def test_a_function_that_a_library_makes_is_kept() -> None:
    namespace: dict[str, Any] = {}
    source = "def make():\n    def apply(x):\n        return 2 * x\n    return apply"
    exec(compile(source, "/opt/site-packages/library.py", "exec"), namespace)  # noqa: S102
    with registry.own_history(), jitcount.record() as log:
        for _ in range(2):
            jax.jit(namespace["make"]())(np.ones(3))
    (cause,) = log.compiles[-1].causes
    assert cause.advice == (
        "keep the apply that the library made, and one jax.jit of it; "
        "if the library jits it itself, call it inside of a jitted function"
    )
