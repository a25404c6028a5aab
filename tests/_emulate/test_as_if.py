"""`as_if` with a compiler that answers what the test says: no process is started."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from jax import lax
from jax._src import compiler

import jitcount
from jitcount._emulate import as_if as as_if_room
from jitcount._emulate.active_target import active_target
from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.as_if import as_on_the_cpu, emulated_here, emulated_instead
from jitcount._emulate.emulator import Emulated, Emulator
from jitcount._jax import executables
from jitcount._jax.substituting import Compilable
from jitcount._observe.call_site import shown_path
from jitcount._targets import installed
from jitcount._targets.names import parse
from jitcount._targets.protocol import Answer, BuildExecutable
from tests._emulate.cases import module, parameters
from tests._emulate.fake_compilers import THREE_TIMES, FakeCompilers, fake_compilers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jitcount._emulate.result import Emulation


X = np.arange(3, dtype=np.float32)


@pytest.fixture
def compilers() -> Iterator[FakeCompilers]:
    with fake_compilers() as made:
        yield made
    assert active_target() == ""


def _double(x: Any) -> Any:
    return x * 2


def _emulator(name: str = "tpu:v5e") -> Emulator:
    return Emulator.for_target(parse(name), 60.0)


def test_the_targets_program_runs_in_place_of_the_cpus(compilers: FakeCompilers) -> None:
    f = jax.jit(_double)
    np.testing.assert_array_equal(f(X), X * 2)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(f(X), X * 3)
        np.testing.assert_array_equal(f(X), X * 3)
    np.testing.assert_array_equal(f(X), X * 2)
    (program,) = emulation.programs
    assert (program.function, program.signature) == ("_double", ("float32[3]",))
    assert (program.faithful, program.reason) == (True, "")
    assert emulation.faithful
    assert compilers.asked == ["tpu:v5e", "cpu"]
    assert str(emulation) == "As if on tpu:v5e: 1 of 1 programs computed as there"


def test_the_same_program_is_compiled_once(compilers: FakeCompilers) -> None:
    for _ in range(2):
        jax.clear_caches()
        with jitcount.as_if("tpu:v5e"):
            np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert compilers.asked == ["tpu:v5e", "cpu"]


@pytest.mark.usefixtures("executables_travel")
def test_what_another_process_has_compiled_is_not_compiled_here(
    compilers: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled_there(task: BuildExecutable, module: bytes) -> bytes:
        devices = jax.devices("cpu")[:1]
        made = executables.compile_as(module, task.compile_options, devices)
        return executables.written_executable(made, task.compile_options, devices)

    monkeypatch.setattr(compilers, "executable", compiled_there)
    monkeypatch.setattr(Compilable, "compile", None)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert emulation.faithful


def test_what_cannot_be_loaded_is_compiled_here(
    compilers: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilers, "executable", lambda *_: b"of another machine")
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert emulation.faithful


ADDED = THREE_TIMES.replace("f32[3]{0} multiply", "f32[3]{0} frobnicate")
SMALLER = module("%p0 = f32[2]{0} parameter(0)\nROOT %c = f32[2]{0} copy(%p0)")


@pytest.mark.parametrize(
    ("hlo", "reason"),
    [
        (ADDED, "the operation frobnicate"),
        (
            THREE_TIMES.replace("constant(3)", 'custom-call(), custom_call_target="Own"'),
            "a call of Own",
        ),
        (
            SMALLER,
            "the target's program takes tensor<2xf32> and gives tensor<2xf32>, not as here",
        ),
        ("HloModule it\n", "a module without an entry"),
    ],
)
def test_what_is_not_known_is_named_and_runs_as_on_the_cpu(
    hlo: str, reason: str, compilers: FakeCompilers
) -> None:
    compilers.say(hlo)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)
    (program,) = emulation.programs
    assert (program.faithful, program.reason) == (False, reason)
    assert str(emulation) == (
        "As if on tpu:v5e: 0 of 1 programs computed as there\n"
        f"as on the CPU: _double(float32[3]): {reason}"
    )


DIED = "the compiler was ended by SIGABRT (Aborted)"
INTERNAL = "tpu:v5e fails at it by an internal error of the compiler, not a refusal"


def test_a_compiler_that_dies_costs_one_program(compilers: FakeCompilers) -> None:
    with jitcount.as_if("tpu:v5e") as emulation:
        compilers.there = Answer(error=DIED)
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)
        compilers.say(THREE_TIMES)
        compilers.here = Answer(error=DIED)
        np.testing.assert_array_equal(jax.jit(lambda x: x * 4)(X), X * 4)
        compilers.here = Answer()
        np.testing.assert_array_equal(jax.jit(lambda x: x * 5)(X), X * 3)
    assert [program.reason for program in emulation.programs] == [
        f"{INTERNAL}: {DIED}",
        f"rewritten, the CPU's compiler refuses it: {DIED}",
        "",
    ]


def test_a_refusal_of_many_lines_is_named_in_one(compilers: FakeCompilers) -> None:
    compilers.there = Answer(error="UNIMPLEMENTED: \nno such thing.\n\nDo:")
    with jitcount.as_if("tpu:v5e") as emulation:
        jax.jit(_double)(X)
    (program,) = emulation.programs
    assert program.reason == "tpu:v5e refuses it: UNIMPLEMENTED: no such thing."


def test_nothing_that_fails_here_reaches_the_user(
    compilers: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(compilers, "answer", fail)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)
    assert [program.reason for program in emulation.programs] == ["RuntimeError: two"]


@pytest.mark.usefixtures("compilers")
def test_callbacks_are_named() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        jax.debug.callback(seen.append, x[0])
        return x * 2

    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(f)(X), X * 2)
        jax.effects_barrier()
    reasons = [program.reason for program in emulation.programs if program.function == "f"]
    assert reasons == ["debug_callback calls back into Python"]
    assert len(seen) == 1


@pytest.mark.usefixtures("compilers")
def test_several_kinds_of_callbacks_are_named() -> None:
    def f(x: Any) -> Any:
        jax.debug.callback(lambda _: None, x[0])
        return jax.pure_callback(lambda x: x, X, x) * 2

    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(f)(X), X * 2)
        jax.effects_barrier()
    reasons = [program.reason for program in emulation.programs if program.function == "f"]
    assert reasons == ["debug_callback and pure_callback call back into Python"]


def test_outside_of_jit_the_branch_for_this_platform_is_called(compilers: FakeCompilers) -> None:
    """JAX may be unable to lower the other one here: it would raise."""
    compilers.say(module("ROOT %number = s32[] constant(1)"))
    with jitcount.as_if("tpu:v5e") as emulation:
        assert lax.platform_dependent("x", cpu=lambda _: "here", tpu=lambda _: "there") == "here"
    assert [program.reason for program in emulation.programs] == [
        "lax.platform_dependent outside of jit takes the branch for this machine"
    ]


@pytest.mark.usefixtures("compilers")
def test_what_was_lowered_before_says_so() -> None:
    lowered = jax.jit(_double).lower(X)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(lowered.compile()(X), X * 2)
    reasons = [program.reason for program in emulation.programs]
    assert reasons == ["it was lowered before the block began; call .lower() inside the block"]


def _line() -> int:
    return sys._getframe(1).f_lineno


@pytest.mark.usefixtures("compilers")
def test_another_kind_inside_is_refused_and_the_same_is_not() -> None:
    with jitcount.as_if("tpu:v5e"):
        line = _line() - 1
        for options, written in (
            ({"target": "cuda:h100"}, "as_if('cuda:h100')"),
            ({"target": "tpu:v5e", "exact_products": True}, _EXACT),
        ):
            with pytest.raises(ValueError, match="as_if") as error:
                jitcount.as_if(**options).__enter__()
            assert str(error.value) == (
                f"{written} while as_if('tpu:v5e') is open, since "
                f"tests/_emulate/test_as_if.py:{line} in {_NAME} in thread MainThread: all threads "
                "of a process compute in one way at a time; end the other block first"
            )
    with jitcount.as_if("tpu:v5e"), jitcount.as_if("tpu:v5e", timeout=1.0) as inner:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert len(inner.programs) == 1
    with jitcount.as_if("cuda:h100"):
        pass


_NAME = "test_another_kind_inside_is_refused_and_the_same_is_not"
_EXACT = "as_if('tpu:v5e', exact_products=True)"


def test_a_missing_compiler_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "is_installed", lambda _: False)
    plugin = parse("tpu:v5e").chip.plugin
    with pytest.raises(ImportError) as error:
        jitcount.as_if("tpu:v5e")
    assert str(error.value) == (
        f"tpu:v5e needs {plugin.compiler}, which is not installed: {plugin.command}"
    )


@pytest.mark.usefixtures("compilers")
def test_a_block_that_raises_ends_as_any_other() -> None:
    block = jitcount.as_if("tpu:v5e")

    def fail() -> None:
        with block:
            raise RuntimeError("the user's")

    with pytest.raises(RuntimeError, match="the user's"):
        fail()
    np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)


def _square(x: jax.Array) -> jax.Array:
    return x @ x


def test_lines_that_round_are_named(compilers: FakeCompilers) -> None:
    x = np.full((2, 2), 1 + 2**-10, np.float32)
    line = _square.__code__.co_firstlineno + 1
    compilers.say(
        module(
            f"{parameters(x)}\nROOT %d = f32[2,2]{{1,0}} dot(%p0, %p0), lhs_contracting_dims={{1}},"
            ' rhs_contracting_dims={0}, metadata={op_name="jit(_square)/dot_general" '
            f'source_file="{__file__}" source_line={line}}}'
        )
    )
    with jitcount.as_if("tpu:v5e") as emulation:
        made = jax.jit(_square)(x)
    np.testing.assert_array_equal(made, np.full((2, 2), 2, np.float32))
    (program,) = emulation.programs
    place = f"{shown_path(__file__)}:{line} in _square"
    assert [str(each) for each in program.roundings] == [f"{place}: @ in bfloat16"]
    assert [str(each) for each in emulation.lines()] == [place]


# --- What overlaps, and what is under way ---------------------------------------------------------


def _in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(60)


def test_what_was_not_emulated_is_tried_again_in_the_next_block(compilers: FakeCompilers) -> None:
    f = jax.jit(_double)
    compilers.there = Answer(error=DIED)
    for _ in range(2):  # said in each
        with jitcount.as_if("tpu:v5e") as emulation:
            np.testing.assert_array_equal(f(X), X * 2)
        assert [program.reason for program in emulation.programs] == [f"{INTERNAL}: {DIED}"]
    compilers.say(THREE_TIMES)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(f(X), X * 3)
    assert [program.faithful for program in emulation.programs] == [True]


def test_a_block_that_begins_in_another_knows_what_was_not_emulated(
    compilers: FakeCompilers,
) -> None:
    f = jax.jit(_double)
    with jitcount.as_if("tpu:v5e") as outer:
        compilers.there = Answer(error=DIED)
        f(X)
        with jitcount.as_if("tpu:v5e") as inner:
            np.testing.assert_array_equal(f(X), X * 2)
        assert not inner.faithful
        jax.jit(lambda x: x * 4)(X)
    assert (len(inner.programs), len(outer.programs)) == (1, 2)


@pytest.mark.usefixtures("compilers", "disk_cache")
def test_what_is_not_emulated_and_comes_from_disk_is_named(compilers: FakeCompilers) -> None:
    compilers.there = Answer(error=DIED)
    for _ in range(2):
        jax.clear_caches()
        with jitcount.as_if("tpu:v5e") as emulation:
            jax.jit(_double)(X)
        assert not emulation.faithful


@pytest.mark.usefixtures("compilers")
def test_what_is_traced_when_the_block_begins_is_as_on_the_cpu_and_named() -> None:
    begun, go_on = threading.Event(), threading.Event()

    @jax.jit
    def slow(x: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return x * 2

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(slow, X)
        assert begun.wait(60)
        with jitcount.as_if("tpu:v5e") as emulation:
            go_on.set()
            np.testing.assert_array_equal(found.result(60), X * 2)
    np.testing.assert_array_equal(slow(X), X * 2)
    (program,) = emulation.programs
    assert (program.function, program.signature) == ("slow", ("float32[3]",))
    assert program.reason == "JAX had begun to compile it when the block began"


class Slow:
    """A static argument that takes its time to say what it is."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        self.begun.set()
        assert self.go_on.wait(60)
        return 3


