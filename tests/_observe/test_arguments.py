"""The arguments of real calls, place by place, under the names that the function has for them."""

from typing import Any

import jax
import numpy as np
import pytest

from jitcount._observe.program import Program
from jitcount._observe.statics import Static
from jitcount._observe.trees import Node
from jitcount._observe.values import Leaf
from tests.helpers import described

X = np.ones(3, np.float32)


def step(x: Any, y: Any = 2.0, *rest: Any, flag: Any = None) -> Any:
    return x, rest, flag


def places(program: Program) -> dict[str, type]:
    """What kind of thing stands at each place."""
    return dict(zip(program.places, map(type, program.values), strict=True))


def called(*args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> dict[str, type]:
    return places(described(lambda: jax.jit(step, **options or {})(*args, **kwargs)))


def test_arguments_have_the_names_of_the_function() -> None:
    assert called(X, X) == {"x": Leaf, "y": Leaf}


def test_an_argument_by_keyword_has_the_same_name() -> None:
    assert called(X, y=X) == {"x": Leaf, "y": Leaf}


def test_further_arguments_are_numbered() -> None:
    assert list(called(X, X, X, X)) == ["x", "y", "rest[0]", "rest[1]"]


def test_arguments_of_a_function_without_a_signature_are_numbered() -> None:
    program = described(lambda: jax.jit(dict)({"a": X}))
    assert places(program) == {"args[0]": Node, "args[0]['a']": Leaf}


def test_each_array_of_a_tree_has_its_place() -> None:
    assert called({"w": [X, None]}) == {
        "x": Node,
        "x['w']": Node,
        "x['w'][0]": Leaf,
        "x['w'][1]": Node,
    }


@pytest.mark.parametrize(
    "options", [{"static_argnums": 1}, {"static_argnums": -1}, {"static_argnames": "y"}]
)
def test_a_static_argument_is_known_by_number_from_both_ends_and_by_name(options: Any) -> None:
    assert called(X, 7, options=options) == {"x": Leaf, "y": Static}


def test_a_static_argument_is_known_when_it_is_passed_by_keyword() -> None:
    assert called(X, y=7, options={"static_argnames": "y"}) == {"x": Leaf, "y": Static}


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "y"}])
def test_a_static_argument_that_is_left_out_makes_no_other_one_static(options: Any) -> None:
    assert called(X, options=options) == {"x": Leaf}
    assert called(x=X[:2], options=options) == {"x": Leaf}


def test_under_vmap_arrays_keep_their_places_whatever_the_keys_are() -> None:
    jitted = jax.jit(lambda tree: jax.tree.map(lambda x: 2 * x, tree))
    tree = {(2,): np.ones((2, 3)), (10,): np.ones((2, 5))}
    program = described(lambda: jax.vmap(jitted)(tree))
    found = zip(program.places, program.values, strict=True)
    assert {place: value.shape for place, value in found if isinstance(value, Leaf)} == {
        "tree[(2,)]": (2, 3),
        "tree[(10,)]": (2, 5),
    }


def test_under_vmap_static_arguments_are_no_arrays() -> None:
    jitted = jax.jit(step, static_argnums=1)
    assert places(described(lambda: jax.vmap(lambda x: jitted(x, 7))(X))) == {
        "x": Leaf,
        "y": Static,
    }
