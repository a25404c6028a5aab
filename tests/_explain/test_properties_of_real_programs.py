"""Random statics, random trees of registered nodes, random transformations: each change is named.

And only that: a value that is equal to the one before is no change, however it is made.
"""

import enum
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import monitoring

import jitcount
from jitcount._explain.explain import causes_of
from jitcount._explain.history import History
from jitcount._jax import frames
from jitcount._observe.program import Program, describe_call
from jitcount._registry import registry
from tests.helpers import unregister

Causes = set[tuple[str, str]]


def step(x: Any, config: Any = None) -> Any:
    del config
    return x


def info_of(**options: Any) -> Any:
    """JAX's own record of a jit, from a real call."""
    seen: list[frames.JitCall] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if (call := frames.read_tracing(sys._getframe())) is not None:
            seen.append(call)

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        jax.jit(step, **options).trace(np.ones(3), 1)
    finally:
        unregister({"event_duration": on_end})
    return seen[0].info


@pytest.fixture(scope="module")
def traced() -> Any:
    return info_of()


@pytest.fixture(scope="module")
def static() -> Any:
    return info_of(static_argnums=1)


def program(info: Any, *args: Any) -> Program:
    return describe_call(frames.JitCall(step, args, {}, info, None), "step")


def causes_of_calls(info: Any, *calls: tuple[Any, ...]) -> Causes:
    """The causes of the last of some calls."""
    past = History()
    for call in calls[:-1]:
        past.add(program(info, *call))
    last = program(info, *calls[-1])
    neighbours = past.add(last)
    assert neighbours is not None
    return {(str(cause.kind), cause.where) for cause in causes_of(last, neighbours)}


UNCHANGED: Causes = {("caches-cleared", "step")}


# --- Static arguments -----------------------------------------------------------------------------


class Mode(enum.Enum):
    TRAIN = 1
    EVAL = 2


class ByValue:
    """It can be compared, and nothing tells it apart but that."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)


class ByIdentity:
    """It cannot."""


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    mode: Mode = Mode.TRAIN
    axes: tuple[int, ...] = (0, -1)


@dataclass(frozen=True)
class Config:
    """A configuration as people write them."""

    width: int = 1
    name: str = "adam"
    inner: Inner = field(default_factory=Inner)
    activation: Callable[..., Any] = jnp.sin
    value: ByValue = field(default_factory=lambda: ByValue(-1))


numbers = st.integers(-3, 3)  # hash(-1) == hash(-2)

inners = st.builds(
    Inner,
    st.sampled_from([0.0, -0.0, 0.5, 1.0]),
    st.sampled_from(Mode),
    st.lists(numbers, max_size=3).map(tuple),
)
configs = st.builds(
    Config,
    numbers | st.booleans(),
    st.text("ab", max_size=2),
    inners,
    st.sampled_from([jnp.sin, jnp.cos, jnp.tanh]),
    numbers.map(ByValue),
)


def changes(old: Config, new: Config) -> Causes:
    """The fields that differ, as Python compares them: 0.0 and -0.0 do not, nor do 1 and True."""
    pairs = {
        ".width": (old.width, new.width),
        ".name": (old.name, new.name),
        ".inner.rate": (old.inner.rate, new.inner.rate),
        ".inner.mode": (old.inner.mode, new.inner.mode),
        ".inner.axes": (old.inner.axes, new.inner.axes),
        ".activation": (old.activation, new.activation),
        ".value.number": (old.value.number, new.value.number),
    }
    return {("static-argument", f"config{path}") for path, (a, b) in pairs.items() if a != b}


X = jax.ShapeDtypeStruct((3,), "float32")


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(old=configs, new=configs)
def test_each_field_of_a_configuration_that_changed_is_named(
    static: Any, old: Config, new: Config
) -> None:
    expected = changes(old, new)
    assert causes_of_calls(static, (X, old), (X, new)) == (expected or UNCHANGED)


@settings(max_examples=200, deadline=None)
@given(config=configs, length=st.integers(4, 9))
def test_an_equal_configuration_that_is_made_anew_is_no_change(
    static: Any, config: Config, length: int
) -> None:
    inner = Inner(config.inner.rate, config.inner.mode, tuple(config.inner.axes))
    again = Config(
        config.width, config.name, inner, config.activation, ByValue(config.value.number)
    )
    longer = jax.ShapeDtypeStruct((length,), "float32")
    assert causes_of_calls(static, (X, config), (longer, again)) == {("shape", "x")}


values = st.one_of(
    numbers,
    st.booleans(),
    st.none(),
    st.text("ab", max_size=2),
    st.sampled_from(Mode),
    numbers.map(ByValue),
    st.builds(ByIdentity),
    st.sampled_from([jnp.sin, jnp.cos]),
    st.lists(numbers, max_size=3).map(tuple),
    inners,
)


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(old=values, new=values)
def test_any_other_static_value_is_named(static: Any, old: Any, new: Any) -> None:
    found = causes_of_calls(static, (X, old), (X, new))
    if old == new and type(old) is type(new):
        assert found == UNCHANGED
        return
    kinds = {kind for kind, _ in found}
    assert kinds == {"static-argument"}
    assert all(where.partition(".")[0] == "config" for _, where in found)


# --- Trees of registered nodes --------------------------------------------------------------------


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["w", "child"], meta_fields=["name", "apply"]
)
@dataclass
class Layer:
    """A dataclass with static fields."""

    w: Any
    child: Any
    name: str
    apply: Any


class Registered:
    """A class of the user's, registered by hand."""

    def __init__(self, items: Any, size: int) -> None:
        self.items = items
        self.size = size