@pytest.mark.usefixtures("compilers")
def test_a_call_that_hashes_when_the_block_begins_is_under_way_too() -> None:
    f, slow = jax.jit(lambda x, _: x * 2, static_argnums=1), Slow()
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: f(X, slow))
        assert slow.begun.wait(60)
        with jitcount.as_if("tpu:v5e") as emulation:
            slow.go_on.set()
            np.testing.assert_array_equal(found.result(60), X * 2)
    assert not emulation.faithful
    np.testing.assert_array_equal(f(X, slow), X * 2)


@pytest.mark.usefixtures("compilers")
@pytest.mark.parametrize("ahead_of_time", [False, True])
def test_what_is_traced_when_the_last_block_ends_is_named(ahead_of_time: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    begun, go_on = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return x * 2

    f = jax.jit(slow)
    with ThreadPoolExecutor(1) as pool:
        with jitcount.as_if("tpu:v5e") as emulation:
            done = jax.jit(lambda x: x * 5)
            np.testing.assert_array_equal(_in_a_thread(lambda: done(X)), X * 3)
            if ahead_of_time:
                found = pool.submit(lambda: f.lower(X).compile()(X))
            else:
                found = pool.submit(f, X)
            assert begun.wait(60)
        go_on.set()
        np.testing.assert_array_equal(found.result(60), X * 2)
    if not ahead_of_time:  # else JAX does not compile it yet
        program = emulation.programs[-1]
        assert (program.function, program.signature) == ("slow", ("float32[3]",))
        assert program.reason == "it was not compiled yet, in another thread, when the block ended"
        assert "test_as_if.py" not in program.reason
        assert len(emulation.programs) == 2
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(f(X), X * 3)
    assert emulation.faithful
    np.testing.assert_array_equal(f(X), X * 2)


@pytest.mark.usefixtures("compilers")
def test_what_a_lowered_program_compiles_after_the_block_is_the_cpus() -> None:
    f = jax.jit(_double)
    with jitcount.as_if("tpu:v5e"):
        lowered, later = f.lower(X), jax.jit(_double).lower(X)
        compiled = lowered.compile()
        np.testing.assert_array_equal(compiled(X), X * 3)
    np.testing.assert_array_equal(lowered.compile()(X), X * 2)
    np.testing.assert_array_equal(later.compile()(X), X * 2)
    np.testing.assert_array_equal(compiled(X), X * 3)  # it stays what it is
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(f(X), X * 3)
    assert len(emulation.programs) == 1


@pytest.mark.usefixtures("compilers")
def test_the_error_of_lines_is_measured_in_this_thread_only() -> None:
    f = jax.jit(_double)
    with emulated_here(_emulator()) as emulation:
        np.testing.assert_array_equal(f(X), X * 3)
        np.testing.assert_array_equal(_in_a_thread(lambda: f(X)), X * 2)
        with jitcount.as_if("cuda:h100"):
            np.testing.assert_array_equal(f(X), X * 3)
            np.testing.assert_array_equal(_in_a_thread(lambda: f(X)), X * 3)
    assert len(emulation.programs) == 1
    np.testing.assert_array_equal(f(X), X * 2)


@pytest.mark.usefixtures("compilers")
def test_the_longest_timeout_of_blocks_that_overlap_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def emulate(emulator: Emulator, *_: Any) -> Emulated:
        asked.append(emulator.timeout)
        return Emulated(reason="not now")

    monkeypatch.setattr(Emulator, "emulate", emulate)
    with jitcount.as_if("tpu:v5e", timeout=1), jitcount.as_if("tpu:v5e", timeout=3):
        jax.jit(_double)(X)
    assert asked == [3]


@pytest.mark.usefixtures("compilers")
def test_a_cause_names_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_if_room, "_begun", Counter())
    f = jax.jit(lambda x: x * 2)  # of its own: `_double` has a history
    with jitcount.record() as log:
        f(X)
        for _ in range(2):
            with jitcount.as_if("tpu:v5e"):
                f(X)
    assert [[str(cause) for cause in compiled.causes] for compiled in log.compiles[1:]] == [
        ["the setting jitcount.as_if went from None to 'tpu:v5e'"],
        ["the setting jitcount.as_if went from 'tpu:v5e' to 'tpu:v5e, block 2'"],
    ]


