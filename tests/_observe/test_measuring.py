"""Small programs wait to be measured, large ones do not; what is found is the same."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._jax import lowering
from jitcount._observe.measuring import MOST_WAITING, LazyMeasure, MeasureQueue
from jitcount._registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable

ARRAY = np.arange(1000, dtype=np.float32)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[lowering.Compilation]:
    """What is measured, as it is."""
    found: list[lowering.Compilation] = []
    measure = lowering.measure

    def spy(compilation: lowering.Compilation) -> lowering.Measure:
        found.append(compilation)
        return measure(compilation)

    monkeypatch.setattr(lowering, "measure", spy)
    return found


def test_a_small_program_is_measured_when_it_is_asked_for(measured: list[Any]) -> None:
    with jitcount.record() as log:
        jax.jit(lambda x: x + 1)(ARRAY)
        assert measured == []
        assert log.compiles[0].operations == 3
        assert len(measured) == 1
    assert len(measured) == 1


@pytest.mark.parametrize(
    "program",
    [
        lambda: jax.jit(lambda x: x + ARRAY)(ARRAY),
        lambda: jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * x, x))(ARRAY),
        lambda: jax.jit(lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))(ARRAY),
        lambda: jax.jit(lambda x: sum(x * n for n in range(2, 20)))(ARRAY),
        lambda: jax.jit(lambda x: x + 1).lower(ARRAY).compile(),
    ],
    ids=["constant", "loop", "branches", "long", "ahead-of-time"],
)
def test_what_is_not_small_or_in_the_users_hands_is_measured_at_once(
    program: Callable[[], object], measured: list[Any]
) -> None:
    with jitcount.record() as log:
        program()
        assert len(measured) == len(log._seen)


def test_measured_late_a_program_has_the_fingerprint_that_it_had_before_its_compile(
    measured: list[Any],
) -> None:
    def double(x: jax.Array) -> jax.Array:
        return x + x

    with jitcount.record() as log:
        jax.jit(double)(ARRAY)
        jax.clear_caches()
        jax.jit(double).lower(ARRAY).compile()
    late, at_once = log.compiles
    assert len(measured) == 2
    assert (late.fingerprint, late.operations) == (at_once.fingerprint, at_once.operations)


def test_when_the_block_ends_no_module_is_kept(measured: list[Any]) -> None:
    def work() -> weakref.ref[Any]:
        jax.jit(lambda x: x * 3)(ARRAY)
        (waiting,) = registry.listener._unmeasured._waiting
        assert waiting.unmeasured is not None
        return weakref.ref(waiting.unmeasured.module)

    with jitcount.record():
        module = work()
    assert len(measured) == 1
    measured.clear()
    jax.clear_caches()
    gc.collect()
    assert module() is None


def test_a_recorder_inside_of_another_lets_programs_wait(measured: list[Any]) -> None:
    with jitcount.record():
        with jitcount.record() as inner:
            jax.jit(lambda x: x * 5)(ARRAY)
        assert measured == []
        assert inner.compiles[0].fingerprint


def compilation() -> Any:
    return lowering.Compilation(jax.jit(jnp.sin).lower(1.0).compiler_ir(), 1, (), (), {})


def test_a_few_wait_and_one_more_lets_all_be_measured(measured: list[Any]) -> None:
    one, queue = compilation(), MeasureQueue()
    for _ in range(MOST_WAITING - 1):
        queue.add(LazyMeasure(one))
    assert measured == []
    queue.add(LazyMeasure(one))
    assert len(measured) == MOST_WAITING
    queue.measure_all()
    assert len(measured) == MOST_WAITING


def test_a_program_that_is_compiled_in_the_midst_of_it_waits_for_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, second = MeasureQueue(), LazyMeasure(compilation())
    found = lowering.Measure("c0ffee", 1)

    def measure(_compilation: object) -> lowering.Measure:
        monkeypatch.setattr(lowering, "measure", lambda _: found)
        queue.add(second)  # as a finalizer would
        return found

    monkeypatch.setattr(lowering, "measure", measure)
    queue.add(LazyMeasure(compilation()))
    queue.measure_all()
    assert second.unmeasured is not None
    assert second.get() is found


def test_two_threads_find_the_same() -> None:
    one, found = LazyMeasure(compilation()), []
    threads = [threading.Thread(target=lambda: found.append(one.get())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [one.get()] * 4
    assert one.get() is not None
