"""An argument is walked as JAX flattens it: the same leaves in the same order."""

import collections
import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from jitcount._observe.trees import Node, walk


class Point(NamedTuple):
    x: Any
    y: Any


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["kernel", "bias"], meta_fields=["name"]
)
@dataclasses.dataclass
class Layer:
    kernel: Any
    bias: Any
    name: str = "dense"


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, *both: Any) -> None:
        self.both = both

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return self.both, None

    @classmethod
    def tree_unflatten(cls, _static: None, both: tuple[Any, ...]) -> "Pair":
        return cls(*both)


def walked(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    walk(value, "x", found, describe=lambda leaf: leaf)
    return found


def nodes(value: Any) -> dict[str, Node]:
    return {place: found for place, found in walked(value).items() if isinstance(found, Node)}


def leaves(value: Any) -> dict[str, Any]:
    return {place: leaf for place, leaf in walked(value).items() if not isinstance(leaf, Node)}


TREES = {
    "leaf": 1.5,
    "none": None,
    "dict": {"b": 1, "a": 2},
    "dict of tuples": {(10,): 1, (2,): 2},
    "dict of numbers": {1.5: 1, 1: 2, 10: 3},
    "ordered dict": collections.OrderedDict([("b", 1), ("a", 2)]),
    "default dict": collections.defaultdict(int, b=1, a=2),
    "list": [1, [2, (3, None)], []],
    "named tuple": Point(1, [2]),
    "dataclass": Layer([1, 2], None),
    "another library's node": Pair(1, {"a": 2}),
    "array": np.ones(3),
    "deep": {"a": [Layer(Point(1, 2), Pair(3, [4]))]},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_the_leaves_are_jaxs_in_jaxs_order(tree: Any) -> None:
    found, expected = list(leaves(tree).values()), jax.tree.leaves(tree)
    assert len(found) == len(expected)
    assert all(map(lambda a, b: a is b, found, expected))


@pytest.mark.parametrize(
    ("tree", "places"),
    [
        ({"b": 1, "a": 2}, ["x['a']", "x['b']"]),
        ({0: 1}, ["x[0]"]),
        ([1, (2,)], ["x[0]", "x[1][0]"]),
        (Point(1, [2]), ["x.x", "x.y[0]"]),
        (Layer(1, {"c": 2}), ["x.kernel", "x.bias['c']"]),
        (1.5, ["x"]),
    ],
)
def test_places_are_written_as_a_user_would(tree: Any, places: list[str]) -> None:
    assert list(leaves(tree)) == places


def test_a_node_has_its_type_and_its_keys() -> None:
    found = nodes({"a": [1, None], "b": Point(1, ())})
    assert {place: (node.type_name, node.keys) for place, node in found.items()} == {
        "x": ("dict", ("['a']", "['b']")),
        "x['a']": ("list", ("[0]", "[1]")),
        "x['a'][1]": ("None", ()),
        "x['b']": ("Point", (".x", ".y")),
        "x['b'].y": ("tuple", ()),
    }


def test_nodes_are_equal_where_their_static_fields_are() -> None:
    assert nodes(Layer(1, 2)) == nodes(Layer(3, 4))
    assert nodes(Layer(1, 2)) != nodes(Layer(1, 2, name="conv"))


def test_an_object_that_is_no_tree_is_a_leaf() -> None:
    thing = object()
    assert leaves({"a": thing}) == {"x['a']": thing}


def test_keys_without_an_order_are_walked_as_they_come() -> None:
    assert list(leaves({"a": 1, 2: 3})) == ["x['a']", "x[2]"]