@pytest.mark.usefixtures("compilers")
def test_as_on_the_cpu_and_instead_are_for_all_threads_and_blocks_in_them_are_their_own() -> None:
    f, exact = jax.jit(_double), replace(_emulator(), arithmetic=EXACT)
    with jitcount.as_if("tpu:v5e") as outer:
        inside = jitcount.as_if("tpu:v5e")
        inside.__enter__()
        with as_on_the_cpu():
            np.testing.assert_array_equal(_in_a_thread(lambda: f(X)), X * 2)
            with jitcount.as_if("cuda:h100") as other:
                np.testing.assert_array_equal(f(X), X * 3)
            np.testing.assert_array_equal(f(X), X * 2)
            inside.__exit__(None, None, None)
        with emulated_instead(exact) as instead:
            np.testing.assert_array_equal(_in_a_thread(lambda: f(X)), X * 3)
        np.testing.assert_array_equal(f(X), X * 3)
        with pytest.raises(ValueError, match="end the other block first"):
            jitcount.as_if("cuda:h100").__enter__()
    np.testing.assert_array_equal(f(X), X * 2)
    assert [len(each.programs) for each in (outer, other, instead)] == [1, 1, 1]


def _held() -> Iterator[Emulation]:
    with jitcount.as_if("tpu:v5e") as emulation:
        yield emulation


def _here(call: Callable[[], Any]) -> Any:
    return call()


@pytest.mark.usefixtures("compilers")
@pytest.mark.parametrize("where", [_here, _in_a_thread])
def test_the_first_block_may_end_first(where: Callable[[Callable[[], Any]], Any]) -> None:
    before = compiler.compile_or_get_cached, jax.config.values["jax_xla_profile_version"]
    f, g = jax.jit(_double), jax.jit(lambda x: x * 4)
    one, two = _held(), _held()
    first, second = where(lambda: next(one)), where(lambda: next(two))
    np.testing.assert_array_equal(f(X), X * 3)
    where(one.close)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(g(X), X * 3)
    where(two.close)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(f(X), X * 2)
    np.testing.assert_array_equal(g(X), X * 4)
    assert (len(first.programs), len(second.programs)) == (1, 2)
    now = compiler.compile_or_get_cached, jax.config.values["jax_xla_profile_version"]
    assert now == before
