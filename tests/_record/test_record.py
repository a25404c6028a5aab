import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

import jitcount
from jitcount._jax import events, frames
from jitcount._registry import registry
from tests.helpers import python

X = np.ones(3, np.float32)


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return 2 * x


def test_a_block_without_compiles_is_empty() -> None:
    with jitcount.record() as log:
        pass
    assert (log.compiles, log.count(), log.counts()) == ((), 0, {})


def test_each_compile_is_described() -> None:
    with jitcount.record() as log:
        step(X)
    (found,) = log.compiles
    assert found.function == "step"
    assert found.signature == ("float32[3]",)
    assert found.platform == jax.default_backend()
    assert (found.eager, found.from_disk) == (False, False)
    assert min(found.trace_s, found.lower_s, found.compile_s) > 0
    assert found.total_s == found.trace_s + found.lower_s + found.compile_s


def test_counts_are_by_function_in_the_order_of_first_compiles() -> None:
    with jitcount.record() as log:
        for length in 3, 4, 3:
            jitcount.cache_independent_count(X, np.ones(length, np.float32))
    assert list(log.counts().items()) == [("sum", 2), ("add", 1)]
    assert (log.count(), log.count("sum"), log.count("add"), log.count("mul")) == (3, 2, 1, 0)
    assert log.total_s == pytest.approx(sum(found.total_s for found in log.compiles))


def test_an_eager_operation_is_marked() -> None:
    with jitcount.record() as log:
        jitcount.cache_independent_count(X, X)
    assert [(c.function, c.eager) for c in log.compiles] == [("sum", False), ("add", True)]


def test_weak_types_and_unused_arguments_are_in_the_signature() -> None:
    with jitcount.record() as log:
        jax.jit(lambda x, _unused, by: x * by)(X, np.ones((2, 2), np.int8), 3.0)
    assert log.compiles[0].signature == ("float32[3]", "int8[2,2]", "weak float32[]")


def test_a_prng_key_is_in_the_signature() -> None:
    key = jax.random.key(0)
    with jitcount.record() as log:
        jax.jit(jax.random.bits)(key)
    assert log.compiles[0].signature == ("key<fry>[]",)


def test_nested_recorders_each_see_their_own_block() -> None:
    with jitcount.record() as outer:
        step(X)
        with jitcount.record() as inner:
            step(X[:2])
        step(X[:1])
    shapes = [[c.signature[0] for c in log.compiles] for log in (outer, inner)]
    assert shapes == [["float32[3]", "float32[2]", "float32[1]"], ["float32[2]"]]


def test_recorders_that_end_out_of_order_each_see_their_own_block() -> None:
    first, second = jitcount.record(), jitcount.record()
    first_log, second_log = first.__enter__(), second.__enter__()
    step(X)
    first.__exit__(None, None, None)
    step(X[:2])
    second.__exit__(None, None, None)
    step(X[:1])
    assert (first_log.count(), second_log.count()) == (1, 2)


def test_one_recorder_that_is_entered_twice_keeps_two_logs() -> None:
    recorder = jitcount.record()
    with recorder as outer:
        step(X)
        with recorder as inner:
            step(X[:2])
        step(X[:1])
    assert (outer.count(), inner.count()) == (3, 1)


def test_one_recorder_in_two_threads_keeps_two_logs() -> None:
    recorder, logs = jitcount.record(), {}
    first_began, second_ended = threading.Event(), threading.Event()

    def first() -> None:
        with recorder as logs["first"]:
            first_began.set()
            second_ended.wait(60)
            step(X[:2])

    thread = threading.Thread(target=first)
    thread.start()
    first_began.wait(60)
    with recorder as logs["second"]:
        step(X)
    second_ended.set()
    thread.join()
    assert {name: log.count() for name, log in logs.items()} == {"first": 2, "second": 1}


def test_one_recorder_in_two_tasks_keeps_two_logs() -> None:
    recorder, logs = jitcount.record(), {}

    async def work(name: str, turns: int, length: int) -> None:
        with recorder as logs[name]:
            for _ in range(turns):
                await asyncio.sleep(0)
            step(X[:length])

    async def both() -> None:
        await asyncio.gather(work("short", 1, 1), work("long", 5, 2))

    asyncio.run(both())
    assert {name: log.count() for name, log in logs.items()} == {"short": 1, "long": 2}


@pytest.mark.thorough
def test_threads_that_compile_at_the_same_time_are_all_counted() -> None:
    threads, shapes = 8, 50
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        start.wait()
        for i in range(shapes):
            step(np.ones((number + 1, i + 1), np.float32))

    with jitcount.record() as log:
        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert log.counts() == {"step": threads * shapes}
    expected = {f"float32[{n + 1},{i + 1}]" for n in range(threads) for i in range(shapes)}
    assert {c.signature[0] for c in log.compiles} == expected
    assert all(c.trace_s > 0 and c.lower_s > 0 for c in log.compiles)