jax.tree_util.register_pytree_node(
    Registered,
    lambda node: ((node.items,), node.size),
    lambda size, children: Registered(children[0], size),
)


class Pair(NamedTuple):
    first: Any
    second: Any


class Known(NamedTuple):
    """A named tuple that is registered as something else."""

    value: Any
    label: str


jax.tree_util.register_pytree_node(
    Known, lambda node: ((node.value,), node.label), lambda label, children: Known(*children, label)
)

leaves = st.builds(
    jax.ShapeDtypeStruct,
    st.lists(st.integers(0, 3), max_size=2).map(tuple),
    st.sampled_from(["float32", "int32"]),
)
names = st.sampled_from(["a", "b"])
functions = st.sampled_from([jnp.sin, jnp.cos])
trees = st.recursive(
    leaves | st.none(),
    lambda inner: (
        st.builds(Layer, leaves, inner, names, functions)
        | st.builds(Registered, inner, st.integers(0, 2))
        | st.builds(Pair, inner, inner)
        | st.builds(Known, inner, names)
        | st.dictionaries(st.sampled_from(["k", "v"]), inner, max_size=2)
    ),
    max_leaves=8,
)

often = st.integers(0, 3).map(lambda number: number == 0)


class Changing:
    """Changes some places of a tree, and notes which."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.expected: Causes = set()

    def tree(self, tree: Any, place: str) -> Any:
        if isinstance(tree, Layer):
            return Layer(
                self.tree(tree.w, f"{place}.w"),
                self.tree(tree.child, f"{place}.child"),
                self.static(tree.name, "ab", f"{place}.name"),
                self.static(tree.apply, (jnp.sin, jnp.cos), f"{place}.apply"),
            )
        if isinstance(tree, Registered):
            size = self.static(tree.size, (0, 1, 2), f"{place}.size")
            return Registered(self.tree(tree.items, f"{place}.items"), size)
        if isinstance(tree, Known):
            value = self.tree(tree.value, f"{place}.value")
            return Known(value, self.static(tree.label, "ab", f"{place}.label"))
        if isinstance(tree, Pair):
            return Pair(
                self.tree(tree.first, f"{place}.first"), self.tree(tree.second, f"{place}.second")
            )
        if isinstance(tree, dict):
            return self.keys({k: self.tree(v, f"{place}[{k!r}]") for k, v in tree.items()}, place)
        return self.leaf(tree, place)

    def static(self, value: Any, choices: Any, place: str) -> Any:
        if not self.draw(often):
            return value
        self.expected.add(("static-argument", place))
        return next(choice for choice in choices if choice != value)

    def keys(self, tree: dict[str, Any], place: str) -> dict[str, Any]:
        if self.draw(often):
            self.expected.add(("pytree", place))
            return {**tree, "zz": self.draw(trees)}
        return tree

    def leaf(self, leaf: Any, place: str) -> Any:
        if not self.draw(often):
            return leaf
        if leaf is None or self.draw(st.booleans()):
            self.expected.add(("pytree", place))
            return None if leaf is not None else self.draw(leaves)
        self.expected.add(("shape", place))
        return jax.ShapeDtypeStruct((*leaf.shape, 7), leaf.dtype)


@pytest.mark.thorough
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), tree=trees)
def test_each_change_in_a_tree_of_registered_nodes_is_named(
    traced: Any, data: st.DataObject, tree: Any
) -> None:
    changing = Changing(data.draw)
    later = changing.tree(tree, "x")
    assert causes_of_calls(traced, (tree,), (later,)) == (changing.expected or UNCHANGED)


# --- Transformations ------------------------------------------------------------------------------


def axes_of(axes: tuple[int | None, ...]) -> tuple[Any, ...]:
    """Arrays of a vmap: (2, 2) where they are mapped, and (2,) where they are not."""
    return tuple(np.ones(2 if axis is None else (2, 2), np.float32) for axis in axes)


def is_mapped(axes: tuple[int | None, ...]) -> bool:
    return any(axis is not None for axis in axes)


ways = st.one_of(
    st.tuples(st.just("vmap"), st.tuples(*[st.sampled_from([0, 1, None])] * 2).filter(is_mapped)),
    st.tuples(st.just("jvp"), st.sampled_from([(0,), (1,), (0, 1)])),
)


def call_in(way: tuple[str, Any], jitted: Any) -> None:
    kind, how = way
    if kind == "vmap":
        jax.vmap(jitted, how)(*axes_of(how))
        return
    x = np.ones(2, np.float32)

    def of(*chosen: Any) -> Any:
        given = dict(zip(how, chosen, strict=True))
        return jitted(*(given.get(number, x) for number in range(2)))

    jax.jvp(of, (x,) * len(how), (x,) * len(how))


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(way=ways, other=ways)
def test_another_transformation_is_told_as_one_and_the_same_is_not_compiled_again(
    way: tuple[str, Any], other: tuple[str, Any]
) -> None:
    jax.clear_caches()

    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * jnp.cos(y)

    with registry.own_history(), jitcount.record() as log:
        for each in way, way, other:
            call_in(each, f)
    found = [[str(c.kind) for c in one.causes] for one in log.compiles if one.function == "f"]
    if way == other:
        assert found == [["first-call"]]
    elif way[0] == other[0]:
        assert found == [["first-call"], ["transform"]]
    else:
        assert found == [["first-call"], ["first-call"]]


def vmapped(f: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """Over arrays that are made here, so that any function of two scalars can be mapped."""

    def mapped(x: Any, y: Any) -> Any:
        pairs = zip((x, y), axes, strict=True)
        many = [side if axis is None else jnp.stack([side] * 2) for side, axis in pairs]
        return jax.vmap(f, axes)(*many).sum()

    return mapped


def derived(f: Callable[..., Any], by: int) -> Callable[..., Any]:
    return jax.grad(f, by)


layers = st.one_of(
    st.sampled_from([(0, None), (None, 0), (0, 0)]).map(
        lambda axes: functools.partial(vmapped, axes=axes)
    ),
    st.integers(0, 1).map(lambda by: functools.partial(derived, by=by)),
)
stacks = st.lists(layers, min_size=1, max_size=3)


@pytest.mark.thorough
@settings(max_examples=15, deadline=None)
@given(stack=stacks, other=stacks)
def test_of_nested_transformations_every_program_has_a_cause(
    stack: list[Any], other: list[Any]
) -> None:
    jax.clear_caches()

    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * jnp.cos(y)

    def call_through(transformations: list[Any]) -> None:
        called: Any = f
        for transform in transformations:
            called = transform(called)
        called(np.float32(1), np.float32(2))

    with registry.own_history(), jitcount.record() as log:
        call_through(stack)
        once = log.count("f")
        call_through(stack)
        assert log.count("f") == once
        call_through(other)
    kinds = {str(c.kind) for one in log.compiles if one.function == "f" for c in one.causes}
    # What is derived twice is traced anew each time: JAX makes the same program again.
    assert kinds <= {"first-call", "transform", "shape", "new-function"}
