"""Functions whose ragged arguments are padded: the same results, few compiles, plain refusals."""

from __future__ import annotations

import threading
from collections import namedtuple
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitcount

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = [4, 16, 64]
RNG = np.random.default_rng(0)


def arr(*shape: int, dtype: str = "float32") -> Any:
    return RNG.normal(size=shape).astype(dtype)


def close(found: Any, expected: Any) -> bool:
    """Equal but for the order of sums; a small bound, until `jitcount.tolerance` derives one."""
    leaves = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        for a, b in ((np.asarray(a), np.asarray(b)) for a, b in leaves)
    )


@jax.jit
def rows(w: Any, x: Any, n: Any) -> Any:
    is_real = jnp.arange(len(x)) < n
    y = jnp.where(is_real, x @ w, 0)
    return {"mean": y.sum() / n, "rows": y, "more": (y[None], w)}


W = arr(3)
by_rows = jitcount.bucketed(rows, SIZES, axes={"x": 0}, length="n")


# --- The same as without padding ------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 64), st.booleans())
def test_the_results_are_those_of_the_function_itself(n: int, of_jax: bool) -> None:  # noqa: FBT001
    x = arr(n, 3)
    expected = {"mean": (x @ W).mean(), "rows": x @ W, "more": ((x @ W)[None], W)}
    assert close(by_rows(W, jax.device_put(x) if of_jax else x), expected)


def loss(w: Any, x: Any, mask: Any) -> Any:
    y = jnp.tanh(jnp.where(mask[:, None], x * w, 0)).sum(axis=1)
    return jnp.where(mask, y, 0).sum() / mask.sum()


@pytest.mark.parametrize("n", [1, 23])
def test_gradients_are_the_same(n: int) -> None:
    x = arr(n, 3)
    f = jitcount.bucketed(loss, SIZES, axes={"x": 0}, mask="mask")
    expected = jax.jit(jax.grad(loss, (0, 1)))(W, x, np.ones(n, bool))
    assert close(jax.grad(f, (0, 1))(W, jnp.asarray(x)), expected)
    of_gradients = jitcount.bucketed(jax.grad(loss, (0, 1)), SIZES, axes={"x": 0}, mask="mask")
    assert close(of_gradients(W, x), expected)


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_it_works_under_jit(transform: Callable[..., Any]) -> None:
    x = arr(9, 3)
    assert close(transform(by_rows)(W, x), rows(W, x, 9))


def test_it_works_under_vmap() -> None:
    x = arr(5, 9, 3)
    found = jax.vmap(by_rows, in_axes=(None, 0))(W, x)
    assert close(found, jax.vmap(rows, in_axes=(None, 0, None))(W, x, 9))


def test_vmap_and_grad_nest() -> None:
    f = jitcount.bucketed(loss, SIZES, axes={"x": 0}, mask="mask")
    x = arr(5, 9, 3)
    each = jax.vmap(jax.grad(f), in_axes=(None, 0))(W, x)
    plain = jax.vmap(jax.grad(loss), in_axes=(None, 0, None))(W, x, np.ones(9, bool))
    assert close(each, plain)


def test_a_function_that_is_not_jitted_is_jitted() -> None:
    f = jitcount.bucketed(lambda x: 2 * x, SIZES, axes={"x": 0})
    with jitcount.record() as log:
        for n in 3, 4, 2, 17:
            assert f(arr(n)).shape == (n,)
    assert log.counts() == {"<lambda>": 2}


# --- How few are compiled -------------------------------------------------------------------------


@pytest.mark.parametrize("of_jax", [False, True])
def test_nothing_is_compiled_for_a_length_but_its_size(of_jax: bool) -> None:  # noqa: FBT001
    made = [arr(n, 3) for n in range(1, 65)]
    batches = [jnp.asarray(x) for x in made] if of_jax else made
    with jitcount.record() as log:
        for x in batches:
            by_rows(W, x)
    assert log.counts() == {"rows": 3}


@pytest.mark.two_devices
def test_an_array_stays_on_its_device() -> None:
    device = jax.devices()[1]
    x = jax.device_put(arr(9, 3), device)
    found = by_rows(jax.device_put(W, device), x)
    assert found["mean"].devices() == {device}


# --- What is ragged -------------------------------------------------------------------------------


class Batch(NamedTuple):
    tokens: Any
    scale: Any


