"""`assert_same` and `assert_close`: what they let pass, and what they say of the rest."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount

_random = np.random.default_rng(5)
X = _random.normal(size=(4, 8)).astype(np.float32)
MATRIX = _random.normal(size=(32, 32)).astype(np.float32)


def message(f: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(AssertionError) as error:
        jitcount.assert_same(f, *arguments, **named)
    return str(error.value)


def rows(x: Any) -> Any:
    return {"mean": x.mean(1), "size": jnp.sqrt((x * x).sum(1))}


def test_what_is_right_passes() -> None:
    jitcount.assert_same(jax.jit(rows), X)
    jitcount.assert_same(rows, X)


def test_another_form_of_the_same_passes() -> None:
    def otherwise(x: Any) -> Any:
        return {"mean": jnp.ones(8) @ x.T / 8, "size": jnp.linalg.norm(x, axis=1)}

    jitcount.assert_same(otherwise, X, like=rows)


def test_a_wrong_element_is_named_with_its_tolerance_and_the_lines_that_matter() -> None:
    def wrong(x: Any) -> Any:
        found = rows(x)
        return found | {"mean": jnp.asarray(found["mean"]).at[2].add(1e-4)}

    first, second, third, *lines = message(wrong, X, like=rows).splitlines()
    assert first == "wrong is further from its exact value than rounding explains"
    exact = X.astype(np.float64).mean(1)[2]
    found = np.float32(X.mean(1)[2] + np.float32(1e-4))
    assert second.startswith(f"  result['mean'][2] is {found:.7g}"[:32])
    assert f", not {exact:.9g}: " in second
    assert " times the tolerance of " in second
    assert second.endswith("; 1 of 4 elements is beyond it")
    assert third == "  roundings move it most at:"
    assert lines[0].endswith(
        'in rows: return {"mean": x.mean(1), "size": jnp.sqrt((x * x).sum(1))}'
    )


def test_what_must_be_equal_says_so() -> None:
    assert (
        message(lambda x: x > 0.5, X, like=lambda x: x > 0)
        .splitlines()[1]
        .endswith(
            "it must be equal to the bit; "
            f"{((X > 0.5) != (X > 0)).sum()} of 32 elements are beyond it"
        )
    )


def test_reduced_products_are_recognised() -> None:
    def reduced(x: Any) -> Any:
        narrow = x.astype(jnp.bfloat16).astype(jnp.float32)
        return narrow @ narrow

    text = message(reduced, MATRIX, like=lambda x: x @ x)
    assert (
        '  that is like products in bfloat16: jax.default_matmul_precision("highest") keeps '
        'float32, products="bfloat16" allows it'
    ) in text.splitlines()


def test_and_pass_where_they_are_allowed() -> None:
    def reduced(x: Any) -> Any:
        narrow = x.astype(jnp.bfloat16).astype(jnp.float32)
        return narrow @ narrow

    jitcount.assert_same(reduced, MATRIX, like=lambda x: x @ x, products="bfloat16")


def tie(x: Any) -> Any:
    return jnp.argmax(x * 3 / 3), jnp.max(x)


TIE = np.array([0.1, 0.7, 0.7], np.float32)


def test_what_has_no_tolerance_is_never_passed_over_in_silence() -> None:
    first, second, third = message(tie, TIE).splitlines()
    assert first == "tie cannot be compared everywhere:"
    assert second.startswith("  result[0], the value: the place of the largest at ")
    assert third == "  skip_undecided=True compares the others"


def test_but_the_others_can_be_compared() -> None:
    jitcount.assert_same(tie, TIE, skip_undecided=True)
    text = message(lambda x: (tie(x)[0], tie(x)[1] + 1), TIE, like=tie, skip_undecided=True)
    assert text.splitlines()[1].startswith("  result[1] is 1.7")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((X, X), "f returned 2 arrays, and <lambda> returns 1"),
        (X[:2], "f is of shape (2, 8), not (4, 8)"),
        (X.astype(np.float16), "f is float16, not float32"),
    ],
)
def test_results_of_another_kind(found: Any, expected: str) -> None:
    def f(x: Any) -> Any:
        return found

    assert message(f, X, like=lambda x: x) == expected


def test_values_from_elsewhere() -> None:
    expected = jitcount.tolerance(rows, X)
    jitcount.assert_close({"mean": X.mean(1), "size": np.sqrt((X * X).sum(1))}, expected)
    with pytest.raises(AssertionError, match="rows is further from its exact value"):
        jitcount.assert_close({"mean": X.mean(1), "size": X.mean(1)}, expected)


def test_something_else_than_a_tolerance() -> None:
    with pytest.raises(TypeError) as error:
        jitcount.assert_close(X, 3)  # type: ignore[arg-type]
    assert str(error.value) == "assert_close takes what jitcount.tolerance returns, not int"


def test_nan_instead_of_a_number_does_not_pass() -> None:
    text = message(lambda x: x * np.nan, X, like=lambda x: x * 1.5)
    assert "is nan, not" in text


def test_a_function_that_consumes_its_argument_is_called_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(isinstance(x, jax.core.Tracer))
        return x * 2

    donating = jax.jit(f, donate_argnums=0)
    jitcount.assert_same(donating, jnp.ones(3))
    assert calls.count(False) == 0