@pytest.mark.two_devices
def test_a_compile_without_a_trace_and_a_log_line_is_counted_and_described() -> None:
    step(jax.device_put(X, jax.devices()[0]))
    with jitcount.record() as log:
        step(jax.device_put(X, jax.devices()[1]))
    (found,) = log.compiles
    assert (found.function, found.signature) == ("step", ("float32[3]",))
    assert (found.trace_s, found.lower_s) == (0.0, 0.0)


def test_programs_compiled_ahead_of_time_are_counted() -> None:
    with jitcount.record() as log:
        short, long = step.lower(X[:2]), step.lower(X)
        worker = threading.Thread(target=short.compile)
        worker.start()
        worker.join()
        long.compile()
    assert [c.signature for c in log.compiles] == [("float32[2]",), ("float32[3]",)]
    assert all(c.trace_s > 0 and c.lower_s > 0 for c in log.compiles)
    assert not any(c.eager for c in log.compiles)


def test_a_compile_inside_a_trace_is_counted() -> None:
    @jax.jit
    def outer(x: jax.Array) -> jax.Array:
        with jax.ensure_compile_time_eval():
            table = jnp.sin(jax.device_put(X))
        return x + table

    with jitcount.record() as log:
        outer(X)
    assert log.counts() == {"sin": 1, "outer": 1}
    assert [c.eager for c in log.compiles] == [True, False]


def test_a_function_that_fails_to_trace_is_not_a_compile() -> None:
    with jitcount.record() as log:
        with pytest.raises(ZeroDivisionError):
            jax.jit(lambda _: 1 // 0)(X)
        step(X)
    assert log.counts() == {"step": 1}


def test_a_compile_while_an_exception_is_handled_is_counted() -> None:
    with jitcount.record() as log:
        try:
            raise KeyError  # noqa: TRY301
        except KeyError:
            step(X)
    assert log.counts() == {"step": 1}
    assert log.compiles[0].trace_s > 0


def test_a_program_that_xla_refuses_is_not_a_compile() -> None:
    with jitcount.record() as log:
        with pytest.raises(Exception, match="no_such_option"):
            step.lower(X).compile({"no_such_option": True})
        step(X)
    assert log.counts() == {"step": 1}


@pytest.mark.usefixtures("disk_cache")
def test_a_program_from_the_persistent_cache_is_not_a_compile() -> None:
    with jitcount.record() as log:
        step(X)
        jax.clear_caches()
        step(X)
    assert [c.from_disk for c in log.compiles] == [False, True]
    assert (log.count(), log.counts()) == (1, {"step": 1})


# --- Nothing is left behind, nothing is printed ----------------------------------------------


def state_of_jax() -> dict[str, Any]:
    from jax._src import monitoring as private  # noqa: PLC0415

    loggers = [
        logging.getLogger(name)
        for name in ("jax", events.COMPILE_LOGGER, events.DISK_LOGGER, events.PHASE_LOGGER)
    ]
    return {
        "events": private.get_event_listeners(),
        "durations": private.get_event_duration_listeners(),
        "scalars": list(private._scalar_listeners),
        "loggers": [dict(vars(logger), _cache=None) for logger in loggers],
        "levels": [(one.level, list(one.filters), list(one.handlers)) for one in loggers],
        "log_compiles": jax.config.values["jax_log_compiles"],
    }


def test_jax_is_left_as_it_was_found() -> None:
    before = state_of_jax()
    with jitcount.record(), jitcount.record():
        step(X)
        assert state_of_jax()["loggers"] != before["loggers"]
        assert state_of_jax()["levels"] == before["levels"]
    assert state_of_jax() == before


def test_an_exception_in_the_block_leaves_jax_as_it_was_found() -> None:
    before = state_of_jax()
    with contextlib.suppress(KeyError), jitcount.record() as log:
        step(X)
        raise KeyError
    assert state_of_jax() == before
    assert log.counts() == {"step": 1}


def cleared_by_jax() -> None:
    monitoring.clear_event_listeners()


def cleared_all() -> None:
    """As JAX means to, and as a release may do."""
    from jax._src import monitoring as private  # noqa: PLC0415

    monitoring.clear_event_listeners()
    private._scalar_listeners.clear()


def taken_out_one_by_one() -> None:
    from jax._src import monitoring as private  # noqa: PLC0415

    for listener in private.get_event_duration_listeners():
        private._event_duration_secs_listeners.remove(listener)


@pytest.fixture
def listeners_of_others() -> Iterator[None]:
    """Are put back: the tests' own plugins may listen."""
    from jax._src import monitoring as private  # noqa: PLC0415

    names = ("_event_listeners", "_event_duration_secs_listeners", "_scalar_listeners")
    lists = {name: list(getattr(private, name)) for name in names}
    yield
    for name, listeners in lists.items():
        setattr(private, name, listeners)


CLEARINGS = [cleared_by_jax, cleared_all, taken_out_one_by_one]


@pytest.mark.usefixtures("listeners_of_others")
@pytest.mark.parametrize("clear", CLEARINGS)
def test_listeners_that_the_program_clears_are_there_again(clear: Callable[[], None]) -> None:
    clear()
    with jitcount.record() as log:
        step(X)
        clear()
        step(X[:2])
        jnp.sin(jax.device_put(X))
        clear()
        ahead = step.lower(X[:1])
        clear()
        ahead.compile()
    assert log.counts() == {"step": 3, "sin": 1}
    assert all(c.compile_s > 0 for c in log.compiles)
    with jitcount.record() as log:
        step(np.ones(5, np.float32))
    assert log.counts() == {"step": 1}
    clear()
    with jitcount.freeze():
        clear()
        with pytest.raises(jitcount.RecompileError):
            step(np.ones(6, np.float32))


@pytest.mark.two_devices
@pytest.mark.usefixtures("listeners_of_others")
@pytest.mark.parametrize("clear", CLEARINGS)
def test_a_compile_without_a_trace_counts_after_such_a_clearing(clear: Callable[[], None]) -> None:
    there = [jax.device_put(X, device) for device in jax.devices()[:2]]
    step(there[0])
    with jitcount.record() as log:
        clear()
        step(there[1])
    assert log.counts() == {"step": 1}
    jax.clear_caches()
    step(there[0])
    with jitcount.freeze():
        clear()
        with pytest.raises(jitcount.RecompileError):
            step(there[1])


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with jitcount.record():
        step(X)
    assert capfd.readouterr() == ("", "")


def test_no_line_reaches_the_users_handlers(caplog: pytest.LogCaptureFixture) -> None:
    with jitcount.record():
        step(X)
    assert caplog.records == []


def test_a_user_who_wants_the_lines_still_gets_them(caplog: pytest.LogCaptureFixture) -> None:
    with jitcount.record() as log, jax.log_compiles():
        step(X)
    lines = [r.getMessage() for r in caplog.records if r.name == events.COMPILE_LOGGER]
    assert len(lines) == log.count("step") == 1
    assert lines[0].startswith("Compiling jit(step) with global shapes and types")


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.ERROR])
@pytest.mark.parametrize(
    "name", ["jax", events.COMPILE_LOGGER, events.DISK_LOGGER, events.PHASE_LOGGER]
)
def test_a_level_that_the_user_sets_in_the_block_stays(name: str, level: int) -> None:
    logger = logging.getLogger(name)
    before = logger.level
    try:
        with jitcount.record(), jitcount.max_compiles(9):
            logger.setLevel(level)
            assert logger.getEffectiveLevel() == level
            step(X)
        assert logger.level == level
    finally:
        logger.setLevel(before)


