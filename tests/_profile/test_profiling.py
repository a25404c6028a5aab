"""`record(profile=True)`: where a compile's time goes, as a user sees it."""

import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._explain.compile import Compile
from jitcount._observe.call_site import CallSite, Sites
from jitcount._profile.attribution import profile_of
from jitcount._profile.draft import Draft
from jitcount._profile.origin import Origin
from jitcount._profile.profiler import AT_ONCE, CompileProfile, Profiler
from jitcount._profile.result import Line
from jitcount._registry import registry
from tests.helpers import python

PACKAGES = sysconfig.get_path("purelib")

ONES = np.ones((16, 16), np.float32)


def profiled(function: Callable[..., Any], *arguments: object) -> Compile:
    jax.clear_caches()
    with jitcount.record(profile=True) as log:
        jax.jit(function)(*arguments)
    return max(log.compiles, key=lambda each: each.operations)


def line_of(found: Compile, calls: str) -> Line:
    (line,) = [each for each in found.lines if each.calls == calls]
    return line


def mixed(x: jax.Array) -> jax.Array:
    y = jnp.sort(x * 2, axis=0)
    return y + jnp.cumsum(x, axis=1)


def test_without_a_profile_there_are_no_lines() -> None:
    with jitcount.record() as log:
        jax.jit(mixed)(ONES)
    assert log.compiles[-1].profile is None
    assert (log.compiles[-1].lines, log.compiles[-1].loops) == ((), ())


def test_the_lines_are_the_users_and_add_up() -> None:
    found = profiled(mixed, ONES)
    first = mixed.__code__.co_firstlineno
    lines = {line.line for line in found.lines if line.is_attributed and line.compile_s}
    assert lines == {first + 1, first + 2}
    assert sum(line.compile_s for line in found.lines) == pytest.approx(found.compile_s)
    assert sum(line.trace_s for line in found.lines) == pytest.approx(found.trace_s)
    assert sum(line.operations for line in found.lines) == found.operations
    assert not found.lines[-1].is_attributed


def test_what_is_not_attributed_is_a_row_of_its_own_and_the_last() -> None:
    found = profiled(mixed, ONES)
    assert [line.is_attributed for line in found.lines].index(False) == len(found.lines) - 1
    assert found.lines[-1].call_site == "not attributed"


def test_phases_add_up_to_the_compile() -> None:
    found = profiled(mixed, ONES)
    assert found.profile is not None
    assert [phase.name for phase in found.profile.phases] == [
        "trace", "lower", "XLA's passes", "code generation", "XLA's rest",
    ]  # fmt: skip
    assert sum(phase.seconds for phase in found.profile.phases) == pytest.approx(found.total_s)


def test_a_function_that_sleeps_while_it_is_traced_is_blamed_for_it() -> None:
    def sleepy(x: jax.Array) -> jax.Array:
        begin = time.perf_counter()
        time.sleep(0.5)
        slept.append(time.perf_counter() - begin)
        return x + 1

    slept: list[float] = []
    found = profiled(sleepy, ONES)
    (line,) = [each for each in found.lines if each.line == sleepy.__code__.co_firstlineno + 2]
    # What it slept, as it measured itself: a busy machine lets it sleep longer.
    assert line.trace_s == pytest.approx(slept[0], abs=0.05)


def test_the_backward_pass_is_told_apart() -> None:
    found = profiled(jax.grad(lambda x: jnp.tanh(x).sum()), ONES)
    copies = {part.part for line in found.lines for part in line.inside}
    assert "backward pass" in copies


@pytest.mark.parametrize("under", ["", ", under vmap"])
def test_what_is_recomputed_for_the_backward_pass_is_told_apart_from_it(under: str) -> None:
    def loss(x: jax.Array) -> jax.Array:
        def block(x: jax.Array) -> jax.Array:
            return jnp.sin(jnp.cumsum(jnp.sin(x)))

        return jax.checkpoint(block)(x).sum()

    slope = jax.grad(loss)
    found = profiled(jax.vmap(slope) if under else slope, ONES if under else ONES[0])
    (line,) = [each for each in found.lines if each.line == loss.__code__.co_firstlineno + 2]
    copies = {part.part: part.jaxpr_operations for part in line.inside if part.jaxpr_operations}
    # Again, sin, cumsum, and two derivatives; then the products with these, and cumsum backward.
    backward = 4 if under else 3
    assert copies == {
        f"recomputed for the backward pass{under}": 4,
        f"backward pass{under}": backward,
    }
    assert line.jaxpr_operations == 4 + backward