@dataclass
class Graph:
    nodes: Any
    name: str


jax.tree_util.register_dataclass(Graph, ["nodes"], ["name"])
Pair = namedtuple("Pair", ["a", "b"])  # noqa: PYI024 (as old code has it)


@pytest.mark.parametrize(
    ("value", "axes"),
    [
        ({"tokens": arr(2, 5), "scale": np.float32(2)}, {"b['tokens']": 1}),
        ({"tokens": arr(2, 5), "scale": np.float32(2)}, {'b["tokens"]': -1}),
        ({"x": {"y": arr(5), "z": arr(5, 2)}}, {"b": 0}),
        ({"x": {"y": arr(5), "z": arr(5, 2)}, "w": arr(7)}, {"b['x']": 0}),
        (Batch(arr(2, 5), arr(3)), {"b.tokens": 1}),
        (Graph(arr(5, 2), "g"), {"b.nodes": 0}),
        (Pair(arr(5), None), {"b": 0}),
        ([arr(5), arr(3)], {"b[0]": 0}),
        ((arr(5), arr(5)), {"b": 0}),
        (arr(5, 5), {"b": (0, 1)}),
        (arr(2, 3, 5), {"b": 2}),
    ],
)
def test_places_are_named_as_causes_name_them(value: Any, axes: Any) -> None:
    f = jitcount.bucketed(lambda b: jax.tree.map(lambda a: a + 1, b), [8], axes=axes)
    expected = jax.tree.map(lambda a: a + 1, value)
    assert close(f(value), expected)
    assert close(f(b=value), expected)


def test_the_places_in_a_cause_can_be_pasted() -> None:
    @jax.jit
    def step(batch: Any) -> Any:
        return jax.tree.map(jnp.cos, batch)

    batches = [{"x": arr(n), "deep": [arr(2, n)]} for n in (3, 4, 5)]
    with jitcount.record() as log:
        for batch in batches:
            step(batch)
    axes = {cause.where: cause.axes[0] for cause in log.compiles[1].causes}  # type: ignore[union-attr]
    f = jitcount.bucketed(step, [8], axes=axes)
    with jitcount.record() as log:
        for batch in batches:
            assert close(f(batch), jax.tree.map(np.cos, batch))
    assert log.count("step") == 1


def test_two_lengths_have_sizes_each() -> None:
    def outer(x: Any, y: Any, n: Any, m: Any) -> Any:
        return jnp.outer(x, y), x.sum() / n, y.sum() / m

    f = jitcount.bucketed(
        outer,
        {"rows": [4, 8], "columns": [16]},
        axes={"rows": {"x": 0}, "columns": {"y": 0}},
        length={"rows": "n", "columns": "m"},
    )
    x, y = arr(3), arr(9)
    assert close(f(x, y), outer(x, y, 3, 9))
    assert f.sizes == {"rows": (4, 8), "columns": (16,)}
    assert f(arr(5), y)[0].shape == (5, 9)


