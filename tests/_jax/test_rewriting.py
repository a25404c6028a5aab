"""What is read of a module, and written into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import pytest

from jitcount._jax.rewriting import (
    elements_passed,
    functions_in,
    numbers_in,
    operations_in,
    rewritten,
    use_instead,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _module(f: Callable[..., Any], *arguments: Any) -> Any:
    return jax.jit(f).lower(*arguments).compiler_ir("stablehlo")


def test_operations_of_bodies_are_read_and_those_of_reductions_are_not() -> None:
    def f(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x).sum()

    module = _module(f, jnp.ones(3))
    names = [each.name for each in operations_in(module)]
    assert names.count("sine") == 1
    assert (names.count("reduce"), names.count("while")) == (1, 1)
    (sine,) = [each for each in operations_in(module) if each.name == "sine"]
    assert sine.is_in_a_body


def test_a_reduction_says_how_it_combines_numbers() -> None:
    module = _module(jnp.sum, jnp.ones(3))
    (found,) = [each for each in operations_in(module) if each.name == "reduce"]
    assert found.body() == ["stablehlo.add", "stablehlo.return"]
    assert found.integers("dimensions") == [0]
    assert found.operands[0] is not None
    assert (found.operands[0].element, found.operands[0].shape) == ("f32", (3,))


def test_constants_are_known_by_their_number() -> None:
    module = _module(lambda x: x * 2.5, jnp.ones(3))
    (found,) = [each for each in operations_in(module) if each.name == "multiply"]
    assert [each.splat for each in found.operands if each is not None] == [None, 2.5]


def test_neighbours_are_seen_through_shapes() -> None:
    module = _module(lambda x: (x * 2.5)[:, None] + jnp.ones((3, 3)), jnp.ones(3))
    (found,) = [each for each in operations_in(module) if each.name == "multiply"]
    assert "add" in found.neighbours()


def test_arguments_and_results_are_counted() -> None:
    module = _module(lambda x: (x, x.sum()), jnp.ones((3, 4)))
    assert elements_passed(module) == 25
    assert set(functions_in(module)) == {"main"}


@pytest.mark.parametrize("change", [False, True])
def test_a_copy_is_changed(*, change: bool) -> None:
    module = _module(lambda x: x + 1.0, jnp.ones(3))
    before = str(module)

    def negate(copy: Any) -> None:
        (add,) = [each for each in operations_in(copy) if each.name == "add"]
        (uses,), (result,) = add.uses(), add.results
        assert result is not None
        use_instead(uses, add.after().apply("negate", result))

    written = rewritten(module, negate if change else None)
    assert str(module) == before
    assert (b"negate" in written) is change


def test_numbers_are_read_from_text() -> None:
    assert numbers_in("array<i64: 4, -1>"[10:]) == [4, -1]
