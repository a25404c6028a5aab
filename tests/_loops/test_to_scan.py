"""A program with its loops as scans computes what it did before."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._loops.find import by_line, find_loops, outermost
from jitcount._loops.to_scan import NotAScanError, to_scan, with_stacks
from tests._loops import test_find
from tests._loops.random_programs import arguments, random_program, transformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

X, WS = test_find.X, test_find.WS


def each_as_scan(f: Callable[..., Any], *given: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """For each loop of a program, what it computes as it is and with that loop as a scan."""
    jaxpr = jax.jit(f).trace(*given).jaxpr
    leaves = jax.tree.leaves(given)
    before = jax.jit(to_scan(jaxpr, ()).function)(*leaves)
    for _, places in by_line(find_loops(jaxpr)):
        as_scan = jax.jit(to_scan(jaxpr, places).function)
        text = str(as_scan.trace(*leaves).jaxpr)
        assert "scan[" in text
        assert text != str(jaxpr)
        yield before, as_scan(*leaves)


@pytest.mark.parametrize(
    "f",
    [
        test_find.by_while,
        test_find.by_comprehension,
        test_find.by_generator,
        test_find.by_rows_of_an_array,
        test_find.by_two_carries,
        test_find.by_jit_inside,
        test_find.by_checkpoint,
        test_find.by_scan_inside,
        test_find.in_a_scan,
        test_find.of_random_numbers,
    ],
)
def test_the_same_however_a_loop_is_written(f: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    ws = [rng.normal(size=(8, 8)).astype(np.float32) for _ in range(6)]
    x = rng.normal(size=X.shape).astype(np.float32)
    pairs = list(each_as_scan(f, x, ws))
    assert len(pairs) == 1
    for one, other in zip(*pairs[0], strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)  # it may be fused otherwise


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("f", "ulps"),
    [
        (test_find.by_while, 0 if jax.__version_info__ >= (0, 8) else 1),  # fused otherwise before
        (test_find.by_rows_of_an_array, 4),
    ],
)
def test_a_gradient_computes_the_same(f: Callable[..., Any], ulps: int) -> None:
    rng = np.random.default_rng(0)
    ws = [rng.normal(size=(8, 8)).astype(np.float32) / 4 for _ in range(6)]
    loss = jax.value_and_grad(lambda ws, x: f(x, ws).sum())
    ((before, after),) = each_as_scan(loss, ws, X)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_max_ulp(one, other, maxulp=ulps)


# --- With arguments that are stacked from the start -----------------------------------------------


def all_as_scans_and_stacked(
    f: Callable[..., Any], *given: Any
) -> tuple[Any, list[Any], list[Any]]:
    """A program with all loops as scans and their arguments stacked; what both compute."""
    jaxpr = jax.jit(f).trace(*given).jaxpr
    leaves = jax.tree.leaves(given)
    stacks = with_stacks(jaxpr, outermost(find_loops(jaxpr)))
    if stacks is None:
        return None, [], []
    arguments = [
        np.stack([leaves[number] for number in held]) if len(held) > 1 else leaves[held[0]]
        for held in stacks.arguments or ()
    ]
    before = jax.jit(to_scan(jaxpr, ()).function)(*leaves)
    after: dict[int, Any] = {}
    for held, result in zip(
        stacks.results or (), jax.jit(stacks.function)(*arguments), strict=True
    ):
        after.update(zip(held, result if len(held) > 1 else [result], strict=True))
    return stacks, before, [after[number] for number in range(len(before))]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 4


def test_weights_that_come_apart_can_come_stacked() -> None:
    ws = [normal(8, 8, seed=seed) for seed in range(6)]
    stacks, before, after = all_as_scans_and_stacked(test_find.by_while, normal(*X.shape), ws)
    assert stacks.arguments == [(0,), (1, 2, 3, 4, 5, 6)]
    assert stacks.results == [(0,)]
    assert [each.shape for each in stacks.given] == [X.shape, (6, 8, 8)]
    np.testing.assert_array_equal(before, after)
    assert "concatenate" not in str(jax.make_jaxpr(stacks.function)(*stacks.given))


def test_a_step_of_training_takes_stacked_weights_and_gives_them() -> None:
    def step(ws: Any, x: Any) -> Any:
        def loss(ws: Any) -> Any:
            y = x
            for w in ws:
                y = jnp.tanh(y @ w) + jnp.sin(y) * 2
            return (y * y).sum()

        value, slopes = jax.value_and_grad(loss)(ws)
        return value, [
            w - 0.1 * jnp.sign(slope) * slope**2 for w, slope in zip(ws, slopes, strict=True)
        ]

    ws = [normal(8, 8, seed=seed) for seed in range(6)]
    stacks, before, after = all_as_scans_and_stacked(step, ws, normal(4, 8, seed=9))
    assert stacks.arguments == [(0, 1, 2, 3, 4, 5), (6,)]
    assert stacks.results == [(0,), (1, 2, 3, 4, 5, 6)]
    text = str(jax.make_jaxpr(stacks.function)(*stacks.given))
    assert text.count("scan[") == 3  # forward, backward, the update
    # In older releases the first turn has other operations, and stays outside of the scan.
    assert ("concatenate" in text) is (jax.__version_info__ < (0, 10))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_what_one_turn_has_made_can_be_used_in_another_loop_and_after_it() -> None:
    def f(x: Any, ws: Any) -> Any:
        made = []
        for w in ws:
            x = jnp.tanh(x @ w)
            made.append(x)
        for _ in range(5):
            x = jnp.sin(x * made[2]) + jnp.cos(x)
        return x + made[2], made[0] * made[4]

    ws = [normal(8, 8, seed=seed) for seed in range(6)]
    stacks, before, after = all_as_scans_and_stacked(f, normal(*X.shape), ws)
    assert str(jax.make_jaxpr(stacks.function)(*stacks.given)).count("scan[") == 2
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_without_arguments_to_stack_there_is_no_such_program() -> None:
    def f(x: Any) -> Any:
        for number in range(6):
            x = jnp.sin(x) * number + jnp.cos(x)
        return x

    assert all_as_scans_and_stacked(f, X)[0] is None


def test_of_loops_inside_of_each_other_the_outer_one_is_rolled_up() -> None:
    def f(x: Any) -> Any:
        for _ in range(4):
            x = jnp.cumsum(x, axis=0)
            for _ in range(5):
                x = jnp.sin(x) + jnp.cos(x)
        return x

    found = find_loops(jax.jit(f).trace(X).jaxpr)
    assert sorted(each.iterations for each in found) == [4, 5]
    assert [each.iterations for each in outermost(found)] == [4]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_random_loops_compute_the_same_with_stacked_arguments(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    f = transformed(chance, random_program(chance, 1).function())
    _, before, after = all_as_scans_and_stacked(f, *arguments(chance))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_random_loops_compute_the_same(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    written = random_program(chance, 1)
    f = transformed(chance, written.function())
    given = arguments(chance)
    for before, after in each_as_scan(f, *given):
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)


def test_what_prints_is_not_rolled_up() -> None:
    def f(x: Any) -> Any:
        for i in range(5):
            x = jnp.sin(x) * i
            jax.debug.print("{}", x)
        return x

    with pytest.raises(NotAScanError, match=r"^it does more than compute: debug_\w+$"):
        list(each_as_scan(f, X))
