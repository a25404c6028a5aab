"""Unrolled loops are found, with their turns and their lines, and nothing else is taken for one."""

from __future__ import annotations

import functools
import inspect
import random
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._loops.find import by_line, find_loops
from tests._loops.random_programs import arguments, random_program, transformed

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._loops.result import Loop

X = np.ones((4, 8), np.float32)
WS = [np.ones((8, 8), np.float32)] * 6


def loops_in(f: Callable[..., Any], *arguments: Any) -> tuple[Loop, ...]:
    found = find_loops(jax.jit(f).trace(*arguments).jaxpr)
    return tuple(loop for loop, _ in by_line(found))


def turns_in(f: Callable[..., Any], *arguments: Any) -> list[int]:
    return [loop.copies for loop in loops_in(f, *arguments)]


def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w) + 1


# --- Random programs ------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_loops_have_their_turns_and_lines(first: int) -> None:
    for seed in range(first, first + 20):
        chance = random.Random(seed)  # noqa: S311 (nothing secret)
        written = random_program(chance, chance.randint(1, 3))
        f = transformed(chance, written.function())
        found = {(loop.call_site.line, loop.copies) for loop in loops_in(f, *arguments(chance))}
        assert found == set(zip(written.lines, written.turns, strict=True)), (seed, written.source)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_programs_without_a_loop_have_none(first: int) -> None:
    for seed in range(first, first + 50):
        chance = random.Random(seed)  # noqa: S311 (nothing secret)
        written = random_program(chance, 0)
        f = transformed(chance, written.function())
        assert loops_in(f, *arguments(chance)) == (), (seed, written.source)


# --- What is a loop -------------------------------------------------------------------------------


def test_a_for_loop_is_named_by_its_own_line() -> None:
    def net(x: Any, ws: Any) -> Any:
        for w in ws:
            x = x * 2
            x = layer(x, w)
        return x

    (loop,) = loops_in(net, X, WS)
    line = inspect.getsourcelines(net)[1] + 1
    assert loop.call_site.line == line
    assert loop.call_site.endswith(
        f"test_find.py:{line} in test_a_for_loop_is_named_by_its_own_line.net"
    )
    assert (loop.copies, loop.operations, loop.backward) == (6, 4, None)


