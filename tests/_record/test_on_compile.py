"""`record(on_compile=f)` and `log.to_dicts()`: what other tools are given."""

import json
import logging
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from tests.helpers import python


def arr(length: int) -> np.ndarray:
    return np.ones(length, np.float32)


def test_each_compile_is_given_as_it_is_made_and_is_the_one_in_the_log() -> None:
    given: list[jitcount.Compile] = []
    step = jax.jit(lambda x: 2 * x)
    with jitcount.record(on_compile=given.append) as log:
        step(arr(3))
        assert [c.signature for c in given] == [("float32[3]",)]
        step(arr(3))
        step(arr(4))
    step(arr(5))
    assert len(given) == 2
    assert all(one is other for one, other in zip(given, log.compiles, strict=True))
    assert given[1].causes[0].kind == "shape"


def test_what_it_raises_never_reaches_the_program_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: jitcount.Compile) -> None:
        raise SystemExit("not the program's")

    step = jax.jit(lambda x: 3 * x)
    with caplog.at_level(logging.WARNING, "jitcount"), jitcount.record(on_compile=fail) as log:
        for length in 3, 4, 5:
            assert step(arr(length)).shape == (length,)
    assert log.count() == 3
    (line,) = caplog.records
    assert (line.name, line.getMessage()) == ("jitcount", "on_compile raised; this is said once")
    assert line.exc_info is not None
    assert str(line.exc_info[1]) == "not the program's"


def test_ctrl_c_in_it_is_the_programs() -> None:
    def interrupt(_: jitcount.Compile) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), jitcount.record(on_compile=interrupt):
        jax.jit(lambda x: 4 * x)(arr(3))


def test_what_it_compiles_itself_is_counted_and_not_told() -> None:
    given: list[str] = []
    lengths = iter(range(100, 200))

    def compiling(compiled: jitcount.Compile) -> None:
        given.append(compiled.function)
        jax.jit(jnp.tanh)(arr(next(lengths)))

    def step(x: jax.Array) -> jax.Array:
        return 5 * x

    jitted = jax.jit(step)
    with jitcount.record(on_compile=compiling) as log:
        assert np.asarray(jitted(arr(3)))[0] == 5
        jitted(arr(4))
    assert given == ["step", "step"]
    assert log.counts() == {"step": 2, "tanh": 2}


def test_it_is_told_in_the_thread_that_compiles_and_each_recorder_by_itself() -> None:
    outer: list[int] = []
    inner: list[int] = []
    step = jax.jit(lambda x: 6 * x)
    with (
        jitcount.record(on_compile=lambda _: outer.append(threading.get_ident())),
        jitcount.record(on_compile=lambda _: inner.append(threading.get_ident())),
    ):
        threads = [threading.Thread(target=step, args=(arr(length),)) for length in (3, 4, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(outer) == 3
    assert sorted(outer) == sorted(inner)
    assert threading.get_ident() not in outer


def test_all_of_a_log_is_plain_data() -> None:
    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        return x + 1

    with jitcount.record() as log:
        step(arr(3))
        step(arr(4))
    first, again = json.loads(json.dumps(log.to_dicts()))
    assert list(first) == [
        "function", "signature", "arguments", "platform", "call_site", "file", "line", "via",
        "callers", "thread", "eager", "ahead_of_time", "from_disk", "started_at", "trace_s",
        "lower_s", "compile_s", "total_s", "fingerprint", "operations", "causes",
    ]  # fmt: skip
    assert (first["function"], first["signature"]) == ("step", ["float32[3]"])
    assert first["file"] == __file__
    assert first["total_s"] == log.compiles[0].total_s
    assert again["causes"] == [
        {
            "kind": "shape",
            "where": "x",
            "before": "float32[3]",
            "after": "float32[4]",
            "code": "JC101",
            "text": "axis 0 of x went from 3 to 4: float32[3] became float32[4]",
            "advice": "pad axis 0 of x to a few lengths with jitcount.bucketed, "
            "and mask the padding",
        }
    ]


def test_of_nothing_there_is_no_data() -> None:
    with jitcount.record() as log:
        pass
    assert log.to_dicts() == []


WITH_A_TARGET = """
import json, jax, jitcount, numpy as np
with jitcount.record(["cpu"], profile=True) as log:
    jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(np.ones(3, np.float32))
(found,) = json.loads(json.dumps(log.to_dicts()))
print(found["on"]["cpu"]["error"], found["on"]["cpu"]["left_out"][0]["call_site"])
"""


def test_what_targets_and_profiles_found_is_plain_too() -> None:
    done = python("-c", WITH_A_TARGET)
    assert (done.stdout, done.stderr) == ("None <string>:4 in <lambda>\n", "")
