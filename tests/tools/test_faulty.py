"""Rules of lowering that are exchanged for a block, and are back after it."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters import mlir

from tools.faulty import operations_heard, primitives_replaced

X = np.arange(5, dtype=np.float32)


def one_more(original: Any, *operands: Any, **parameters: Any) -> Any:
    return original(*operands, **parameters) + 1


def rules() -> dict[tuple[str, Any], Any]:
    """JAX's rules, by platform and primitive."""
    tables = {"": mlir._lowerings, **mlir._platform_specific_lowerings}
    return {
        (name, primitive): entry.rule
        for name in tables
        for primitive, entry in tables[name].items()
    }


@pytest.fixture(autouse=True)
def the_rules_are_as_they_were() -> Iterator[None]:
    before = rules()
    yield
    after = rules()
    assert before.items() <= after.items()  # JAX may have added some
    assert jnp.sum(X) == 10


def test_a_primitive_computes_something_else_in_every_program() -> None:
    assert jnp.sum(X) == 10
    with primitives_replaced({"reduce_sum": one_more}):
        assert jnp.sum(X) == 11
        assert jax.jit(lambda x: jnp.sum(x) * 2)(X) == 22
        assert jax.vmap(jnp.sum)(np.stack([X, X])).tolist() == [11, 11]
        assert jax.value_and_grad(lambda x: jnp.sum(x) ** 2)(X)[0] == 121
        rows = jnp.stack([X, X])
        assert lax.scan(lambda c, x: (c + jnp.sum(x), 0), jnp.float32(0), rows)[0] == 22
        assert jnp.max(X) == 4


def test_a_rule_that_is_for_one_platform_only_is_exchanged_too() -> None:
    with primitives_replaced({"cumsum": one_more}):
        assert jnp.cumsum(X).tolist() == [1, 2, 4, 7, 11]
    assert jnp.cumsum(X).tolist() == [0, 1, 3, 6, 10]


def test_inside_of_a_fault_all_is_as_it_should_be() -> None:
    def twice(original: Any, x: jax.Array, **parameters: Any) -> jax.Array:
        # The same jitted function, with the same array, as in the program.
        return jnp.sum(x) + original(x, **parameters)

    def seven_more(original: Any, a: jax.Array, _: jax.Array) -> jax.Array:
        return original(a, jnp.float32(7))

    with primitives_replaced({"reduce_sum": twice, "add": seven_more}):
        assert jax.jit(lambda x: [jnp.sum(x), jnp.sum(x)])(X) == [20, 20]
        assert jax.jit(lambda x: jnp.sum(x) + 100)(X) == 27


def test_a_fault_knows_over_how_many_devices_a_program_is_spread() -> None:
    seen = []

    def look(original: Any, *operands: Any, **parameters: Any) -> Any:
        seen.append((original.primitive.name, original.devices))
        return original(*operands, **parameters)

    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    along = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    count = jax.device_count()
    spread = jax.device_put(np.ones(4 * count, np.float32), along)
    with primitives_replaced({"reduce_sum": look}):
        assert jax.jit(jnp.sum)(spread) == 4 * count
        assert jax.jit(jnp.sum)(X) == 10
    assert seen == [("reduce_sum", count), ("reduce_sum", 1)]


def test_the_rules_are_back_after_an_exception() -> None:
    def broken(original: Any, *operands: Any, **parameters: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), primitives_replaced({"reduce_sum": broken}):
        jnp.sum(X)
    with pytest.raises(KeyError), primitives_replaced({"reduce_sum": one_more}):
        raise KeyError
    with primitives_replaced({"reduce_sum": one_more}):  # no fault is thought to be under way
        assert jnp.sum(X) == 11


def test_blocks_nest_and_the_inner_one_counts() -> None:
    with primitives_replaced({"reduce_sum": one_more, "mul": one_more}):
        with primitives_replaced({"reduce_sum": lambda original, x, **p: original(x, **p) + 2}):
            assert jnp.sum(X) == 12
            assert lax.mul(2.0, 3.0) == 7
        assert jnp.sum(X) == 11


def test_the_operations_of_a_block_are_heard() -> None:
    jnp.sum(X)  # compiled before: heard all the same
    with operations_heard() as operations:
        assert jnp.sum(jnp.exp(X) * 2) > 0
    names = [operation.primitive.name for operation in operations]
    assert {"exp", "mul", "reduce_sum"} <= set(names)
    assert "cumsum" not in names
    (total,) = (one for one in operations if one.primitive.name == "reduce_sum")
    assert [(one.shape, one.dtype) for one in total.operands] == [((5,), np.float32)]
    assert total.parameters["axes"] == (0,)


@pytest.mark.parametrize(
    ("replacement", "is_left_alone"),
    [
        (lambda original, x, **more: original(x, **more), True),
        (lambda original, x, axes, **more: original(x, axes=axes, **more), True),
        (lambda original, x, **more: original(x, **more) + 1, False),
        (lambda original, x, **more: original(-x, **more), False),
        (lambda _original, x, **_more: x[0], False),
        (lambda original, x, **more: original(x, **{**more, "axes": ()})[0], False),
    ],
)
def test_it_is_known_where_a_fault_does_nothing(
    replacement: Any,
    is_left_alone: bool,  # noqa: FBT001
) -> None:
    with operations_heard() as operations:
        jnp.sum(X)
    (total,) = (one for one in operations if one.primitive.name == "reduce_sum")
    assert total.is_left_alone_by(replacement) is is_left_alone


def test_a_rule_that_jax_adds_in_a_block_stays() -> None:
    added = jax.extend.core.Primitive("added")
    entry = mlir._lowerings[lax.neg_p]
    with primitives_replaced({"reduce_sum": one_more}):
        mlir._lowerings[added] = entry
    assert mlir._lowerings.pop(added) is entry