def test_a_gradient_is_beside_its_loop() -> None:
    def net(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(x, w)
        return x.sum()

    (loop,) = loops_in(jax.value_and_grad(net), WS, X)
    assert loop.copies == 6
    assert loop.backward is not None
    assert loop.backward[0] in {5, 6}


def by_while(x: Any, ws: Any) -> Any:
    i = 0
    while i < len(ws):
        x = layer(x, ws[i])
        i += 1
    return x


def by_comprehension(x: Any, ws: Any) -> Any:
    return [layer(x, w) for w in ws]


def by_generator(x: Any, ws: Any) -> Any:
    return sum(layer(x, w) for w in ws)


def by_reduce(x: Any, ws: Any) -> Any:
    return functools.reduce(layer, ws, x)


def by_map(x: Any, ws: Any) -> Any:
    return list(map(functools.partial(layer, x), ws))


def by_recursion(x: Any, ws: Any) -> Any:
    return by_recursion(layer(x, ws[0]), ws[1:]) if ws else x


def by_rows_of_an_array(x: Any, ws: Any) -> Any:
    stacked = jnp.stack(ws)
    for i in range(len(ws)):
        x = layer(x, stacked[i]) * (i + 1)
    return x


def by_two_carries(x: Any, ws: Any) -> Any:
    y = x
    for w in ws:
        x, y = layer(y, w), x
    return x, y


def by_jit_inside(x: Any, ws: Any) -> Any:
    for w in ws:
        x = jax.jit(layer)(x, w)
    return x


def scaled_layer(i: int, x: Any, w: Any) -> Any:
    return layer(x, w) * i


def by_checkpoint(x: Any, ws: Any) -> Any:
    for i, w in enumerate(ws):
        x = jax.checkpoint(functools.partial(scaled_layer, i))(x, w)
    return x


def scanned_layer(w: Any, x: Any, _: None) -> Any:
    return layer(x, w), None


def by_scan_inside(x: Any, ws: Any) -> Any:
    for w in ws:
        x, _ = jax.lax.scan(functools.partial(scanned_layer, w), x, None, length=3)
    return x


def in_a_scan(x: Any, ws: Any) -> Any:
    return jax.lax.scan(lambda x, _: (by_while(x, ws), None), x, None, length=3)


def of_random_numbers(x: Any, ws: Any) -> Any:
    key = jax.random.key(0)
    for w in ws:
        key, now = jax.random.split(key)
        x = jnp.where(jax.random.bernoulli(now, 0.5, x.shape), layer(x, w), 0)
    return x


def within_a_with(x: Any, ws: Any) -> Any:
    with jax.named_scope("net"):
        try:
            for w in ws:
                x = layer(x, w)
        except ValueError:
            x = x + 1
    return x


@pytest.mark.parametrize(
    "f",
    [
        within_a_with,
        by_while,
        by_comprehension,
        by_generator,
        by_reduce,
        by_map,
        by_recursion,
        by_rows_of_an_array,
        by_two_carries,
        by_jit_inside,
        by_checkpoint,
        by_scan_inside,
        in_a_scan,
        of_random_numbers,
    ],
)
def test_a_loop_however_it_is_written(f: Callable[..., Any]) -> None:
    assert turns_in(f, X, WS) == [6]


def test_updates_of_many_layers_are_a_loop_of_tree_map() -> None:
    params = [{"w": np.ones((8, 8), np.float32), "b": np.ones(8, np.float32)} for _ in range(12)]
    f = functools.partial(jax.tree.map, lambda p: p - 0.1 * jnp.sin(p))
    assert turns_in(f, params) == [12]
    assert turns_in(f, params[:2]) == []


def test_steps_per_execution_are_named() -> None:
    """As keras #20411: a training step in a loop, once for each of `steps_per_execution`."""

    def loss(ws: Any, x: Any) -> Any:
        hidden = jnp.tanh(x @ ws[0])
        return ((hidden @ ws[1]) ** 2).mean()

    def train_step(ws: Any, x: Any) -> Any:
        return jax.tree.map(lambda w, g: w - 0.1 * g, ws, jax.grad(loss)(ws, x))

    def multi_step(ws: Any, xs: Any) -> Any:
        for x in xs:
            ws = train_step(ws, x)
        return ws

    ws = [np.ones((8, 16), np.float32), np.ones((16, 3), np.float32)]
    line = inspect.getsourcelines(multi_step)[1] + 1
    for steps in (5, 10, 20):
        (loop,) = loops_in(multi_step, ws, [X] * steps)
        assert (loop.copies, loop.call_site.line) == (steps, line)
    assert loops_in(multi_step, ws, [X]) == ()


def test_a_turn_of_another_shape_is_none() -> None:
    def mlp(ws: Any, x: Any) -> Any:
        for w in ws:
            x = jax.nn.relu(x @ w + 1)
        return x.sum()

    ws = [np.ones(shape, np.float32) for shape in [(8, 16), (16, 16), (16, 16), (16, 16), (16, 3)]]
    assert turns_in(mlp, ws, X) == [3]
    assert turns_in(jax.value_and_grad(mlp), ws, X) == [3]


# --- What is none ---------------------------------------------------------------------------------


def on_one_line(x: Any) -> Any:
    return x + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1


def by_hand(x: Any) -> Any:
    w = jnp.ones((8, 8))
    x = layer(x, w)
    x = layer(x, w)
    x = layer(x, w)
    return layer(x, w)


def in_jax(x: Any) -> Any:
    return jnp.stack([x, x + 1, x + 2, x + 3]).sum() + jax.scipy.special.ndtri(x / 9).sum()


def computed_twice(x: Any) -> Any:
    return jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum())(x)


def twice_differentiated(x: Any) -> Any:
    return jax.hessian(lambda x: jnp.maximum(x[0], jnp.tanh(x[1])).sum() ** 3)(x)


def of_other_shapes(x: Any) -> Any:
    for size in (16, 32, 64, 10):
        x = jax.nn.relu(x @ jnp.ones((x.shape[1], size)) + jnp.ones(size))
    return x


def the_same_each_time(x: Any) -> Any:
    for _ in range(5):
        y = jnp.sin(x) * 2
    return y


def differentiated_in_a_with(x: Any) -> Any:
    with jax.named_scope("net"):
        try:
            return jax.grad(lambda x: jnp.maximum(jnp.sin(x), jnp.cos(x)).sum())(x)
        except ValueError:
            return x


@pytest.mark.parametrize(
    "f",
    [
        on_one_line,
        differentiated_in_a_with,
        by_hand,
        in_jax,
        computed_twice,
        twice_differentiated,
        of_other_shapes,
        jax.grad(lambda x: of_other_shapes(x).sum()),
        the_same_each_time,
    ],
)
def test_what_is_no_loop(f: Callable[..., Any]) -> None:
    for _ in range(2):  # in a loop of its own, which is not the program's
        assert loops_in(f, X) == ()
