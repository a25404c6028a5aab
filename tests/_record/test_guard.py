import copy
import functools
import io
import logging
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._jax import events, frames
from jitcount._observe.in_flight import WaitingLowerings
from jitcount._registry import registry
from tests.helpers import STEP_COMPILED, python

X = np.ones(3, np.float32)
Y = np.ones(5, np.float32)


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return 2 * x


@pytest.fixture(autouse=True)
def a_history_of_its_own() -> Iterator[None]:
    with registry.own_history():
        yield


def test_a_frozen_block_runs_what_is_compiled() -> None:
    step(X)
    with jitcount.freeze():
        assert step(X).tolist() == [2.0, 2.0, 2.0]


def test_a_frozen_block_refuses_a_compile_and_says_why() -> None:
    step(X)
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
        step(Y)
    error = raised.value
    assert (error.function, error.signature) == ("step", ("float32[5]",))
    assert error.call_site.endswith(" in test_a_frozen_block_refuses_a_compile_and_says_why")
    assert [cause.kind for cause in error.causes] == ["shape"]
    assert str(error) == (
        f"step(float32[5]) would be compiled at {error.call_site}, "
        "and jitcount.freeze() allows no compile here\n"
        "  because: axis 0 of x: 3 → 5 [JC101]\n"
        "  → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding"
    )


def test_a_refused_compile_did_not_happen_and_can_happen_later() -> None:
    with jitcount.record() as log:
        with pytest.raises(jitcount.RecompileError), jitcount.freeze():
            step(X)
        assert log.counts() == {}
        assert step(X).tolist() == [2.0, 2.0, 2.0]
    assert log.counts() == {"step": 1}
    assert [cause.kind for cause in log.compiles[0].causes] == ["first-call"]


def test_an_eager_operation_is_refused_too() -> None:
    x = jax.device_put(X)
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
        x + x
    assert (raised.value.function, raised.value.signature) == ("add", ("float32[3]",) * 2)


def test_a_compile_ahead_of_time_is_refused() -> None:
    with jitcount.freeze():
        lowered = step.lower(X)
        with pytest.raises(jitcount.RecompileError, match="first call of step"):
            lowered.compile()


def test_so_many_compiles_are_allowed_and_the_next_is_not() -> None:
    with jitcount.max_compiles(2, "step"):
        step(X)
        step(Y)
        step(X)
        with pytest.raises(jitcount.RecompileError) as raised:
            step(np.ones(7, np.float32))
        with pytest.raises(jitcount.RecompileError):
            step(np.ones(8, np.float32))
    assert (
        str(raised.value)
        .splitlines()[0]
        .endswith(", and jitcount.max_compiles allows 2 compiles of step here")
    )


def test_other_functions_compile_as_they_like() -> None:
    with jitcount.max_compiles(0, "other"):
        step(X)


def test_all_functions_count_where_none_is_named() -> None:
    with jitcount.max_compiles(1):
        step(X)
        with pytest.raises(jitcount.RecompileError, match="allows 1 compile here"):
            jax.jit(jnp.sin)(X)


def test_as_a_decorator_it_counts_each_call_anew() -> None:
    @jitcount.max_compiles(1)
    def serve(x: np.ndarray) -> Any:
        return step(x)

    serve(X)
    serve(Y)

    @jitcount.freeze()
    def frozen(x: np.ndarray) -> Any:
        return step(x)

    frozen(X)
    with pytest.raises(jitcount.RecompileError):
        frozen(np.ones(9, np.float32))


def test_guards_nest_and_each_counts_for_itself() -> None:
    with jitcount.max_compiles(3):
        step(X)
        with jitcount.max_compiles(1):
            step(Y)
            with pytest.raises(jitcount.RecompileError, match="allows 1 compile "):
                step(np.ones(7, np.float32))
        step(np.ones(8, np.float32))


def in_a_thread(work: Any) -> list[BaseException]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except jitcount.RecompileError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return errors


def test_other_threads_are_frozen_too_by_default() -> None:
    with jitcount.freeze():
        assert len(in_a_thread(lambda: step(X))) == 1


