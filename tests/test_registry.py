"""What is open around a block: who is told, who may refuse, and what the history knows after it."""

import contextlib
import gc
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import jitcount
from jitcount._explain.history import History
from jitcount._jax import events
from jitcount._observe import in_flight
from jitcount._observe.in_flight import InFlightCompile, LoweredProgram, WaitingLowerings
from jitcount._registry import registry


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return 2 * x


def arr(length: int) -> np.ndarray:
    return np.ones(length, np.float32)


@pytest.fixture(autouse=True)
def a_history_of_its_own() -> Iterator[None]:
    with registry.own_history():
        yield


class Watch:
    """A listener, a guard and a taker, which all write down what they hear."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.refuses = False

    def check(self, observation: InFlightCompile) -> None:
        self.heard.append(f"asked for {observation.function}")
        if self.refuses:
            raise PermissionError(observation.function)

    def count(self, observation: InFlightCompile) -> None:
        self.heard.append(f"counted {observation.function}")

    def listen(self, observation: InFlightCompile) -> None:
        self.heard.append(f"told of {observation.function}")

    def take(self, lowered_program: LoweredProgram) -> None:
        assert lowered_program.compilation is not None
        self.heard.append("given a program")


@contextlib.contextmanager
def watching(watch: Watch) -> Iterator[None]:
    with (
        registry.listening(watch.listen),
        registry.consuming_programs(watch.take),
        registry.guarding(watch),
    ):
        yield


# --- Who is there, and in which order -------------------------------------------------------------


def test_guards_are_asked_before_the_program_is_given_on_and_listeners_are_told_last() -> None:
    watch = Watch()
    with watching(watch):
        step(arr(3))
    assert watch.heard == ["asked for step", "counted step", "given a program", "told of step"]


def test_of_a_compile_that_was_refused_in_time_nobody_hears() -> None:
    first, second = Watch(), Watch()
    first.refuses = True
    with watching(first), watching(second), pytest.raises(PermissionError):
        step(arr(3))
    assert (first.heard, second.heard) == (["asked for step"], [])
    assert len(registry.history) == 0


def test_no_guard_counts_what_a_later_one_refuses() -> None:
    first, second = Watch(), Watch()
    second.refuses = True
    with watching(first), watching(second), pytest.raises(PermissionError):
        step(arr(3))
    assert first.heard == ["asked for step"]


def state() -> dict[str, Any]:
    """Who is there, and how JAX's loggers stand."""
    names = (events.COMPILE_LOGGER, events.DISK_LOGGER, events.PHASE_LOGGER)
    loggers = map(logging.getLogger, names)
    return {
        "there": (registry.listeners, registry.guards, registry.program_consumers),
        "loggers": [dict(vars(logger), _cache=None) for logger in loggers],
        "modules": len(registry.listener._lowerings_by_module),
    }


def test_what_came_is_gone_when_its_block_ends_and_jaxs_loggers_are_as_found() -> None:
    before = state()
    with watching(Watch()):
        step(arr(3))
        within = state()
    assert state() == before
    assert [len(there) for there in within["there"]] == [1, 1, 1]
    assert all(one != two for one, two in zip(within["loggers"], before["loggers"], strict=True))
    assert within["modules"] == 1


@pytest.mark.parametrize(("opened", "count"), [(jitcount.record, 2), (jitcount.freeze, 3)])
def test_a_logger_is_heard_only_while_what_needs_it_is_there(opened: Any, count: int) -> None:
    before = state()["loggers"]
    with opened():
        within = state()["loggers"]
    assert sum(one != two for one, two in zip(within, before, strict=True)) == count
    assert state()["loggers"] == before


def test_a_listener_that_fails_fails_neither_the_program_nor_the_history() -> None:
    def fail(observation: InFlightCompile) -> None:
        raise RuntimeError(observation.function)

    with registry.listening(fail):
        assert step(arr(3)).tolist() == [2.0, 2.0, 2.0]
    assert len(registry.history) == 1


def test_of_one_listener_that_is_there_twice_each_block_ends_its_own() -> None:
    heard: list[InFlightCompile] = []
    with registry.listening(heard.append):
        with registry.listening(heard.append):
            step(arr(3))
        assert len(heard) == 2
        step(arr(4))
    assert len(heard) == 3


def test_blocks_may_end_in_another_order_than_they_began() -> None:
    first, second = Watch(), Watch()
    one, two = registry.listening(first.listen), registry.listening(second.listen)
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    step(arr(3))
    two.__exit__(None, None, None)
    step(arr(4))
    assert (first.heard, second.heard) == ([], ["told of step"])


