"""After a warm-up nothing is compiled, whatever requests come."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount


@functools.partial(jax.jit, static_argnames="scale")
def serve(w: Any, request: Any, mask: Any, *, scale: int = 1) -> Any:
    y = jnp.where(mask, request @ w, 0)
    return scale * y.sum() / mask.sum(), y


PLAN = jitcount.plan_buckets(range(1, 513), k=3, multiple_of=8)
W = np.ones(4, np.float32)


def padded() -> Any:
    return jitcount.bucketed(serve, PLAN, axes={"request": 0}, mask="mask")


def test_ten_thousand_random_requests_compile_nothing() -> None:
    f = padded()
    with jitcount.record() as log:
        PLAN.warm(f, W, np.ones((3, 4), np.float32), progress=False)
    assert log.counts() == {"serve": 3}
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(512, 4)).astype(np.float32)
    lengths = rng.integers(1, 513, 10_000)
    sums = np.cumsum(rows.sum(axis=1, dtype=np.float64))
    with jitcount.freeze():
        for n in lengths.tolist():
            mean, each = f(W, rows[:n])
            assert each.shape == (n,)
            assert abs(float(mean) - sums[n - 1] / n) < 1e-4


def test_requests_may_be_arrays_of_jax() -> None:
    f = padded()
    PLAN.warm(f, W, jax.ShapeDtypeStruct((3, 4), np.float32), progress=False)
    requests = [jax.device_put(np.ones((n, 4), np.float32)) for n in range(1, 512, 7)]
    with jitcount.freeze():
        for request in requests:
            f(W, request)


def test_a_request_that_was_served_is_enough() -> None:
    f = padded()
    f(W, np.ones((3, 4), np.float32), scale=2)
    PLAN.warm(f, progress=False, threads=2)
    with jitcount.freeze():
        f(W, np.ones((500, 4), np.float32), scale=2)


def test_two_lengths_are_compiled_for_all_pairs() -> None:
    grid = jitcount.plan_buckets({"a": [3, 8, 3, 8], "b": [4, 4, 16, 16]}, k=4)
    f = jitcount.bucketed(jax.jit(jnp.outer), grid, axes={"a": {"a": 0}, "b": {"b": 0}})
    with jitcount.record() as log:
        grid.warm(f, np.ones(3), np.ones(4), progress=False)
    assert log.count() == 4
    with jitcount.freeze():
        for n, m in (1, 1), (8, 3), (2, 16), (7, 9):
            assert f(np.ones(n), np.ones(m)).shape == (n, m)


def test_the_settings_of_the_thread_are_those_of_the_programs() -> None:
    f = padded()
    with jax.default_matmul_precision("highest"):
        PLAN.warm(f, W, np.ones((3, 4), np.float32), progress=False, threads=4)
        with jitcount.freeze():
            f(W, np.ones((500, 4), np.float32))


def test_progress_is_not_printed_into_a_log(capfd: pytest.CaptureFixture[str]) -> None:
    PLAN.warm(padded(), W, np.ones((3, 4), np.float32))
    assert capfd.readouterr() == ("", "")


def test_what_the_compiler_refuses_is_raised() -> None:
    plan = jitcount.plan_buckets([3, 6, 8], 3)
    f = jitcount.bucketed(jax.jit(lambda x: x.reshape(3, -1)), plan, axes={"x": 0})
    with pytest.raises(TypeError, match="reshape"):
        plan.warm(f, np.ones(3), progress=False)


def test_another_plan_is_refused() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared whole)
        jitcount.plan_buckets([3, 9], 2).warm(padded(), W, np.ones((3, 4), np.float32))
    assert str(refused.value) == (
        f"warm compiles the sizes of a plan, (3, 9), and serve is padded to others, {PLAN.sizes}"
    )


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (serve, "warm takes what jitcount.bucketed returned; f is a PjitFunction"),
        (padded(), "warm needs the arguments of a call, as serve has not been called yet"),
    ],
)
def test_what_cannot_be_warmed_is_refused(f: Any, message: str) -> None:
    with pytest.raises(TypeError) as refused:
        PLAN.warm(f)
    assert str(refused.value) == message
