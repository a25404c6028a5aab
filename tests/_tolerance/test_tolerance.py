"""`jitcount.tolerance`: what it derives, and where it says that there is nothing to derive."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jitcount
from jitcount._tolerance.assertions import difference

_random = np.random.default_rng(3)
NORMALS = _random.normal(size=1000).astype(np.float32)
MATRIX = _random.normal(size=(16, 16)).astype(np.float32)


def why(f: Any, *arguments: Any) -> list[str]:
    return [result.why_none for result in jitcount.tolerance(f, *arguments).results]


# --- What is derived ------------------------------------------------------------------------------


def test_a_sum_of_a_hundred_thousand_normals_is_within_a_thousandth() -> None:
    (result,) = jitcount.tolerance(jnp.sum, np.random.default_rng(0).normal(size=100_000)
                                   .astype(np.float32)).results  # fmt: skip
    assert 1e-4 < float(result.width) < 1e-2


def test_what_is_exact_must_be_equal() -> None:
    def f(x: Any) -> Any:
        return (x > 0).astype(jnp.float32).sum(), x - x, jnp.max(x), x * 2, x > 0

    for result in jitcount.tolerance(f, NORMALS).results:
        assert not result.width.any()


def test_the_same_arguments_get_the_same_tolerance() -> None:
    one, other = (jitcount.tolerance(jax.nn.softmax, NORMALS).results[0] for _ in range(2))
    assert (one.width == other.width).all()


class Pair(NamedTuple):
    left: Any
    right: Any


def test_results_are_named_by_their_place() -> None:
    def f(x: Any) -> Any:
        return {"b": Pair(x, [x + 1, None]), "a": x}

    found = jitcount.tolerance(f, NORMALS)
    assert [each.name for each in found.results] == ["['a']", "['b'].left", "['b'].right[0]"]
    assert jitcount.tolerance(jnp.sin, NORMALS).results[0].name == ""


def test_what_is_no_array_is_passed_as_it_is() -> None:
    def f(x: Any, times: int, *, how: str, scale: float = 1.0) -> Any:
        return {"sin": jnp.sin}[how](x) * scale + sum(range(times))

    found = jitcount.tolerance(f, NORMALS, 3, how="sin", scale=2.0)
    assert difference(f(NORMALS, 3, how="sin", scale=2.0), found, "f") == ""


def test_static_arguments_of_a_jit_are_passed_as_they_are() -> None:
    f = jax.jit(lambda x, axis: x.sum(axis), static_argnums=1)
    jitcount.assert_same(f, MATRIX, 0)


def test_it_traces_and_does_not_run_the_function() -> None:
    runs = []

    def f(x: Any) -> Any:
        jax.debug.callback(lambda: runs.append(1))
        return jnp.sin(x)

    jitcount.tolerance(f, NORMALS)
    assert runs == []


def test_nothing_that_it_does_is_counted() -> None:
    with jitcount.record() as log, jitcount.freeze():
        jitcount.tolerance(lambda key: jax.random.normal(key, (3,)), np.array([0, 7], np.uint32))
    assert log.counts() == {}


def test_products_as_on_a_chip_have_wider_tolerances() -> None:
    def f(x: Any) -> Any:
        return x @ x

    plain, tf32, bfloat16, tpu = (
        jitcount.tolerance(f, MATRIX, products=name).results[0].relative
        for name in ("float32", "TF32", "bfloat16", "tpu:v5e")
    )
    assert 300 * plain < tf32 < bfloat16 / 3
    assert tpu == bfloat16


def test_the_highest_precision_keeps_them_narrow() -> None:
    def f(x: Any) -> Any:
        return jnp.dot(x, x, precision="highest")

    plain, tpu = (jitcount.tolerance(f, MATRIX, products=name) for name in ("float32", "tpu:v5e"))
    assert tpu.results[0].relative == plain.results[0].relative


@pytest.fixture
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003
    yield
    jax.config.update("jax_enable_x64", False)  # noqa: FBT003


@pytest.mark.usefixtures("x64")
def test_doubles_have_tolerances_of_their_own() -> None:
    x = np.random.default_rng(0).normal(size=200)

    def f(x: Any) -> Any:
        return jnp.sin(x).sum() + jnp.linalg.norm(x)

    jitcount.assert_same(jax.jit(f), x)
    assert 1e-17 < jitcount.tolerance(f, x).results[0].relative < 1e-14


def test_arrays_without_elements() -> None:
    jitcount.assert_same(lambda x: (x.sum(), x * 2, x @ x.T, jnp.sort(x)), np.zeros((0, 3), "f4"))


def test_infinities_and_nans_have_their_places() -> None:
    x = np.array([1.0, np.inf, -np.inf, np.nan, 0.0, 3e38], np.float32)
    jitcount.assert_same(jax.jit(lambda x: (x * 2, 1 / x, x.sum(), jnp.exp(x))), x)


def test_a_miscompile_is_far_beyond_it() -> None:
    """A sum that loses one term of a thousand, and an attention that drops one key."""
    found = jitcount.tolerance(jnp.sum, NORMALS)
    assert difference(NORMALS[1:].sum(), found, "sum") != ""


# --- Where there is none --------------------------------------------------------------------------


def test_a_branch_that_rounding_decides() -> None:
    balanced = np.concatenate([NORMALS, -NORMALS])

    def f(x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, x)

    (reason,) = why(f, balanced)
    line = f.__code__.co_firstlineno + 1
    where = f"test_tolerance.py:{line} in test_a_branch_that_rounding_decides.f"
    assert reason.startswith("the branch at ")
    assert f"{where} flips in " in reason
    assert reason.endswith(" of 16 draws: no tolerance exists there")


def test_a_branch_that_is_clear_has_one() -> None:
    assert why(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), abs(NORMALS)) == [""]


def test_a_place_of_the_largest_that_is_a_tie() -> None:
    tie = np.array([0.1, 0.7, 0.7, 0.3], np.float32)
    place, largest = why(lambda x: (jnp.argmax(x * 3.0 / 3.0), jnp.max(x)), tie)
    assert place.startswith("the place of the largest at ")
    assert largest == ""


def test_a_whole_number_at_its_edge() -> None:
    result = jitcount.tolerance(
        lambda x: jnp.floor(x * 10), np.arange(20, dtype=np.float32) / 10
    ).results[0]
    assert result.why_none.startswith("the whole number at ")
    undecided = np.isnan(result.width)
    assert 0 < undecided.sum() < 20
    assert not result.width[~undecided].any()


def test_the_sign_of_an_eigenvector_is_free_and_what_does_not_depend_on_it_is_not() -> None:
    symmetric = MATRIX + MATRIX.T

    def f(a: Any) -> Any:
        values, vectors = jnp.linalg.eigh(a)
        return values, vectors, (vectors * values) @ vectors.T

    values, vectors, product = why(f, symmetric)
    assert (values, product) == ("", "")
    assert vectors.startswith("the sign of an eigenvector at ")
    assert vectors.endswith(" is free: no tolerance exists there")


def test_chaos_leaves_no_digit() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (3.9 * c * (1 - c), None), x, None, length=4000)[0]

    assert why(f, np.float32(0.3)) == [
        "no digit is left after 4,000 steps: rounding alone moves it by its own size"
    ]


def test_an_ill_conditioned_system_leaves_no_digit() -> None:
    at = np.arange(8)
    hilbert = (1 / (at[:, None] + at + 1)).astype(np.float32)
    assert why(jnp.linalg.solve, hilbert, np.ones(8, np.float32)) == [
        "no digit is left: rounding alone moves it by its own size"
    ]


def test_a_loop_whose_length_rounding_decides() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 1.0, lambda s: (s[0] + x, s[1] + 1), (0.0, 0))[1]

    (reason,) = why(f, np.float32(0.1))
    assert reason.startswith(("the number of steps of the loop at ", "the comparison at "))


@pytest.mark.parametrize("away", [0.0, 1.0, 2.5, 4.0])
def test_a_decision_within_reach_is_not_passed_over_in_silence(away: float) -> None:
    """No draw may have changed it, but another backend may be off by the whole tolerance."""
    (total,) = jitcount.tolerance(jnp.sum, NORMALS).results
    edge = np.float32(total.reference + away * total.width / 7)
    (reason,) = why(lambda x: jnp.where(x.sum() < edge, 1.0, -1.0), NORMALS)
    assert reason.startswith("the comparison at ")


def test_a_decision_out_of_reach_is_made() -> None:
    (total,) = jitcount.tolerance(jnp.sum, NORMALS).results
    edge = np.float32(total.reference + 20 * total.width)
    assert why(lambda x: jnp.where(x.sum() < edge, 1.0, -1.0), NORMALS) == [""]


def test_the_side_of_a_branch_cut() -> None:
    almost = np.array([0.1, 0.2, 0.3], np.float32)
    (reason,) = why(lambda x: jnp.arctan2(x[0] + x[1] - x[2], -1.0), almost)
    assert reason.startswith("the side of a branch cut at ")


def test_a_large_neighbour_does_not_widen_a_small_number() -> None:
    (result,) = jitcount.tolerance(jnp.sinh, np.array([1.0, 89.0], np.float32)).results
    assert result.width[0] < 1e-5


def test_a_scatter_with_a_function_of_its_own() -> None:
    with pytest.raises(jitcount.NotTraceableError) as error:
        jitcount.tolerance(lambda x: x.at[0].apply(jnp.cos), jnp.ones(3))
    assert str(error.value) == (
        "<lambda> calls something that cannot be followed: scatter with a function of its own; "
        "compare its result within a bound that you declare"
    )


def test_inside_of_a_trace() -> None:
    with pytest.raises(jitcount.NotTraceableError) as error:
        jax.jit(lambda x: jitcount.tolerance(jnp.sin, x))(NORMALS)
    assert str(error.value) == (
        "the tolerance of sin is asked for while something else is traced; call it outside of "
        "jit, grad and vmap"
    )


def test_a_function_that_hands_a_traced_array_to_numpy() -> None:
    def plain(x: Any) -> Any:
        return np.sin(x)

    with pytest.raises(jitcount.NotTraceableError) as error:
        jitcount.tolerance(plain, NORMALS)
    line = plain.__code__.co_firstlineno + 1
    assert str(error.value) == (
        "plain hands its arguments to NumPy or Python at tests/_tolerance/test_tolerance.py:"
        f"{line} in test_a_function_that_hands_a_traced_array_to_numpy.plain, so no tolerance can "
        "be derived; compare its result within a bound that you declare"
    )


def test_a_rounding_to_few_bits_is_no_jump() -> None:
    assert why(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), NORMALS) == [""]


def test_a_kink_is_no_jump() -> None:
    assert why(lambda x: jax.nn.relu(x - x.mean()).sum(), NORMALS) == [""]


# --- Bad input ------------------------------------------------------------------------------------


def test_a_function_that_looks_at_values() -> None:
    def looks(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(jitcount.NotTraceableError) as error:
        jitcount.tolerance(looks, NORMALS)
    line = looks.__code__.co_firstlineno + 1
    assert str(error.value) == (
        "looks looks at the values of its arguments at tests/_tolerance/test_tolerance.py:"
        f"{line} in test_a_function_that_looks_at_values.looks, so no tolerance can be derived; "
        "compare its result within a bound that you declare"
    )


def test_a_function_with_side_effects() -> None:
    def saves(x: Any) -> Any:
        from jax.experimental import io_callback  # noqa: PLC0415

        return io_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(jitcount.NotTraceableError) as error:
        jitcount.tolerance(saves, NORMALS)
    assert str(error.value) == (
        "saves calls something that cannot be followed: io_callback has side effects; compare its "
        "result within a bound that you declare"
    )


def test_a_donated_argument() -> None:
    x = jnp.ones(3)
    jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    if not x.is_deleted():
        x.delete()
    with pytest.raises(jitcount.NotTraceableError) as error:
        jitcount.tolerance(jnp.sin, x)
    assert str(error.value) == (
        "array 0 of the arguments of sin was donated and is gone; pass a copy"
    )


def test_something_that_is_no_function() -> None:
    with pytest.raises(jitcount.NotTraceableError) as error:
        jitcount.tolerance(3, NORMALS)  # type: ignore[arg-type]
    assert str(error.value) == (
        "tolerance takes a function and its arguments, not int; pass the function itself"
    )


def test_a_result_that_is_no_array() -> None:
    with pytest.raises(jitcount.NotTraceableError, match=r"^named returns something that is no"):
        jitcount.tolerance(named, NORMALS)


def named(x: Any) -> Any:
    return {"x": x, "how": "well"}


def test_products_that_nobody_knows() -> None:
    with pytest.raises(
        ValueError, match=r"^products='float31' is neither float32, bfloat16 or TF32"
    ):
        jitcount.tolerance(jnp.sin, NORMALS, products="float31")


def test_errors_of_the_function_itself_are_its_own() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jitcount.tolerance(fails, NORMALS)
