"""A compiled program against its operations one by one: rounding passes, anything else does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jitcount
from jitcount._jax.evaluating import compiled_again
from jitcount._miscompiles import checking
from jitcount._miscompiles.checking import Checker, difference
from jitcount._registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable

_RANDOM = np.random.default_rng(0)
_X = _RANDOM.normal(size=(33, 17)).astype(np.float32)
_KEY: Any = np.array([1, 2], np.uint32)


def _scanned(x: jax.Array) -> Any:
    carry, rows = lax.scan(lambda c, row: (c * 0.9 + row, jnp.sin(c)), x[0], x, reverse=True)
    return carry, rows, lax.scan(lambda c, _: (c + 1, None), 0, None, length=3)


def _looped(x: jax.Array) -> Any:
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.tanh(s[1] @ s[1].T) @ x),
                          (0, x))  # fmt: skip


def _one() -> int:
    return 1


def _zero() -> int:
    return 0


def _distances(x: jax.Array) -> jax.Array:
    squares = jnp.sum(x * x, 1)
    return jnp.sqrt(squares[:, None] + squares[None] - 2 * x @ x.T)


_RIGHT: dict[str, Callable[[jax.Array], Any]] = {
    "softmax": jax.nn.softmax,
    "scan": _scanned,
    "no steps": lambda x: lax.scan(lambda c, row: (c + row, row), x[0], x[:0]),
    "while": _looped,
    "cond": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "switch": lambda x: lax.switch(jnp.int32(7), [jnp.sin, jnp.cos, jnp.tan], x),
    "gradient": jax.grad(lambda x: jnp.sum(jax.nn.gelu(x @ x.T) ** 2)),
    "decided by rounding": lambda x: jnp.argmax(jnp.sum(x, 0) - jnp.sum(x[::-1], 0)),
    "a sum of nothing but rounding": lambda x: jnp.sum(x) - jnp.sum(x[:, ::-1]),
    "bfloat16": lambda x: jnp.mean(jnp.exp(x.astype("bfloat16")) / 3, 1),
    "random": lambda _: jax.random.normal(jax.random.wrap_key_data(_KEY), (9,)),
    "keys": lambda _: jax.random.split(jax.random.wrap_key_data(_KEY)),
    "complex": jnp.fft.fft,
    "linear algebra": lambda x: jnp.linalg.inv(x[:9, :9] + 20 * jnp.eye(9)),
    "integers": lambda x: (x * 100).astype("int32") % 7,
    "nan": jnp.log,
    "nothing": lambda _: (),
    "a constant": lambda _: jnp.ones(3),
    "checkpointed": jax.grad(lambda x: jnp.sum(jax.checkpoint(jnp.sin)(x))),
    "a number of Python's": lambda x: (x * x, 0, {"a": 1.0}, lax.cond(x[0, 0] > 0, _one, _zero)),
    "numbers of Python's in operations": lambda x: 1 - 0.9 ** x.astype(int) * jnp.sin(x) * x,
    "not a number by rounding": _distances,
    "a jump": lambda x: (jnp.arange(100_000.0) / 10 * 0.7 + 0.3 + 0 * x[0, 0]) % 1.0,
    "digits that may be kept": lambda x: jnp.sum(jnp.sin(x).astype("bfloat16").astype("float32")),
}


# Operation by operation these are many, and each shape is compiled.
_LONG = {"gradient", "random", "linear algebra", "bfloat16", "while", "a jump"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name in _LONG)) for name in _RIGHT],
)
def test_what_is_right_is_not_called_wrong(name: str) -> None:
    program = jax.make_jaxpr(_RIGHT[name])(_X)
    assert difference(program, [_X]) == ""


_WRONG: dict[str, tuple[Callable[[jax.Array], Any], Callable[[np.ndarray], Any], str]] = {
    "an element": (
        lambda x: x * 2,
        lambda found: np.where(np.arange(4) == 2, found + np.float32(0.25), found),
        "its result [2] is 6.25 compiled, and 6.0 operation by operation; 1 of 4 elements is wrong",
    ),
    "an integer": (
        lambda x: x.astype("int32"),
        lambda found: found + (np.arange(4) > 1).astype(np.int32),
        "its result [2] is 4 compiled, and 3 operation by operation; 2 of 4 elements are wrong",
    ),
    "a scalar": (
        jnp.sum,
        lambda found: found + 1,
        "its result is 11.0 compiled, and 10.0 operation by operation",
    ),
    "a NaN": (
        jnp.sum,
        lambda found: found * np.nan,
        "its result is nan compiled, and 10.0 operation by operation",
    ),
}


@pytest.mark.parametrize("name", _WRONG)
def test_what_is_wrong_is_called_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, spoil, text = _WRONG[name]
    _let_the_compiler(monkeypatch, lambda results: [np.asarray(spoil(np.asarray(results[0])))])
    x = np.array([1, 2, 3, 4], np.float32)
    assert difference(jax.make_jaxpr(function)(x), [x]) == text


def test_the_last_digit_is_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    _let_the_compiler(monkeypatch, lambda results: [np.nextafter(np.asarray(results[0]), 0)])
    assert difference(jax.make_jaxpr(jnp.exp)(_X), [_X]) == ""


def test_an_argument_may_be_a_number_of_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1, 2], np.float32)
    program = jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(x, 2.0)
    assert difference(program, [x, 2.0]) == ""
    _let_the_compiler(monkeypatch, lambda results: [np.asarray(results[0]) + 1])
    assert difference(program, [x, 2.0]).endswith("2 of 2 elements are wrong")


def test_of_several_results_the_wrong_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _let_the_compiler(monkeypatch, lambda results: [results[0], ~np.asarray(results[1])])
    found = difference(jax.make_jaxpr(lambda x: (x, x[0, 0] > -9))(_X), [_X])
    assert found == "result 1 is False compiled, and True operation by operation"


def _let_the_compiler(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[list[Any]], list[Any]]
) -> None:
    """Let the compiled program return something else."""
    monkeypatch.setattr(checking, "compiled_again", lambda *given: spoil(compiled_again(*given)))


def _long(x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 1_000, lambda _, y: jnp.cos(y), x)


def _of_nothing(x: jax.Array) -> Any:
    return lax.scan(lambda carry, row: (row, carry), x[0, 0], jnp.arange(2_000.0))


def _calling(x: jax.Array) -> Any:
    return jax.vmap(lambda y: jax.pure_callback(np.sin, y, y, vmap_method="sequential"))(x)


def _printing(x: jax.Array) -> jax.Array:
    jax.debug.print("{}", x[0, 0])
    return x + 1


def test_each_program_is_compared_and_nothing_else_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checking, "MOST_OPERATIONS", 1_000)
    checker = Checker()
    with jitcount.record() as log, registry.listening(checker):
        double = jax.jit(lambda x: 2 * x)
        double(_X)
        double(_X)
        jnp.sin(_X)
        jax.jit(jnp.cos).lower(_X).compile()
        jax.jit(_printing)(_X)
        jax.jit(_calling)(_X)
        jax.jit(_long)(np.float32(1))
        jax.jit(_of_nothing)(_X)
    assert [(each.wrong, each.not_checked) for each in checker.programs] == [
        ("", ""),
        ("", "it was compiled ahead of time, without arguments"),
        ("", "it has side effects or calls Python, which would happen again"),
        ("", "it has side effects or calls Python, which would happen again"),
        ("", "it has more than 1,000 operations"),
        ("", "it has more than 1,000 operations"),
    ]
    assert log.count() == 7  # with the sine outside of jit


def test_donated_arguments_are_still_there_for_the_program() -> None:
    checker = Checker()
    x = jnp.ones((5, 3))
    with registry.listening(checker):
        found = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert np.asarray(found).sum() == 30
    assert [(each.wrong, each.not_checked) for each in checker.programs] == [("", "")]


def test_a_check_inside_of_a_guard_is_not_refused() -> None:
    checker = Checker()
    step = jax.jit(lambda x: x @ x.T)
    with registry.listening(checker), jitcount.max_compiles(1):
        step(_X)
    assert len(checker.programs) == 1