def test_other_threads_are_left_alone_by_choice() -> None:
    with jitcount.freeze(this_thread_only=True):
        assert in_a_thread(lambda: step(X)) == []
        with pytest.raises(jitcount.RecompileError):
            step(Y)


def test_a_callback_to_the_host_is_no_compile() -> None:
    @jax.jit
    def calls_back(x: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x)

    calls_back(X).block_until_ready()
    with jitcount.freeze():
        assert calls_back(X).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.usefixtures("disk_cache")
def test_a_program_from_the_persistent_cache_is_not_refused() -> None:
    step(X)
    jax.clear_caches()
    with jitcount.freeze(), jitcount.record() as log:
        step(X)
    assert [c.from_disk for c in log.compiles] == [True]


@pytest.mark.usefixtures("disk_cache")
def test_a_program_that_is_not_in_the_persistent_cache_is_refused() -> None:
    step(X)
    with jitcount.record() as log:
        with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
            step(Y)
        assert [cause.kind for cause in raised.value.causes] == ["shape"]
        assert log.counts() == {}
        step(Y)
    assert log.counts() == {"step": 1}


@pytest.mark.filterwarnings("ignore:PGLE")
def test_a_program_that_is_compiled_again_with_a_profile_is_not_refused() -> None:
    before = jax.config.values["jax_enable_pgle"]
    jax.config.update("jax_enable_pgle", True)  # noqa: FBT003
    try:
        step(X)
        jax.clear_caches()  # as if the profile were there: the same program again
        with jitcount.freeze():
            step(X)
            with pytest.raises(jitcount.RecompileError):
                step(Y)
    finally:
        jax.config.update("jax_enable_pgle", before)


def test_nothing_is_left_behind() -> None:
    logger = logging.getLogger(events.DISK_LOGGER)
    before = (logger.level, list(logger.filters))
    with pytest.raises(jitcount.RecompileError), jitcount.freeze(), jitcount.max_compiles(3):
        step(X)
    assert (logger.level, list(logger.filters)) == before
    step(X)


def test_a_guard_does_not_open_because_observing_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("JAX has changed")

    monkeypatch.setattr(frames, "read_executable", fail)
    monkeypatch.setattr(
        registry.listener, "_waiting_lowerings", WaitingLowerings()
    )  # what is lowered here is never taken
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
        step(X)
    assert str(raised.value) == (
        "step() would be compiled at unknown, and jitcount.freeze() allows no compile here\n"
        "  because: the cause is not known: JAX's frames could not be read [JC901]"
    )


@pytest.mark.parametrize("limit", [-1, 1.5, "2", True, None])
def test_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match="max_compiles takes a count of 0 or more") as raised:
        jitcount.max_compiles(limit)
    assert str(raised.value) == f"max_compiles takes a count of 0 or more; limit is {limit!r}"


# --- One guard, entered several times -------------------------------------------------------------


def test_a_guard_that_is_entered_twice_counts_for_both_blocks() -> None:
    guard = jitcount.max_compiles(2)
    with guard:
        step(X)
        with guard:
            step(Y)
        with pytest.raises(jitcount.RecompileError):
            step(np.ones(7, np.float32))
    step(np.ones(8, np.float32))


def test_a_guard_that_ends_in_one_thread_holds_in_another() -> None:
    guard = jitcount.freeze(this_thread_only=True)

    def enter_and_leave() -> None:
        with guard, pytest.raises(jitcount.RecompileError):
            step(X)

    with guard:
        assert in_a_thread(enter_and_leave) == []
        with pytest.raises(jitcount.RecompileError):
            step(Y)
    assert registry.guards == ()


def test_a_guard_that_was_not_entered_cannot_be_left() -> None:
    with pytest.raises(RuntimeError) as raised:
        jitcount.freeze().__exit__(None, None, None)
    assert str(raised.value) == "this block has ended already, or has not begun"


# --- Functions by themselves ----------------------------------------------------------------------


class Model:
    def forward(self, x: jax.Array) -> jax.Array:
        return x + 1

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + 2


def scaled(by: float, x: jax.Array) -> jax.Array:
    return by * x


