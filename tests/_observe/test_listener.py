"""What the listener makes of JAX's events, also where they do not come as usual."""

import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

import jitcount
from jitcount._jax import events, lowering
from jitcount._observe.listener import CompileListener
from jitcount._registry import registry
from tests.helpers import observed


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return 2 * x


def arr(length: int) -> np.ndarray:
    return np.ones(length, np.float32)


def test_a_listener_that_subscribes_twice_hears_each_compile_once() -> None:
    with jitcount.record() as log:
        registry.listener.refresh_subscriptions()
        step(arr(3))
    assert log.count() == 1


def test_a_refused_compile_is_not_under_way_any_more() -> None:
    with pytest.raises(jitcount.RecompileError), jitcount.freeze():
        step(arr(3))
    assert registry.listener._threads.current.compiles == []
    (seen,) = observed(lambda: step(arr(3)))
    assert (seen.function, seen.from_disk) == ("step", False)


def test_a_compile_that_failed_is_not_under_way_any_more() -> None:
    with pytest.raises(Exception, match="no_such_option"):
        jax.jit(lambda x: x, compiler_options={"no_such_option": True})(arr(3))
    assert registry.listener._threads.current.compiles == []


def test_a_cache_hit_outside_of_a_compile_is_nobodys() -> None:
    def work() -> None:
        monitoring.record_event(events.DISK_HIT)
        step(arr(3))

    assert [seen.from_disk for seen in observed(work)] == [False]


def test_the_end_of_a_compile_whose_begin_was_not_heard_counts() -> None:
    def work() -> None:
        monitoring.record_event_duration_secs(events.COMPILE, 0.5, fun_name="jit(late)")

    before = time.time()
    (seen,) = observed(work)
    assert (seen.function, seen.compile_s) == ("late", 0.5)
    assert before - 0.5 <= seen.started_at <= time.time() - 0.5


def test_events_of_others_are_not_ours() -> None:
    def work() -> None:
        monitoring.record_event_duration_secs("/another/compile", 0.5, fun_name="jit(other)")

    assert observed(work) == []


def test_a_program_is_measured_only_while_a_recorder_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[object] = []
    measure = lowering.measure

    def spy(compilation: lowering.Compilation) -> lowering.Measure:
        measured.append(compilation)
        return measure(compilation)

    monkeypatch.setattr(lowering, "measure", spy)
    step(arr(3))
    with jitcount.max_compiles(1):
        step(arr(4))
    assert measured == []
    with jitcount.record() as log:
        step(arr(5))
    assert log.compiles[0].fingerprint == measure(measured[0]).fingerprint  # type: ignore[arg-type]


def test_a_program_that_cannot_be_measured_counts_and_has_no_fingerprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_compilation: object) -> None:
        raise RuntimeError("MLIR has changed")

    monkeypatch.setattr(lowering, "measure", fail)
    with jitcount.record() as log:
        step(arr(3))
    assert [(c.fingerprint, c.operations) for c in log.compiles] == [("", 0)]


def test_a_program_consumer_that_fails_fails_no_program() -> None:
    def fail(_portable: object) -> None:
        raise RuntimeError("no room")

    with registry.consuming_programs(fail):
        (seen,) = observed(lambda: step(arr(3)))
    assert seen.measure is not None


def test_consumers_have_the_program_but_what_is_kept_of_the_compile_does_not() -> None:
    given: list[Any] = []
    with registry.consuming_programs(given.append):
        (seen,) = observed(lambda: step(arr(3)))
    assert given[0].lowering.module is given[0].compilation.module
    assert seen.lowered_program is None


def test_what_a_trace_compiles_on_its_way_takes_nothing_from_it() -> None:
    @jax.jit
    def outer(x: jax.Array) -> jax.Array:
        with jax.ensure_compile_time_eval():
            table = jnp.sin(jax.device_put(arr(3)))
        return x + table

    inner, whole = observed(lambda: outer(arr(3)))
    assert (inner.function, whole.function) == ("sin", "outer")
    assert whole.started_at < inner.started_at
    assert whole.trace_s > inner.compile_s


def test_a_trace_that_was_never_lowered_is_not_taken_for_that_of_a_later_call() -> None:
    ahead = time.time()
    jax.make_jaxpr(step)(arr(5))  # of the same name
    (seen,) = observed(lambda: jax.vmap(step)(np.ones((2, 3), np.float32)))
    assert seen.started_at > ahead
    assert seen.program is not None
    assert (seen.program.transform, seen.program.places) == ("vmap", ("x",))


def test_each_thread_has_its_own_compiles_under_way() -> None:
    under_way: list[int] = []

    listener = CompileListener(lambda _: None, lambda _: None, lambda _compiled, _refused: None)
    listener._on_begin(events.COMPILE, 0.0, fun_name="jit(step)")

    def look() -> None:
        under_way.append(len(listener._threads.current.compiles))

    look()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert under_way == [1, 0]
