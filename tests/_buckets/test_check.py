"""Functions that padding changes are found, with the line where it comes in."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount

X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32) + 1
W = np.ones(4, np.float32)


def said(f: Any, *args: Any, mask: bool = True, **options: Any) -> str:
    """What is said of a function, without figures and lines."""
    options = {"axes": {"x": 0}, "mask": "mask" if mask else None} | options
    with pytest.raises(AssertionError) as found:
        jitcount.check_padding(jitcount.bucketed(f, [32], **options), *args)
    text = str(found.value)
    return re.sub(r"-?\d+\.\d+|nan instead of \S+", "N", re.sub(r"\S+:\d+ in \S+", "LINE", text))


def test_a_function_that_leaves_the_padding_out_passes() -> None:
    def f(w: Any, x: Any, mask: Any) -> Any:
        y = jnp.where(mask, x @ w, 0)
        return y.sum() / mask.sum(), y

    jitcount.check_padding(jitcount.bucketed(f, [32], axes={"x": 0}, mask="mask"), W, X)


def test_zeros_that_are_in_a_mean_are_found() -> None:
    def f(w: Any, x: Any) -> Any:
        return w - 0.1 * (x @ w).mean()

    assert said(f, W, X, mask=False) == (
        "its result is N instead of N at [0] when f is padded from 20 to 32; it comes in at LINE "
        "(div): pass length= or mask= to jitcount.bucketed, and leave the padding out there"
    )


def test_the_line_is_the_users() -> None:
    def f(x: Any, mask: Any) -> Any:
        y = jnp.where(mask[:, None], x, 0)
        return jnp.tanh(y.mean())

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(AssertionError, match=rf"test_check\.py:{line} in "):
        jitcount.check_padding(jitcount.bucketed(f, [32], axes={"x": 0}, mask="mask"), X)


def test_a_division_by_the_size_is_found_though_the_padding_is_masked() -> None:
    def f(x: Any, mask: Any) -> Any:
        return jnp.where(mask[:, None], x, 0).sum() / x.shape[0]

    assert said(f, X) == (
        "its result is N instead of N when f is padded from 20 to 32; it comes in at LINE (div): "
        "leave the padding out there, by the mask or the true length"
    )


def test_a_sum_that_zeros_do_not_change_is_found_with_other_values() -> None:
    def f(x: Any, mask: Any) -> Any:
        return x.sum() / mask.sum()

    assert said(f, X) == (
        "its result is N instead of N when f is padded from 20 to 32 with 1 in the padding; it "
        "comes in at LINE (reduce_sum): leave the padding out there, by the mask or the true length"
    )


def test_a_mask_that_keeps_numbers_out_and_not_nan_is_found() -> None:
    def f(x: Any, mask: Any) -> Any:
        return (mask.astype(np.float32) @ x).sum() / mask.sum()

    assert said(f, X) == (
        "its result is N when f is padded from 20 to 32 with nan in the padding; it comes in at "
        "LINE (dot_general): numbers are kept out there, and NaN is not: use jnp.where, as 0 · NaN "
        "is NaN"
    )


def test_gradients_are_checked_as_functions() -> None:
    """The root of zero has no slope, and `where` multiplies it by zero."""

    def loss(w: Any, x: Any, mask: Any) -> Any:
        return jnp.where(mask, jnp.sqrt(x @ w), 0).sum()

    assert said(jax.grad(loss), W, np.abs(X)).startswith(
        "its result is N at [0] when loss is padded from 20 to 32; it comes in at LINE"
    )


def test_a_loop_over_the_padding_is_found() -> None:
    def f(x: Any, mask: Any) -> Any:
        def body(carry: Any, row: Any) -> Any:
            return 0.5 * carry + row.sum(), carry

        return jax.lax.scan(body, 0.0, x)

    assert said(f, X) == (
        "result[0] is N instead of N when f is padded from 20 to 32; it comes in at LINE (scan): "
        "leave the padding out there, by the mask or the true length"
    )


def test_an_order_that_the_padding_changes_is_found() -> None:
    assert "(sort): " in said(lambda x: jnp.sort(x, 0), X, mask=False)
    assert "(rev): " in said(lambda x: jnp.flip(x, 0), X, mask=False)


def test_what_is_masked_later_is_no_fault() -> None:
    """A maximum over all places that only the padding is given."""

    def f(x: Any, mask: Any) -> Any:
        filled = jnp.where(mask[:, None], x, x.max())
        return jnp.where(mask[:, None], jnp.cos(filled), 0).sum()

    jitcount.check_padding(jitcount.bucketed(f, [32], axes={"x": 0}, mask="mask"), X)


def test_two_lengths_are_named() -> None:
    def f(x: Any, y: Any, n: Any) -> Any:
        return x.sum() / n, y.mean()

    padded = jitcount.bucketed(
        f,
        {"rows": [8], "columns": [4]},
        axes={"rows": {"x": 0}, "columns": {"y": 0}},
        length={"rows": "n"},
    )
    x, y = np.ones(5, np.float32), np.ones(3, np.float32)
    with pytest.raises(
        AssertionError,
        match=r"^result\[1\] is 0\.75 instead of 1 when f is padded "
        r"from rows 5 to 8 and columns 3 to 4; it comes in at .* \(div\): ",
    ):
        jitcount.check_padding(padded, x, y)


def test_whole_numbers_are_checked() -> None:
    def f(table: Any, tokens: Any, n: Any) -> Any:
        is_real = jnp.arange(tokens.shape[1]) < n
        return jnp.where(is_real, table[tokens].sum(-1), 0).sum(1)

    tokens = np.arange(12).reshape(2, 6) % 5
    jitcount.check_padding(
        jitcount.bucketed(f, [8], axes={"tokens": 1}, length="n"), np.ones((5, 3)), tokens
    )


def test_arguments_are_not_donated_and_nothing_is_reported() -> None:
    f = jax.jit(lambda w, x: (w + 1, x * 2), donate_argnums=(0, 1))
    w, x = jnp.ones(3), jnp.ones(5)
    with jitcount.record() as log, jitcount.freeze():
        jitcount.check_padding(jitcount.bucketed(f, [8], axes={"x": 0}), w, x)
    assert not w.is_deleted()
    assert log.count() == 0


def test_the_largest_size_leaves_room_too() -> None:
    f = jitcount.bucketed(lambda x: x.mean(), [32], axes={"x": 0})
    with pytest.raises(AssertionError, match="padded from 32 to 64"):
        jitcount.check_padding(f, np.ones(32, np.float32))


def test_other_functions_are_refused() -> None:
    with pytest.raises(TypeError) as refused:
        jitcount.check_padding(jnp.sum, X)  # type: ignore[arg-type]
    kind = type(jnp.sum).__name__
    assert str(refused.value) == (
        f"check_padding takes what jitcount.bucketed returned; f is a {kind}"
    )