@pytest.mark.parametrize(
    ("function", "given", "name"),
    [
        (step, step, "step"),
        (jax.jit(scaled, static_argnums=0), scaled, "scaled"),
        (jax.jit(functools.partial(scaled, 2.0)), functools.partial(scaled, 3.0), "scaled"),
        (jax.jit(Model().forward), Model().forward, "forward"),
        (jax.jit(Model()), Model(), "Model"),
        (jax.jit(lambda x: x), lambda x: x, "<lambda>"),
        (jax.jit(jnp.sin), jnp.sin, "sin"),
    ],
)
def test_a_function_stands_for_its_name(function: Any, given: Any, name: str) -> None:
    args = (2.0, X) if given is scaled else (X,)
    with jitcount.max_compiles(0, "another"), jitcount.record() as log:
        function(*args)
    assert log.counts() == {name: 1}
    jax.clear_caches()
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.max_compiles(0, given):
        function(*args)
    assert f"and jitcount.max_compiles allows no compile of {name} here" in str(raised.value)


@pytest.mark.parametrize("function", [3, ""])
def test_what_is_no_function_is_refused(function: Any) -> None:
    with pytest.raises(TypeError) as raised:
        jitcount.max_compiles(0, function)
    said = f"max_compiles takes a function or its name; function is {function!r}"
    assert str(raised.value) == said


# --- The error, elsewhere -------------------------------------------------------------------------


class RefusedHereError(jitcount.RecompileError):
    def __init__(self, where: str, compiled: Any) -> None:
        super().__init__(f"refused in {where}", compiled)
        self.where = where


def pickled(protocol: int, error: Exception) -> Any:
    return pickle.loads(pickle.dumps(error, protocol))  # noqa: S301


def refused() -> jitcount.RecompileError:
    step(X)
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
        step(Y)
    return raised.value


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, *(functools.partial(pickled, n) for n in (2, 5))],
    ids=["copy", "deepcopy", "pickle 2", "pickle 5"],
)
def test_an_error_can_be_copied_and_pickled(again: Any) -> None:
    error = refused()
    error.add_note("in the second batch")
    other = again(error)
    assert (type(other), other.args, vars(other)) == (type(error), error.args, vars(error))
    assert other.__notes__[-1] == "in the second batch"
    assert (other.call_site.line, str(other.causes[0])) == (
        error.call_site.line,  # type: ignore[attr-defined]
        str(error.causes[0]),
    )
    mine = RefusedHereError("here", STEP_COMPILED)
    assert (again(mine).where, str(again(mine))) == ("here", "refused in here")


def test_a_name_forges_no_line_of_the_message_and_a_poor_stream_can_take_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hostile(x: jax.Array) -> jax.Array:
        return x

    hostile.__name__ = "a\x1b[2J\n  because: nothing\u202e"
    function = jax.jit(hostile)
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
        function(X)
    first, *below = str(raised.value).splitlines()
    assert first.startswith(r"a\x1b[2J\n  because: nothing\u202e(float32[3]) would be compiled at ")
    assert [line.split()[0] for line in below] == ["because:", "→"]
    error = refused()
    assert "  → pad axis 0" in str(error)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    assert "  -> pad axis 0" in str(error)


IN_A_POOL = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import jax, numpy as np, jitcount

@jax.jit
def step(x):
    return 2 * x

def work(n):
    with jitcount.freeze():
        step(np.ones(n, np.float32))

def show(call):
    try:
        call()
    except jitcount.RecompileError as error:
        print(error.function, error.signature, error.causes[0], error.call_site.line)
        print(str(error).splitlines()[1])

if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        show(pool.submit(work, 3).result)
    with spawn.Pool(1) as pool:
        show(lambda: pool.map(work, [4]))
"""


@pytest.mark.thorough
def test_an_error_comes_out_of_a_pool_of_processes(tmp_path: Path) -> None:
    script = tmp_path / "pools.py"
    script.write_text(IN_A_POOL)
    finished = python(str(script), timeout=120)
    assert finished.stdout.splitlines() == [
        "step ('float32[3]',) first call of step 12",
        "  because: first call of step",
        "step ('float32[4]',) first call of step 12",
        "  because: first call of step",
    ], finished.stderr
