"""Which lines lose the digits: shares that add up, and what cancels."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import jitcount

_random = np.random.default_rng(7)
X = _random.uniform(1, 2, size=100).astype(np.float32)


def normalised(x: Any) -> Any:
    shifted = jnp.sin(x) + 1e4
    spread = shifted - 1e4
    return spread * 2


def test_shares_add_up_to_one() -> None:
    lines = jitcount.tolerance(normalised, X).lines
    assert abs(sum(line.share for line in lines) - 1) < 1e-9
    assert [line.share for line in lines] == sorted((line.share for line in lines), reverse=True)


def test_the_line_whose_rounding_is_amplified_comes_first_and_the_one_that_cancels_is_named() -> (
    None
):
    first = jitcount.tolerance(normalised, X).lines[0]
    begin = normalised.__code__.co_firstlineno
    assert (first.place.line, first.code) == (begin + 1, "shifted = jnp.sin(x) + 1e4")
    assert first.share > 0.9
    assert first.cancels is not None
    assert first.cancels.place.line == begin + 2
    assert 13 <= first.cancels.bits <= 14
    assert str(first.cancels) == "1e+04 cancels to 0.96, 13 bits"


def test_a_program_that_rounds_nothing_has_no_lines() -> None:
    assert jitcount.tolerance(lambda x: x * 2, X).lines == ()


def test_lines_are_found_in_functions_that_are_called() -> None:
    def inner(x: Any) -> Any:
        return jnp.exp(x)

    def outer(x: Any) -> Any:
        return inner(x) + 0.0

    (line,) = jitcount.tolerance(outer, X).lines
    assert line.place.function.endswith("inner")


def test_a_line_is_a_sentence() -> None:
    first = jitcount.tolerance(normalised, X).lines[0]
    assert str(first).endswith(
        "in normalised: shifted = jnp.sin(x) + 1e4 (1e+04 cancels to 0.96, 13 bits at "
        f"{first.cancels.place})"  # type: ignore[union-attr]
    )