def test_one_array_may_have_two_lengths() -> None:
    f = jitcount.bucketed(
        lambda x: x + 1, {"a": [4], "b": [8]}, axes={"a": {"x": 0}, "b": {"x": 1}}
    )
    x = arr(3, 5)
    assert close(f(x), x + 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_every_dtype_is_padded(dtype: str) -> None:
    x = (arr(5) > 0).astype(dtype) if dtype == "bool" else jnp.arange(5).astype(dtype)
    f = jitcount.bucketed(lambda x: x, [8], axes={"x": 0}, out_axes=None)
    padded = f(np.asarray(x))
    assert padded.dtype == x.dtype
    assert padded.tolist() == [*np.asarray(x).tolist(), *([0] * 3)]


def test_x64_stays_x64() -> None:
    if not hasattr(jax, "enable_x64"):
        pytest.skip("a context manager of newer releases")
    with jax.enable_x64(True):  # noqa: FBT003 (its own form)
        f = jitcount.bucketed(lambda x: x * 2, [8], axes={"x": 0})
        assert f(np.arange(5.0)).dtype == np.float64


def test_the_padding_holds_what_is_asked_for() -> None:
    f = jitcount.bucketed(
        lambda b, y: (b, y),
        [4],
        axes={"b": 0, "y": 0},
        fill={"b": 7, "b['k']": -1, "y": np.inf},
        out_axes=None,
    )
    b, y = f({"k": np.arange(3), "l": np.arange(3)}, np.ones(3, np.float32))
    assert (b["k"].tolist(), b["l"].tolist()) == ([0, 1, 2, -1], [0, 1, 2, 7])
    assert y.tolist() == [1, 1, 1, np.inf]
    traced = jax.jit(f)({"k": np.arange(3), "l": np.arange(3)}, np.ones(3, np.float32))
    assert traced[0]["k"].tolist() == [0, 1, 2, -1]


def test_an_empty_batch_is_padding_alone() -> None:
    found = by_rows(W, np.zeros((0, 3), np.float32))
    assert found["rows"].shape == (0,)
    assert np.isnan(found["mean"])  # as the mean of nothing is


def test_the_arguments_stay_as_they_are() -> None:
    x = {"k": np.arange(3)}
    f = jitcount.bucketed(lambda x: x, [8], axes={"x": 0})
    f(x)
    assert x["k"].tolist() == [0, 1, 2]


def test_a_length_and_a_mask_can_both_be_taken() -> None:
    def f(x: Any, *, n: Any, is_real: Any) -> Any:
        return n, is_real

    padded = jitcount.bucketed(f, [4], axes={"x": 0}, length="n", mask="is_real", out_axes=None)
    n, is_real = padded(np.ones(3))
    assert (int(n), n.dtype, is_real.tolist()) == (3, np.int32, [True, True, True, False])


# --- Options of jit -------------------------------------------------------------------------------


def test_static_arguments_stay_static() -> None:
    def power(x: Any, how: str, *, times: int = 1) -> Any:
        return (x.sum() if how == "sum" else x) * times

    jitted = jax.jit(power, static_argnums=1, static_argnames="times")
    f = jitcount.bucketed(jitted, [8], axes={"x": 0})
    x = arr(5)
    assert close(f(x, "sum", times=3), x.sum() * 3)
    assert close(f(x, "each", times=3), x * 3)  # another result, cut back on its own terms
    assert f(x, "sum").shape == ()


def test_donated_arguments_are_donated() -> None:
    f = jitcount.bucketed(
        jax.jit(lambda w, x: (w + 1, x + 1), donate_argnums=(0, 1)), [8], axes={"x": 0}
    )
    w, x = jnp.ones(3), jnp.ones(5)
    moved, rows_of_x = f(w, x)
    assert w.is_deleted()
    assert not x.is_deleted()  # what was donated is its padded copy
    assert close((moved, rows_of_x), (np.full(3, 2.0), np.full(5, 2.0)))


def test_a_caller_may_pass_by_name() -> None:
    x = arr(5, 3)
    assert close(by_rows(x=x, w=W), rows(W, x, 5))


# --- What is cut back -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: x, (5, 3)),
        (lambda x: x.T, (3, 5)),
        (lambda x: x @ x.T, (5, 5)),
        (lambda x: x[1:] - x[:-1], (4, 3)),
        (lambda x: jnp.concatenate([jnp.zeros((2, 3)), x]), (7, 3)),
        (lambda x: x.sum(), ()),
        (lambda x: x[:1] * 0 + 1, (1, 3)),
        (lambda x: (x, None)[1], None),
    ],
)
def test_axes_that_grow_with_the_size_are_cut(f: Any, shape: Any) -> None:
    found = jitcount.bucketed(f, [8, 16], axes={"x": 0})(arr(5, 3))
    assert getattr(found, "shape", None) == shape


def test_the_only_size_is_enough() -> None:
    assert jitcount.bucketed(lambda x: x, [8], axes={"x": 0})(arr(5)).shape == (5,)


def test_what_cannot_be_cut_is_refused_with_the_remedy() -> None:
    f = jitcount.bucketed(lambda x: {"twice": jnp.concatenate([x, x])}, [8, 16], axes={"x": 0})
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared whole)
        f(arr(5))
    assert str(refused.value) == (
        "<lambda> cannot be cut back: result['twice'] has shape (16,) at size 8 and (32,) at size "
        "16; pass out_axes, None to keep the padding"
    )
    kept = jitcount.bucketed(f.function, [8], axes={"x": 0}, out_axes=None)
    assert kept(arr(5))["twice"].shape == (16,)