def test_an_own_history_knows_nothing_and_leaves_nothing() -> None:
    outer = registry.history
    step(arr(3))
    with registry.own_history(), jitcount.record() as log:
        step(arr(4))
        assert len(registry.history) == 1
    assert [cause.kind for cause in log.compiles[0].causes] == ["first-call"]
    assert registry.history is outer
    assert len(outer) == 1


def test_a_new_history_begins_as_a_new_process_does() -> None:
    step(arr(3))
    registry.new_history()
    with jitcount.record() as log:
        step(arr(4))
    assert [cause.kind for cause in log.compiles[0].causes] == ["first-call"]


# --- Refused when XLA has done its work -----------------------------------------------------------


@pytest.fixture
def refused_late(disk_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX asks its persistent cache, keeps nothing there, and says nothing before it compiles."""
    name = "jax_persistent_cache_min_compile_time_secs"
    jax.config.update(name, 1e9)  # `disk_cache` sets it back
    monkeypatch.setattr(events, "is_disk_miss", lambda _line: False)


@pytest.mark.usefixtures("refused_late")
def test_a_compile_that_is_refused_late_says_why_and_says_the_same_again() -> None:
    step(arr(3))
    for _ in range(2):
        with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
            step(arr(5))
        assert [cause.kind for cause in raised.value.causes] == ["shape"]
        assert (raised.value.causes[0].before, raised.value.causes[0].after) == (
            "float32[3]",
            "float32[5]",
        )


@pytest.mark.usefixtures("refused_late")
def test_a_compile_that_is_refused_late_counts_for_the_same_reason() -> None:
    step(arr(3))
    with jitcount.record() as log:
        with pytest.raises(jitcount.RecompileError), jitcount.freeze():
            step(arr(5))
        assert log.counts() == {"step": 1}
        step(arr(5))
    assert log.counts() == {"step": 2}
    assert [[cause.kind for cause in c.causes] for c in log.compiles] == [["shape"], ["shape"]]


@pytest.mark.usefixtures("refused_late")
def test_a_compile_that_is_refused_late_uses_up_no_allowance() -> None:
    with jitcount.max_compiles(1):
        with pytest.raises(jitcount.RecompileError), jitcount.freeze():
            step(arr(3))
        step(arr(5))


# --- A finalizer that compiles, in the midst of our work ------------------------------------------


def collecting(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that collects garbage before it does its work."""

    def wrapper(*args: Any) -> Any:
        gc.collect()
        return function(*args)

    return wrapper


def compiled_with_a_finalizer() -> dict[str, jitcount.Compile]:
    """Compile for length 5 where garbage waits whose finalizer compiles for length 7.

    It ends soon, or the test fails.
    """

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            step(arr(7))

    logs: list[jitcount.CompileLog] = []

    def work() -> None:
        with jitcount.record() as log:
            step(arr(5))
        logs.append(log)

    step(arr(3))
    gc.disable()  # none may be collected before
    try:
        Garbage()
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(30.0)
    finally:
        gc.enable()
    assert not worker.is_alive(), "the finalizer waits for a lock that its own thread has"
    return {c.signature[0]: c for log in logs for c in log.compiles}


def causes_of_the_same_again() -> list[list[str]]:
    """Whether the history knows what was compiled in front of the finalizer, and by it."""
    jax.clear_caches()
    with jitcount.record() as log:
        step(arr(5))
        step(arr(7))
    return [[cause.kind for cause in c.causes] for c in log.compiles]


def test_a_finalizer_may_compile_while_the_history_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(History, "_candidates", collecting(History._candidates))
    found = compiled_with_a_finalizer()
    assert found.keys() == {"float32[5]", "float32[7]"}
    assert [str(cause) for cause in found["float32[5]"].causes] == [
        "axis 0 of x went from 3 to 5: float32[3] became float32[5]"
    ]
    assert [str(cause) for cause in found["float32[7]"].causes] == [
        "the cause is not known: it was compiled by a finalizer, in the midst of another compile"
    ]
    assert causes_of_the_same_again() == [["caches-cleared"], ["caches-cleared"]]


def test_a_finalizer_may_compile_while_a_lowering_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry.listener, "_waiting_lowerings", WaitingLowerings())
    monkeypatch.setattr(in_flight, "_may_be", collecting(in_flight._may_be))
    found = compiled_with_a_finalizer()
    assert found.keys() == {"float32[5]", "float32[7]"}
    assert all(c.trace_s > 0 and c.lower_s > 0 for c in found.values())
    kinds = [[cause.kind for cause in c.causes] for c in found.values()]
    assert kinds == [["shape"], ["shape"]]
    assert causes_of_the_same_again() == [["caches-cleared"], ["caches-cleared"]]
