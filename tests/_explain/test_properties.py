"""Take any arguments, change some of them: the causes name what was changed, and nothing else."""

import sys
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import monitoring

from jitcount._explain.explain import causes_of
from jitcount._explain.history import History
from jitcount._jax import frames
from jitcount._observe.program import Program, describe_call
from jitcount._observe.surroundings import Settings
from jitcount._observe.values import Leaf
from tests.helpers import unregister

Causes = set[tuple[str, str]]


def step(x: Any, y: Any = None, *, flag: Any = None) -> Any:
    return x, y, flag


@pytest.fixture(scope="module")
def info() -> Any:
    """JAX's own record of a jit, from a real call."""
    seen: list[frames.JitCall] = []

    def on_end(event: str, duration_secs: float, **_about: Any) -> None:
        if (call := frames.read_tracing(sys._getframe())) is not None:
            seen.append(call)

    monitoring.register_event_duration_secs_listener(on_end)
    try:
        jax.jit(step).trace(np.ones(3))
    finally:
        unregister({"event_duration": on_end})
    return seen[0].info


shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
dtypes = st.sampled_from(["float32", "int32", "bfloat16", "bool"])
leaves = st.builds(jax.ShapeDtypeStruct, shapes, dtypes)
trees = st.recursive(
    leaves | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(["kernel", "bias", "a b", 0]), inner, max_size=3).filter(
            lambda d: len({type(key) for key in d}) <= 1
        )
    ),
    max_leaves=12,
)


def program(info: Any, *args: Any, fun: Any = step, **kwargs: Any) -> Program:
    return describe_call(frames.JitCall(fun, args, kwargs, info, None), "step")


def causes_between(earlier: Program, later: Program) -> Causes:
    past = History()
    past.add(earlier)
    neighbours = past.add(later)
    assert neighbours is not None
    return {(cause.kind, cause.where) for cause in causes_of(later, neighbours)}


def change(draw: Any, tree: Any, place: str, expected: Causes) -> Any:
    """Change some places of a tree, and note which."""
    if isinstance(tree, dict):
        changed = {k: change(draw, v, f"{place}[{k!r}]", expected) for k, v in tree.items()}
        if draw(rarely):
            changed["zz" if all(isinstance(k, str) for k in changed) else 99] = draw(leaves)
            expected.add(("pytree", place))
        return changed
    if isinstance(tree, list | tuple):
        items = [change(draw, v, f"{place}[{i}]", expected) for i, v in enumerate(tree)]
        return change_sequence(draw, tree, items, place, expected)
    return change_leaf(draw, tree, place, expected)


rarely = st.integers(0, 9).map(lambda number: number == 0)


def change_sequence(draw: Any, tree: Any, items: list[Any], place: str, expected: Causes) -> Any:
    if draw(rarely):
        expected.add(("pytree", place))
        items.append(draw(leaves))
    elif draw(rarely):
        expected.add(("pytree", place))
        return tuple(items) if isinstance(tree, list) else items
    return type(tree)(items)


def change_leaf(draw: Any, leaf: Any, place: str, expected: Causes) -> Any:
    if draw(rarely):
        expected.add(("pytree", place))
        return draw(leaves) if leaf is None else None
    if leaf is None:
        return None
    shape, dtype = leaf.shape, leaf.dtype
    if draw(st.booleans()):
        shape = draw(shapes.filter(lambda s: s != leaf.shape))
        expected.add(("shape", place))
    if draw(st.booleans()):
        dtype = draw(dtypes.filter(lambda d: d != str(leaf.dtype)))
        expected.add(("dtype", place))
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.mark.thorough
@settings(max_examples=500, deadline=None)
@given(data=st.data(), x=trees, y=trees)
def test_the_causes_name_what_was_changed_and_nothing_else(
    info: Any, data: st.DataObject, x: Any, y: Any
) -> None:
    expected: Causes = set()
    earlier = program(info, x, y)
    later = program(info, change(data.draw, x, "x", expected), change(data.draw, y, "y", expected))
    assert causes_between(earlier, later) == (expected or {("caches-cleared", "step")})


CHANGES: dict[str, tuple[str, str]] = {
    "donation": ("jit-options", "donate_argnums"),
    "inline": ("jit-options", "inline"),
    "keyword": ("call-convention", "y"),
    "flag": ("pytree", "flag"),
    "precision": ("config", "jax_default_matmul_precision"),
}


@pytest.mark.thorough
@settings(max_examples=200, deadline=None)
@given(data=st.data(), x=trees, y=leaves, what=st.sets(st.sampled_from(sorted(CHANGES))))
def test_options_and_ways_of_calling_are_named_beside_the_arguments(
    info: Any, data: st.DataObject, x: Any, y: Any, what: set[str]
) -> None:
    expected: Causes = {CHANGES[name] for name in what}
    earlier = program(info, x, y)
    later_x = change(data.draw, x, "x", expected)
    later_info = info
    if "donation" in what:
        later_info = later_info._replace(donate_argnums=(0,))
    if "inline" in what:
        later_info = later_info._replace(inline=not info.inline)
    flag = {"flag": jax.ShapeDtypeStruct((), "bool")} if "flag" in what else {}
    args, kwargs = ((later_x,), {"y": y}) if "keyword" in what else ((later_x, y), {})
    with jax.default_matmul_precision("float32" if "precision" in what else None):
        later = program(later_info, *args, **kwargs, **flag)
    assert causes_between(earlier, later) == (expected or {("caches-cleared", "step")})


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=40))
def test_the_nearest_has_the_fewest_differences_and_is_the_latest_of_equals(
    rows: list[tuple[int, ...]],
) -> None:
    programs = [
        Program(
            group=("f",),
            name="f",
            settings=Settings({}, frozenset()),
            places=tuple("abcd"),
            values=tuple(Leaf((length,), "float32", is_weak=False) for length in row),
        )
        for row in rows
    ]
    past = History()
    for earlier in programs[:-1]:
        past.add(earlier)
    new = programs[-1]
    distances = [
        sum(a != b for a, b in zip(earlier.values, new.values, strict=True))
        for earlier in programs[:-1]
    ]
    latest_nearest = max(i for i, d in enumerate(distances) if d == min(distances))
    found = past.add(new)
    assert found is not None
    assert found[0].values == programs[latest_nearest].values