def test_out_axes_are_those_of_vmap() -> None:
    def f(x: Any) -> Any:
        return {"a": x, "b": (x, x.T)}

    x = arr(5, 3)
    some = jitcount.bucketed(f, [8], axes={"x": 0}, out_axes={"a": 0, "b": (None, 1)})(x)
    assert [leaf.shape for leaf in jax.tree.leaves(some)] == [(5, 3), (8, 3), (3, 5)]
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared whole)
        jitcount.bucketed(f, [8], axes={"x": 0}, out_axes=2)(x)
    assert str(refused.value) == "out_axes names axis 2 of a result without it; its shape is (8, 3)"


def test_a_function_of_one_size_says_what_is_padding() -> None:
    def only_8(x: Any) -> Any:
        assert len(x) == 8
        return x

    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared whole)
        jitcount.bucketed(only_8, [8], axes={"x": 0})(arr(5))
    assert isinstance(refused.value.__cause__, AssertionError)
    assert str(refused.value) == (
        "only_8 cannot be traced at size 16, which shows what of its result is padding: "
        "pass out_axes"
    )
    assert jitcount.bucketed(only_8, [8], axes={"x": 0}, out_axes=0)(arr(5)).shape == (5,)


# --- Too long, and what is left over --------------------------------------------------------------


def test_a_length_beyond_all_sizes_is_refused_or_gets_a_size() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared whole)
        by_rows(W, arr(65, 3))
    assert str(refused.value) == (
        "rows got length 65, and its largest size is 64: plan for longer lengths, or pass "
        "too_long='grow'"
    )
    growing = jitcount.bucketed(rows, SIZES, axes={"x": 0}, length="n", too_long="grow")
    assert close(growing(W, x := arr(200, 3)), rows(W, x, 200))
    assert growing.sizes == (4, 16, 64, 256)


def test_a_remainder_can_be_dropped() -> None:
    f = jitcount.bucketed(lambda x, n: (x, n), [4, 8], axes={"x": 0}, length="n", remainder="drop")
    found = {length: f(np.arange(length)) for length in (3, 4, 7, 8, 30)}
    assert {k: (len(x), int(n)) for k, (x, n) in found.items()} == {
        3: (3, 3), 4: (4, 4), 7: (4, 4), 8: (8, 8), 30: (8, 8),
    }  # fmt: skip
    assert found[7][0].tolist() == [0, 1, 2, 3]
    with jitcount.record() as log:
        for length in range(1, 40):
            f(np.arange(length))
    assert log.count() == 0


def test_threads_share_the_programs() -> None:
    batches = [arr(n, 3) for n in range(1, 65)]
    found: dict[int, Any] = {}

    def work(first: int) -> None:
        for number in range(first, 64, 4):
            found[number] = by_rows(W, batches[number])

    with jitcount.record() as log:
        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert log.count("rows") <= 2 * 3  # two threads may compile the same at the same time
    assert all(close(found[n]["rows"], x @ W) for n, x in enumerate(batches))


# --- What is refused ------------------------------------------------------------------------------


