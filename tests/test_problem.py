import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount import cache_independent_count


@pytest.mark.parametrize(
    ("x_a", "x_b", "expected"),
    [([1, 2], [3], 6.0), ([1, 2, 3], [4, 3, 2, 1], 16.0), ([], [], 0.0), ([], [5], 5.0)],
)
def test_sums_both_arrays(x_a: list[float], x_b: list[float], expected: float) -> None:
    result = cache_independent_count(jnp.array(x_a, jnp.float32), jnp.array(x_b, jnp.float32))
    assert isinstance(result, jax.Array)
    assert (result.shape, result.dtype, float(result)) == ((), jnp.float32, expected)


def test_takes_numpy_arrays() -> None:
    assert cache_independent_count(np.array([1, 2]), np.array([3.5])) == 6.5


@pytest.mark.parametrize(
    ("dtype_a", "dtype_b", "expected"),
    [
        ("float16", "float16", "float16"),
        ("bfloat16", "float32", "float32"),
        ("int8", "int8", "int8"),
        ("uint8", "float32", "float32"),
        ("int32", "float16", "float16"),
        ("bool", "bool", "int32"),
        ("complex64", "float32", "complex64"),
    ],
)
def test_takes_any_dtype_and_mixes_them_as_jax_does(
    dtype_a: str, dtype_b: str, expected: str
) -> None:
    x_a, x_b = jnp.ones(3, dtype_a), jnp.ones(4, dtype_b)
    result = cache_independent_count(x_a, x_b)
    if expected == "int8":  # jnp.sum widens small integers; ask it, not our memory
        expected = (jnp.sum(x_a) + jnp.sum(x_b)).dtype.name
    assert (result.dtype.name, result.item()) == (expected, 7)


def test_works_under_jit() -> None:
    assert jax.jit(cache_independent_count)(jnp.ones(3), jnp.ones(4)) == 7.0


def test_works_under_vmap() -> None:
    result = jax.vmap(cache_independent_count)(jnp.ones((2, 3)), jnp.ones((2, 4)))
    assert result.tolist() == [7.0, 7.0]


def test_works_under_grad() -> None:
    gradients = jax.grad(cache_independent_count, argnums=(0, 1))(jnp.ones(3), jnp.ones(4))
    assert [g.tolist() for g in gradients] == [[1.0] * 3, [1.0] * 4]


GOOD = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("x_a", "x_b", "error", "message"),
    [
        (np.ones((2, 3)), GOOD, ValueError, "x_a has shape (2, 3)"),
        (GOOD, np.ones((2, 3)), ValueError, "x_b has shape (2, 3)"),
        (GOOD, np.ones(()), ValueError, "x_b has shape ()"),
        ([1.0, 2.0], GOOD, TypeError, "x_a is a list; pass jnp.asarray(x_a)"),
        (GOOD, (1.0, 2.0), TypeError, "x_b is a tuple; pass jnp.asarray(x_b)"),
        (GOOD, None, TypeError, "x_b is a NoneType"),
        (GOOD, 3.0, TypeError, "x_b is a float"),
        (np.float32(3), GOOD, TypeError, "x_a is a numpy.float32"),
        (GOOD, "abc", TypeError, "x_b is a str"),
    ],
)
def test_refuses_what_is_not_a_1d_array(
    x_a: object, x_b: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        cache_independent_count(x_a, x_b)  # type: ignore[arg-type]
    assert str(raised.value) == f"cache_independent_count takes 1-D arrays; {message}"


def test_refuses_a_matrix_under_jit_too() -> None:
    with pytest.raises(ValueError, match=r"x_b has shape \(2, 3\)"):
        jax.jit(cache_independent_count)(jnp.ones(3), jnp.ones((2, 3)))


def test_a_refused_call_compiles_nothing() -> None:
    with jitcount.record() as log, pytest.raises(ValueError, match="x_b"):
        cache_independent_count(GOOD, np.ones((2, 3)))
    assert log.counts() == {}