def test_lines_that_the_user_asks_for_in_the_block_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with jitcount.record(), caplog.at_level(logging.DEBUG, events.COMPILE_LOGGER):
        step(X)
    lines = [r.getMessage() for r in caplog.records if r.name == events.COMPILE_LOGGER]
    assert [line.split()[:2] for line in lines] == [["Compiling", "jit(step)"]]


def test_an_observer_that_fails_does_not_fail_the_program(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("JAX has changed")

    monkeypatch.setattr(frames, "read_call", fail)
    with caplog.at_level(logging.DEBUG, "jitcount"), jitcount.record() as log:
        assert step(X).tolist() == [2.0, 2.0, 2.0]
    assert log.counts() == {"step": 1}
    assert {r.message for r in caplog.records if r.name == "jitcount"} == {
        "could not read JAX's frames"
    }
    assert str(log.compiles[0].causes[0]) == (
        "the cause is not known: JAX's frames could not be read"
    )


def test_without_jaxs_frames_the_log_line_gives_the_signature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "read_call", lambda _: frames.Call())
    monkeypatch.setattr(frames, "read_executable", lambda _: frames.CompilingFrame())
    monkeypatch.setattr(frames, "read_lowered", lambda _: frames.LoweringFrame())
    monkeypatch.setattr(frames, "tells_lowered_avals", lambda _: False)
    with jitcount.record() as log:
        step(X)
    (found,) = log.compiles
    assert (found.function, found.signature, found.platform) == ("step", ("float32[3]",), "unknown")


def test_nobody_listens_when_no_recorder_is_open() -> None:
    with jitcount.record():
        assert len(registry.listeners) == 1
    assert len(registry.listeners) == 0


DROPPED = """
import gc, jax, jitcount, numpy as np
double = jax.jit(lambda x: 2 * x)

def entered():
    return jitcount.record(profile=True).__enter__()

log = entered()
gc.collect()
double(np.zeros(3, np.float32))
jitcount.freeze().__enter__()
gc.collect()
try:
    double(np.zeros(4, np.float32))
except jitcount.RecompileError:
    print(log.counts(), len(log.compiles[0].lines) > 0)
"""


def test_a_block_whose_recorder_or_guard_was_dropped_goes_on() -> None:
    done = python("-c", DROPPED)
    assert (done.stdout, done.stderr) == ("{'<lambda>': 1} True\n", "")