def two(x: Any, batch: Any, n: Any = 0) -> Any:
    return x.sum() + n, batch


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": {"z": 0}}, "two has no argument z; there are x, batch, n"),
        ({"axes": {"bach": 0}}, "two has no argument bach; did you mean batch?"),
        ({"axes": {}}, "bucketed takes axes as a mapping such as {'x': 0}; they are {}"),
        ({"axes": 0}, "bucketed takes axes as a mapping such as {'x': 0}; they are 0"),
        ({"axes": {"x": "0"}}, "bucketed takes axes by number; that of x is '0'"),
        ({"axes": {"[0]": 0}}, "bucketed takes places such as x or batch['x']; '[0]' is none"),
        ({"length": "m"}, "two has no parameter 'm' to take a length or a mask"),
        ({"mask": "m"}, "two has no parameter 'm' to take a length or a mask"),
        (
            {"length": {"a": "n"}},
            "bucketed takes length as a parameter's name here; it is {'a': 'n'}",
        ),
        ({"fill": {"batch": 1}}, "fill names batch, and axes does not"),
        ({"plan": []}, "bucketed needs a plan, or at least one size; there is none"),
        ({"plan": [8, 0]}, "bucketed takes sizes of 1 or more; sizes is 0"),
        (
            {"plan": {"a": [8]}},
            "bucketed takes axes for each plan; plans are a, axes x",
        ),
        (
            {"plan": {"a": [8]}, "axes": {"a": {"x": 0}}, "length": "n"},
            "bucketed takes length as a mapping from a here; it is 'n'",
        ),
        ({"too_long": "cut"}, "bucketed takes too_long of 'raise' or 'grow', not 'cut'"),
        ({"remainder": "cut"}, "bucketed takes remainder of 'pad' or 'drop', not 'cut'"),
    ],
)
def test_what_does_not_fit_the_function_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as refused:
        jitcount.bucketed(two, **({"plan": [8], "axes": {"x": 0}} | options))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("axes", "args", "message"),
    [
        (
            {"x": 1},
            (np.ones(3), np.ones(3)),
            "two got x without axis 1, which axes names; its shape is (3,)",
        ),
        (
            {"x": 0},
            (3.0, np.ones(3)),
            (
                "two got x without axis 0, which axes names; "
                "it is a float, no array: pass np.asarray of it"
            ),
        ),
        (
            {"batch": 0},
            (0, {"a": np.ones(3), "b": np.float32(1)}),
            "two got batch['b'] without axis 0, which axes names; its shape is ()",
        ),
        (
            {"batch['tokens']": 0},
            (0, {"a": np.ones(3), "b": np.ones(3)}),
            (
                "two has no array at batch['tokens'], which axes names; "
                "did you mean batch['b'] or batch['a']?"
            ),
        ),
        (
            {"x": 0, "batch": 1},
            (np.ones(3), {"a": np.ones((2, 4)), "b": np.ones((2, 3))}),
            (
                "two got ragged axes that disagree, and axes says that they have one length: "
                "3: axis 0 of x, axis 1 of batch['b']; 4: axis 1 of batch['a']"
            ),
        ),
        ({"x": 0}, (), "two is called without x, which has a ragged axis"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(
    axes: Any, args: tuple[Any, ...], message: str
) -> None:
    f = jitcount.bucketed(two, [8], axes=axes)
    with jitcount.record() as log, pytest.raises((ValueError, TypeError)) as refused:
        f(*args)
    assert str(refused.value) == message
    assert log.count() == 0


def test_what_is_given_twice_is_refused() -> None:
    with pytest.raises(TypeError) as refused:
        by_rows(W, arr(5, 3), n=5)
    assert str(refused.value) == "rows is given n by jitcount.bucketed: leave it out"


def test_what_is_bucketed_is_not_bucketed_again() -> None:
    with pytest.raises(TypeError) as refused:
        jitcount.bucketed(by_rows, [8], axes={"w": 0})
    assert str(refused.value) == "rows is bucketed already: name all of its lengths in one call"
    assert repr(by_rows) == "<rows, bucketed: sizes (4, 16, 64)>"


def test_random_keys_cannot_be_padded() -> None:
    f = jitcount.bucketed(lambda keys: keys, [8], axes={"keys": 0})
    with pytest.raises(TypeError) as refused:
        f(jax.random.split(jax.random.key(0), 3))
    assert str(refused.value) == "random keys cannot be padded; keys holds key<fry>"


# --- The advice of the README ---------------------------------------------------------------------


def test_the_advice_keeps_the_promise_for_the_readme() -> None:
    """The README's program: the same weights as without padding, and the recompiles are gone."""

    @jax.jit
    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * (x @ w).mean()

    @jax.jit
    def masked(w: Any, x: Any, n: Any) -> Any:
        is_real = jnp.arange(len(x)) < n
        return w - 0.1 * jnp.where(is_real, x @ w, 0).sum() / n

    batches = [arr(n, 4) for n in (20, 31, 20, 934, 57)]
    plan = jitcount.plan_buckets(map(len, batches), k=2)
    padded = jitcount.bucketed(masked, plan, axes={"x": 0}, length="n")
    w = v = np.ones(4, np.float32)
    with jitcount.record() as log:
        for x in batches:
            w, v = step(w, x), padded(v, x)
    assert close(v, w)
    assert log.counts() == {"step": 4, "masked": 2}
    advice = log.compiles[2].causes[0].advice
    assert advice == (
        "pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding"
    )


def test_zeros_without_a_mask_would_change_the_mean() -> None:
    """What the advice warns of."""
    f = jitcount.bucketed(lambda x: x.mean(), [8], axes={"x": 0})
    assert float(f(np.ones(2, np.float32))) == 0.25