def test_the_same_function_from_two_lines_is_blamed_on_both() -> None:
    def twice(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        one = jnp.cumsum(x, axis=0)
        other = jnp.cumsum(x * 3, axis=0)
        return one, other

    found = profiled(twice, ONES)
    first = twice.__code__.co_firstlineno
    counts = {line.line: line.jaxpr_operations for line in found.lines}
    assert counts[first + 1] == 1
    assert counts[first + 2] == 2


def draws(key: jax.Array, x: jax.Array) -> jax.Array:
    return jax.random.normal(key, x.shape) + x


def draws_twice(key: jax.Array, x: jax.Array) -> jax.Array:
    first, second = jax.random.split(key)
    y = jax.random.normal(first, x.shape) * x
    return jax.random.normal(second, x.shape) + y


def test_what_another_program_drew_first_is_blamed_on_the_lines_of_this_one() -> None:
    """JAX keeps what it has lowered of its random functions, with the line of that time."""
    jax.clear_caches()
    key = jax.random.key(0)
    jax.jit(draws)(key, ONES)
    with jitcount.record(profile=True) as log:
        jax.jit(draws_twice)(key, ONES)
    first = draws_twice.__code__.co_firstlineno
    attributed = [line for line in log.compiles[-1].lines if line.is_attributed]
    assert {line.line for line in attributed if line.optimised_operations} <= set(
        range(first + 1, first + 4)
    )
    assert "split" in {line.calls for line in attributed if line.line == first + 1}


def test_a_large_constant_is_named_with_the_line_that_brought_it() -> None:
    table = np.arange(50_000, dtype=np.float32)

    def closes_over(x: jax.Array) -> jax.Array:
        return x + jnp.asarray(table)[:16]

    found = profiled(closes_over, ONES)
    assert found.profile is not None
    (constant,) = found.profile.constants
    assert (constant.type, constant.bytes) == ("float32[50000]", 200_000)
    assert constant.call_site.line == closes_over.__code__.co_firstlineno + 1


def test_a_trace_of_the_programs_own_goes_on_and_ours_says_so(tmp_path: Path) -> None:
    with jax.profiler.trace(str(tmp_path)):
        found = profiled(mixed, ONES)
    assert found.profile is not None
    assert found.profile.notes == (
        "a jax.profiler trace of the program's own was under way, which has the compiler's time",
    )
    assert sum(line.compile_s for line in found.lines if line.is_attributed) == 0
    assert any(tmp_path.rglob("*.xplane.pb"))


def test_a_trace_that_begins_meanwhile_gets_all_and_ours_says_so(tmp_path: Path) -> None:
    profiler = Profiler()
    first, second = CompileProfile(profiler=profiler), CompileProfile(profiler=profiler)
    profiler.begin_watching(first)
    profiler.begin_watching(second)
    with jax.profiler.trace(str(tmp_path)):  # raises at its end where there were two sessions
        jax.jit(mixed).lower(ONES).compile()
        assert profiler.end_watching(first) == b""
    assert profiler.end_watching(second) == b""
    assert [first.not_watched, second.not_watched] == [AT_ONCE, AT_ONCE]
    third = CompileProfile(profiler=profiler)
    profiler.begin_watching(third)
    with jax.profiler.trace(str(tmp_path)):
        pass
    assert profiler.end_watching(third) == b""
    assert third.not_watched == (
        "a jax.profiler trace or server of the program's own began while it was compiled: the "
        "compiler's time is not known"
    )
    assert profiled(mixed, ONES).profile.notes == ()  # type: ignore[union-attr]


TRACES = """
import jax, jax.numpy as jnp, jitcount, numpy as np, sys, threading

def grown(n):
    def slow(x):
        for i in range(n):
            x = jnp.sin(x @ x) + jnp.cos(x * i)
        return x
    return jax.jit(slow).lower(np.ones((32, 32), np.float32))

lowered = [grown(n) for n in range(40, 44)]
with jitcount.record(profile=True) as log:
    work = threading.Thread(target=lambda: [each.compile() for each in lowered])
    work.start()
    traces = 0
    while work.is_alive():
        with jax.profiler.trace(sys.argv[1]):
            pass
        traces += 1
print(traces > 1, [compiled.function for compiled in log.compiles])
"""


@pytest.mark.thorough
def test_a_program_may_trace_again_and_again_while_a_thread_compiles(tmp_path: Path) -> None:
    done = python("-c", TRACES, str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "True ['slow', 'slow', 'slow', 'slow']\n"), done


def test_programs_compiled_at_once_say_that_they_are_not_told_apart() -> None:
    gate = threading.Barrier(2)

    def compile_one(number: int) -> None:
        lowered = jax.jit(partial(slow, number)).lower(ONES)
        gate.wait()
        lowered.compile()

    def slow(number: int, x: jax.Array) -> jax.Array:
        for _ in range(30):
            x = jnp.sin(x * number) + jnp.cumsum(x, axis=0)
        return x

    with jitcount.record(profile=True) as log:
        threads = [threading.Thread(target=compile_one, args=(number,)) for number in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    notes = [compiled.profile.notes for compiled in log.compiles if compiled.profile]
    assert notes == [(AT_ONCE,), (AT_ONCE,)]


def test_a_profile_leaves_no_thread_at_work_and_no_session() -> None:
    profiled(mixed, ONES)
    jax.clear_caches()
    with jitcount.record() as log:
        jax.jit(mixed)(ONES)
    assert log.compiles[-1].profile is None
    profiled(mixed, ONES)  # a session that was left open would refuse this one
    assert profiled(mixed, ONES).profile.notes == ()  # type: ignore[union-attr]


def test_a_program_whose_warnings_are_errors_is_not_ended() -> None:
    done = python(
        "-W", "error", "-c",
        "import jax, jitcount, numpy as np\n"
        "with jitcount.record(profile=True) as log:\n"
        "    jax.jit(lambda x: x + 1)(np.ones(3))\n"
        "print(log.compiles[0].profile.notes)\n",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "()\n"), done.stderr


def test_where_a_library_jits_its_own_the_line_is_the_one_that_called() -> None:
    library = Origin(Sites(CallSite("flax/core.py:7 in f", f"{PACKAGES}/flax/core.py", 7, "f")))
    draft = Draft(operations=Counter({library: 3}))
    here = CallSite("train.py:9 in main", "/me/train.py", 9, "main")
    written = profile_of(draft, trace_s=0, lower_s=0, compile_s=0, call_site=here)
    assert written is not None
    (line,) = written.lines
    assert (line.call_site, line.operations) == (here, 3)
    assert [part.part for part in line.inside] == ["flax/core.py:7 in f"]


def test_a_guard_refuses_as_it_does_without_a_profile() -> None:
    with pytest.raises(jitcount.RecompileError), jitcount.record(profile=True), jitcount.freeze():
        jax.jit(lambda x: x - 5)(ONES)
    assert profiled(mixed, ONES).profile.notes == ()  # type: ignore[union-attr]


INTERRUPTED = """
import builtins, jax, numpy as np, jitcount
from jitcount._registry import registry

imported = builtins.__import__

def interrupted(name, *how):
    if name == "jitcount._profile.sampling":
        raise KeyboardInterrupt
    return imported(name, *how)

builtins.__import__ = interrupted
try:
    with jitcount.record(profile=True):
        pass
except KeyboardInterrupt:
    print(registry.listeners, registry.profiler, registry._profiles_open)
builtins.__import__ = imported
with jitcount.record(profile=True) as log:
    jax.jit(lambda x: x + 1)(np.ones(3))
print(bool(log.compiles[0].lines))
"""


def test_ctrl_c_while_the_profiler_is_loaded_leaves_nothing_open() -> None:
    done = python("-c", INTERRUPTED)
    assert (done.stdout, done.stderr) == ("() None 0\nTrue\n", "")


def test_the_profiler_is_there_before_the_first_compile_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there: list[bool] = []
    listening = registry.listening

    def spy(listener: Any) -> Any:
        there.append(registry.profiler is not None)
        return listening(listener)

    monkeypatch.setattr(registry, "listening", spy)
    with jitcount.record(profile=True):
        pass
    assert there == [True]
