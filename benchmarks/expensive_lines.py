"""Programs with one expensive line each, beside others that are compiled the same without it.

The line is marked. What a profile blames on it is what removing it must save.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Program = Callable[[jax.Array], object]

PROGRAMS: dict[str, Program] = {}

SQUARE = np.linspace(0, 1, 64 * 64, dtype=np.float32).reshape(64, 64)


def add_program(function: Program) -> Program:
    """Add a program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def others(x: jax.Array) -> list[jax.Array]:
    """What every program computes besides: results that do not depend on each other."""
    return [
        jnp.where(x > 1, jnp.log1p(jnp.abs(x)), jnp.sin(x) / (1 + jnp.abs(x))),
        jnp.tanh(x).sum(axis=0) * 3,
        jnp.exp(-x * x).max(axis=1) + 1,
        jnp.cumsum(x * 5, axis=1),
        jnp.argmax(x * 7, axis=0),
        x[jnp.arange(30), jnp.arange(30)] ** 3.5,
        jnp.arctan2(x, x.T + 2).mean(axis=1),
    ]


@add_program
def sort(x: jax.Array) -> object:
    return jax.lax.sort((x, x * 2, x * 3), dimension=0, num_keys=2)  # expensive


@add_program
def random_gamma(x: jax.Array) -> object:
    return jax.random.gamma(jax.random.key(0), x, (64, 64))  # expensive


@add_program
def softmax(x: jax.Array) -> object:
    y = x.reshape(4, 16, 64)
    return [jax.nn.softmax(y * axis, axis=axis) for axis in (0, 1, 2)]  # expensive


@add_program
def attention(x: jax.Array) -> object:
    y = x.reshape(1, 64, 4, 16)
    return jax.nn.dot_product_attention(y, y * 2, y + 1, is_causal=True)  # expensive


@add_program
def gradient(x: jax.Array) -> object:
    def loss(x: jax.Array) -> jax.Array:
        return jax.scipy.special.betainc(2.0, 3.0, jax.nn.sigmoid(x)).sum()  # expensive

    return jax.grad(loss)(x)


@add_program
def convolution(x: jax.Array) -> object:
    y, kernel = x[None, None], jnp.ones((1, 1, 5, 3))
    return jax.lax.conv_general_dilated(y, kernel, (2, 1), "SAME", (1, 1), (2, 1))  # expensive


@add_program
def fft(x: jax.Array) -> object:
    return [jnp.abs(jnp.fft.fftn(x * 2, axes=axes)) for axes in ((0,), (1,), (0, 1))]  # expensive


@add_program
def cholesky(x: jax.Array) -> object:
    return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(x @ x.T), True), x)  # expensive


@add_program
def exponential(x: jax.Array) -> object:
    return jax.scipy.linalg.expm(x)  # expensive


@add_program
def unrolled(x: jax.Array) -> object:
    for number in range(40):
        x = jnp.sin(x + number) * jnp.cumsum(x, axis=number % 2) + x.sum()  # expensive
    return x


TABLE = np.arange(300_000, dtype=np.float32)


@add_program
def constant(x: jax.Array) -> object:
    return jnp.cumsum(jnp.flip(jnp.asarray(TABLE).reshape(300, 1000)) * 2 + 1)[:64] + x  # expensive


@add_program
def python_heavy(x: jax.Array) -> object:
    return x * (sum(number % 7 for number in range(3_000_000)) % 3)  # expensive


@add_program
def vmapped_scan(x: jax.Array) -> object:
    def step(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.sort(carry * row) + jax.scipy.special.gammaln(1 + row), carry.sum()  # expensive

    return jax.vmap(lambda row: jax.lax.scan(step, row, x)[0])(x)  # expensive


@add_program
def special(x: jax.Array) -> object:
    return jax.scipy.special.gammainc(1.0 + x, x)  # expensive


@add_program
def eigenvalues(x: jax.Array) -> object:
    return jnp.linalg.eigh(x + x.T)  # expensive


@add_program
def associative_scan(x: jax.Array) -> object:
    return jax.lax.associative_scan(lambda a, b: a * b + jnp.sin(a) * b, x, axis=0)  # expensive


@add_program
def indexing(x: jax.Array) -> object:
    rows = (x * 63).astype(int)  # expensive
    picked, added = x[rows, rows.T], x.at[rows[0]].add(x)  # expensive
    return jnp.where(picked > 0.5, x[rows[:, ::2]].sum(axis=1), added)  # expensive


@add_program
def recurrent(x: jax.Array) -> object:
    state = cell = jnp.zeros((8, 16))
    for number in range(20):
        gates = jnp.concatenate([x[number : number + 8, :16], state], 1) @ x[:32]  # expensive
        forget, let_in, let_out, new = map(jax.nn.sigmoid, jnp.split(gates, 4, axis=1))  # expensive
        cell = forget * cell + let_in * jnp.tanh(new)  # expensive
        state = let_out * jnp.tanh(cell)  # expensive
    return state


def program(name: str, *, is_expensive: bool) -> Callable[[jax.Array], object]:
    """A program to be jitted, with its expensive line or without."""
    return partial(_both, PROGRAMS[name]) if is_expensive else others


def _both(function: Program, x: jax.Array) -> object:
    return others(x), function(x)
