# ruff: noqa: ARG005 (steps have one signature)
"""What XLA:CPU made of random programs, rewritten, computes what they compute.

Its optimised text is HLO as well, with fusions, loops and layouts: so the rewrite is tested on
programs that a compiler wrote, without the compiler of a target.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.as_if import emulated_here
from jitcount._emulate.emulator import Emulator
from jitcount._emulate.translate import translate
from jitcount._jax.lowering import optimised_text
from jitcount._targets.names import parse
from tests._emulate.cases import QUICKLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests._emulate.conftest import Run

    Step = Callable[[Any, Any, int], Any]
    """Of two matrices of float32 with entries of about one, and a number; gives another."""


def _scan(x: Any, y: Any, n: int) -> Any:
    def body(carry: Any, row: Any) -> tuple[Any, Any]:
        carry = jnp.tanh(carry + row)
        return carry, carry * 0.5

    last, rows = lax.scan(body, y[0], jnp.broadcast_to(x[:, :1], (x.shape[0], y.shape[1])))
    return jnp.concatenate([rows, last[None]])


def _gather(x: Any, y: Any, n: int) -> Any:
    rows = jnp.asarray([n, 0, -1, 2 * n]) % x.shape[0]
    return x[rows]


def _scatter(x: Any, y: Any, n: int) -> Any:
    return x.at[jnp.asarray([n % x.shape[0], 0])].add(0.25)


def _cond(x: Any, y: Any, n: int) -> Any:
    return lax.cond(x[0, 0] * 0 > n - 2, jnp.sin, lambda a: a * 0.5, x)


def _while(x: Any, y: Any, n: int) -> Any:
    return lax.fori_loop(0, n + (x[0, 0] * 0).astype(int), lambda i, a: jnp.sin(a + i), x)


def _narrow(x: Any, y: Any, n: int) -> Any:
    """In whole numbers, so that no order of rounding shows."""
    whole = jnp.round(x[:, :1] * 0).astype(jnp.int8) + jnp.int8(n)
    return (whole << 1 ^ 5).astype(jnp.float32) * 0.01 + x


def _window(x: Any, y: Any, n: int) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1 + n % 2, 2), (1, 1), "SAME")


def _dot(x: Any, y: Any, n: int) -> Any:
    return jnp.einsum("ab,cb->ac" if n % 2 else "ab,cb->ca", x, _fit(y, x)) / x.shape[1]


def _batched(x: Any, y: Any, n: int) -> Any:
    left = jnp.stack([x, x * 0.5])
    return jnp.einsum("nab,ncb->nac", left, left).sum(0) / (2 * x.shape[1])


def _convolved(x: Any, y: Any, n: int) -> Any:
    kernel = jnp.full((1, 1, 2, 2), 0.25) * y[0, 0]
    return lax.conv_general_dilated(x[None, None], kernel, (1, 1), "SAME")[0, 0]


def _fit(y: Any, x: Any) -> Any:
    """As many columns as the other has."""
    return jnp.resize(y, (y.shape[0], x.shape[1]))


STEPS: dict[str, Step] = {
    "sine": lambda x, y, n: jnp.sin(x) * jnp.cos(x + n),
    "tanh": lambda x, y, n: jnp.tanh(x) - 0.5,
    "exponential": lambda x, y, n: jnp.exp(-jnp.abs(x)),
    "logistic": lambda x, y, n: jax.nn.sigmoid(x),
    "softmax": lambda x, y, n: jax.nn.softmax(x, axis=n % 2),
    "maximum": lambda x, y, n: jnp.maximum(x, _fit(y, x)[:1]),
    "where": lambda x, y, n: jnp.where(x > 0.1, x, 0.1),
    "sum": lambda x, y, n: x + x.sum(n % 2, keepdims=True) / x.size,
    "largest": lambda x, y, n: x - x.max(n % 2, keepdims=True),
    "cumulative": lambda x, y, n: jnp.cumsum(x, n % 2) / x.size,
    "reshape": lambda x, y, n: x.reshape(x.shape[1], x.shape[0]),
    "flatten": lambda x, y, n: x.reshape(1, -1)[:, :6],
    "transpose": lambda x, y, n: x.T,
    "turn": lambda x, y, n: jnp.stack([x, x + 1]).transpose(2, 0, 1).reshape(-1, 2)[:8],
    "reverse": lambda x, y, n: x[::-1, ::-1],
    "slice": lambda x, y, n: x[n % x.shape[0] :: 2],
    "dynamic slice": lambda x, y, n: lax.dynamic_slice(x, (n, n), (1, x.shape[1])),
    "update": lambda x, y, n: lax.dynamic_update_slice(x, x[:1] * 0.5, (n, 0)),
    "pad": lambda x, y, n: lax.pad(x, 0.5, ((n, 0, 1), (0, 1, 0)))[:9, :9],
    "concatenate": lambda x, y, n: jnp.concatenate([x, _fit(y, x)])[:9],
    "roll": lambda x, y, n: jnp.roll(x, n, 1),
    "sort": lambda x, y, n: jnp.sort(x, n % 2),
    "dot": _dot,
    "batched": _batched,
    "outer": lambda x, y, n: jnp.outer(x[0], y[0]),
    "vector": lambda x, y, n: (x @ x[0])[:, None] / x.shape[1] + x,
    "convolution": _convolved,
    "gather": _gather,
    "scatter": _scatter,
    "scan": _scan,
    "cond": _cond,
    "while": _while,
    "whole numbers": _narrow,
    "window": _window,
    "fft": lambda x, y, n: jnp.abs(jnp.fft.fft(x)) / x.shape[1],
    "grad": lambda x, y, n: jax.grad(lambda a: (jnp.sin(a) @ a.T).sum())(x) / x.size,
    "vmap": lambda x, y, n: jax.vmap(lambda row: row / (1 + jnp.dot(row, row)))(x),
    "iota": lambda x, y, n: x + jnp.arange(x.shape[1], dtype=x.dtype) * 0.1,
    "bits": lambda x, y, n: lax.bitcast_convert_type(
        lax.bitcast_convert_type(x, jnp.uint32) & jnp.uint32(0xFFFF0000), jnp.float32
    ),
}

Program = list[tuple[str, int, int, int]]
"""Steps: a name, the two values that it takes, and a number."""

_SHAPES = [(3, 4), (5, 4)]


def _step(rng: random.Random) -> tuple[str, int, int, int]:
    return rng.choice(list(STEPS)), rng.randint(0, 9), rng.randint(0, 9), rng.randint(0, 3)


def _run(program: Program, *given: Any) -> list[Any]:
    values = list(given)
    for name, one, other, number in program:
        values.append(STEPS[name](values[-1 - one % 2], values[other % len(values)], number))
    return values[len(given) :]


def _check(programs: list[Program], shapes: list[tuple[int, int]], run_text: Run) -> None:
    rng = np.random.default_rng(0)
    given = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]

    def f(x: Any, y: Any) -> list[Any]:
        return [made for program in programs for made in _run(program, x, y)]

    compiled = jax.jit(f, keep_unused=True, compiler_options=QUICKLY).lower(*given).compile()
    wanted = [np.asarray(each) for each in compiled(*given)]
    translated = translate(optimised_text(compiled.runtime_executable()))
    results = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in wanted]
    made = run_text(translated.text, results, *given)
    steps = [(i, step) for i, program in enumerate(programs) for step in program]
    for step, one, other in zip(steps, made, wanted, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5, err_msg=f"{step} of {programs[step[0]]}")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(5))
def test_random_programs_compute_the_same(seed: int, run_text: Run) -> None:
    """Ten of them in one: to compile is what takes time."""
    rng = random.Random(seed)  # noqa: S311 (chance, not secrets)
    programs = [[_step(rng) for _ in range(rng.randint(2, 4))] for _ in range(10)]
    shapes = [(rng.randint(1, 5), rng.randint(1, 5)) for _ in range(2)]
    _check(programs, shapes, run_text)


@pytest.mark.thorough
def test_each_step_computes_the_same(run_text: Run) -> None:
    """So that none of them depends on chance."""
    _check([[(name, 0, 0, number)] for name in STEPS for number in (1, 2)], _SHAPES, run_text)


# Ten programs each; `nox -s attack-as-if` runs three hundred of them for each target.
_SEEDS = range(100, 130 if os.environ.get("JITCOUNT_ATTACK") == "full" else 102)
_TARGETS = [
    pytest.param(target, marks=pytest.mark.aot(target), id=target)
    for target in ("tpu:v5e", "cuda:h100")
]


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("seed", _SEEDS)
def test_with_exact_products_a_targets_program_computes_what_the_cpus_does(
    seed: int, target: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 (chance, not secrets)
    programs = [[_step(rng) for _ in range(rng.randint(2, 4))] for _ in range(10)]
    shapes = [(rng.randint(1, 9), rng.randint(1, 140)) for _ in range(2)]
    numbers = np.random.default_rng(seed)
    given = [numbers.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]

    def f(x: Any, y: Any) -> list[Any]:
        return [made for program in programs for made in _run(program, x, y)]

    wanted = jax.jit(f)(*given)
    exact = replace(Emulator.for_target(parse(target), 600.0), arithmetic=EXACT)
    with emulated_here(exact) as emulation:
        found = jax.jit(f)(*given)
    assert [program.reason for program in emulation.programs] == [""]
    steps = [(i, step) for i, program in enumerate(programs) for step in program]
    for step, one, other in zip(steps, found, wanted, strict=True):
        message = f"{step} of {programs[step[0]]}"
        np.testing.assert_allclose(one, other, 1e-4, 1e-5, err_msg=message)
