"""Programs that have one dear line each; without it they are the same.

The line is marked. What a profile blames on it is what leaving it out must save.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Program = Callable[..., jax.Array]

PROGRAMS: dict[str, tuple[Program, tuple[object, ...]]] = {}

SQUARE = np.ones((64, 64), np.float32)


def program(*arguments: object) -> Callable[[Program], Program]:
    """Add a program to the table, with what it is called with."""

    def add(function: Program) -> Program:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return add


def work(x: jax.Array) -> jax.Array:
    """What every program does besides: some ordinary operations."""
    for _ in range(3):
        x = jnp.tanh(x @ x.T) + jnp.exp(-x * x).sum(axis=1, keepdims=True)
        x = jnp.where(x > 0, jnp.log1p(jnp.abs(x)), x / (1 + jnp.abs(x))) @ x
    return x


@program(SQUARE)
def sort(x: jax.Array, *, dear: bool) -> jax.Array:
    x = work(x)
    if dear:
        x = jax.lax.sort((x, x * 2, x * 3), dimension=0, num_keys=2)[1]  # dear
    return work(x)


@program(SQUARE)
def random_gamma(x: jax.Array, *, dear: bool) -> jax.Array:
    x = work(x)
    if dear:
        x = x + jax.random.gamma(jax.random.key(0), 2.0, (64, 64))  # dear
    return work(x)


def heads(x: jax.Array) -> jax.Array:
    return x.reshape(4, 16, 64)


@program(SQUARE)
def softmax(x: jax.Array, *, dear: bool) -> jax.Array:
    x = work(x)
    if dear:
        for axis in (0, 1, 2) * 4:
            x = jax.nn.softmax(heads(x) * 2, axis=axis).reshape(64, 64)  # dear
    return work(x)


@program(SQUARE)
def attention(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x).reshape(1, 64, 4, 16)
    if dear:
        for mask in (True, False, True, False):
            y = jax.nn.dot_product_attention(y, y * 2, y + 1, is_causal=mask)  # dear
    return work(y.reshape(64, 64))


@program(SQUARE)
def gradient(x: jax.Array, *, dear: bool) -> jax.Array:
    def loss(x: jax.Array) -> jax.Array:
        y = work(x)
        if dear:
            y = jax.scipy.special.betainc(2.0, 3.0, jax.nn.sigmoid(y))  # dear
        return y.sum()

    return jax.grad(loss)(x)


@program(SQUARE)
def convolution(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        for stride in (1, 2, 1, 3):
            kernel = jnp.ones((1, 1, 3 + stride, 3))
            z = y[None, None]
            y = y + jax.lax.conv_general_dilated(z, kernel, (stride, 1), "SAME").sum()  # dear
    return work(y)


@program(SQUARE)
def fft(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        for axes in ((0,), (1,), (0, 1), (0,)):
            y = y + jnp.fft.fftn(y * 2, axes=axes).real  # dear
    return work(y)


@program(SQUARE)
def cholesky(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        y = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(y @ y.T), True), y)  # dear
    return work(y)


@program(SQUARE)
def eigenvalues(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        y = y + jax.scipy.linalg.expm(y / 64)  # dear
    return work(y)


@program(SQUARE)
def unrolled(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        for number in range(60):
            y = jnp.sin(y + number) * jnp.cumsum(y, axis=number % 2) + jnp.roll(y, number)  # dear
    return work(y)


TABLE = np.arange(3_000_000, dtype=np.float32)


@program(SQUARE)
def constant(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        y = y + jnp.flip(jnp.asarray(TABLE) * 2 + 1).reshape(3000, 1000)[:64, :64]  # dear
    return work(y)


@program(SQUARE)
def python_heavy(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        y = y * (sum(number % 7 for number in range(4_000_000)) % 3)  # dear
    return work(y)


@program(SQUARE)
def vmapped_scan(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)

    def step(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry = jnp.sort(carry * row) + jax.scipy.special.gammaln(1 + row * row)  # dear
        return carry, carry.sum()

    if dear:
        y = y + jax.vmap(lambda row: jax.lax.scan(step, row, y)[0])(y)
    return work(y)


@program(SQUARE)
def special(x: jax.Array, *, dear: bool) -> jax.Array:
    y = work(x)
    if dear:
        y = jax.scipy.special.gammainc(1.0 + jnp.abs(y), jnp.abs(y))  # dear
    return work(y)


def bound(name: str, *, dear: bool) -> tuple[Callable[..., jax.Array], tuple[object, ...]]:
    """A program to be jitted, and its arguments."""
    function, arguments = PROGRAMS[name]
    return partial(function, dear=dear), arguments
